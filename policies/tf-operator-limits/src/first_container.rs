//! The first container in the list of a service, by which tf-operator knows which version runs.

use opensdn_policy_components::{ComponentView, component::Component};
use opensdn_policy_sdk::{Message, Severity, Verdict};
use serde_json::Value;

use crate::{Spec, upgrade};

pub(crate) const FIRST_CONTAINER: Message = Message {
    code: "OSDN1308",
    severity: Severity::Deny,
    title: "the first container of a service does not say which version runs",
    explanation: "tf-operator looks at the first container in the list to know which version runs, and \
        looks for it among the main containers. With an init container first its upgrade waits without \
        limit, or begins again and again. Whether an upgrade is to begin it asks of one service alone, and compares \
        with the first container of its StatefulSet, whatever the order of the list: with another tag in the first \
        of the list it begins one upgrade after the other.",
    hint: "put a main container first in containers, and give all of them one tag",
};

fn text<'a>(container: &'a Value, field: &str) -> Option<&'a str> {
    container.get(field)?.as_str()
}

fn containers<'a>(component: &'a ComponentView<'_, Spec>) -> &'a [Value] {
    let given = component.spec.given("containers").and_then(Value::as_array);
    given.map_or(&[], Vec::as_slice)
}

pub(crate) fn judge(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let first = containers(component).first().and_then(|first| text(first, "name"));
    let (Some(first), Some(known)) = (first, Component::of_kind(component.kind)) else { return };
    let Some(main) = known.containers.main.first() else { return };
    // Vrouters are not upgraded in stages.
    let prepares =
        known.containers.init.contains(&first) || known.containers.conditional.contains(&first);
    if prepares && component.kind != "Vrouter" {
        let text = format!(
            "a limit of tf-operator: {} begins with {first}, which is no main container",
            component.title()
        );
        let hint = format!("put {main} first in containers");
        verdict
            .add(FIRST_CONTAINER.at(component.setting("/containers/0/name")).says(text).hint(hint));
    }
}

/// Judges the service that decides whether an upgrade begins. Its StatefulSet has those of the containers that are in
/// the list, in the order of tf-operator's template (upstream's `pkg/controller/utils/utils.go:456`).
pub(crate) fn judge_leader(components: &[ComponentView<'_, Spec>], verdict: &mut Verdict) {
    let Some(leader) = upgrade::leader(components) else { return };
    let Some(known) = Component::of_kind(leader.kind) else { return };
    let listed = containers(leader);
    let of_name = |name: &&str| listed.iter().find(|one| text(one, "name") == Some(*name));
    let deployed = known.containers.main.iter().find_map(of_name);
    let (Some(first), Some(deployed)) = (listed.first(), deployed) else { return };
    let is_main = text(first, "name").is_some_and(|name| known.containers.main.contains(&name));
    let (Some(asked), Some(runs)) = (upgrade::tag(first), upgrade::tag(deployed)) else { return };
    if is_main && asked != runs {
        let name = |container| text(container, "name").unwrap_or_default();
        let text = format!(
            "a limit of tf-operator: {} lists {} with the tag {asked} first, and its StatefulSet has {} with {runs} \
             there: one upgrade begins after the other",
            leader.title(),
            name(first),
            name(deployed)
        );
        let hint = format!("give both one tag, or put {} first in containers", name(deployed));
        verdict
            .add(FIRST_CONTAINER.at(leader.setting("/containers/0/image")).says(text).hint(hint));
    }
}
