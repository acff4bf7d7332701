//! Images, containers and services that an Upgrade at work has to do with.

use opensdn_policy_components::{ComponentView, component::Component};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};

use crate::{
    Asker, Change, Container, Spec,
    upgrades::{Role, Step, Upgrade},
};

pub(crate) const IMAGE: Message = Message {
    code: "OSDN2009",
    severity: Severity::Deny,
    title: "an image would change that an Upgrade at work sets",
    explanation: "A service of an Upgrade gets its images when it is its turn: one pod first, the others one after the other, \
        behind a gate, with a way back. Another image meanwhile replaces pods beside it, and the Upgrade stops at it; its \
        new image before its turn replaces all pods without a look at the first. The image that a container had before \
        may be set, and the new one when it is its turn: they take an edit back.",
    hint: "wait until the Upgrade is over, take it back, have it leave the service out, or delete it: kubectl opensdn \
        upgrade status",
};

pub(crate) const SERVICE: Message = Message {
    code: "OSDN2010",
    severity: Severity::Deny,
    title: "a service or container would come or go that an Upgrade at work has to do with",
    explanation: "An Upgrade has planned its waves for the services and containers that the Manager had. What comes or goes \
        meanwhile replaces pods beside it, and what is gone can get neither its new nor its earlier image.",
    hint: "wait until the Upgrade is over, take it back, have it leave the service out, or delete it: kubectl opensdn \
        upgrade status",
};

/// What a change of a service is to the Upgrades. There is one at work as a rule; of several each is asked.
pub(crate) fn judge(
    change: &Change<'_>,
    upgrades: &[Upgrade],
    asker: Asker,
    verdict: &mut Verdict,
) {
    let id = change.id();
    for upgrade in upgrades {
        let Some(step) = upgrade.step(&id) else { continue };
        let crossed = Crossed { upgrade, step, id: &id };
        match (&change.before, &change.after) {
            (Some(before), Some(after)) => {
                crossed.judge_containers(before, after, asker, verdict);
            }
            (Some(before), None) => crossed.judge_removal(before, verdict),
            // What has been taken away may be put back.
            (None, _) => {}
        }
    }
}

struct Crossed<'a> {
    upgrade: &'a Upgrade,
    step: &'a Step,
    id: &'a str,
}

impl Crossed<'_> {
    fn judge_removal(&self, before: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
        let key = Component::of_kind(before.kind).map_or(before.kind, |facts| facts.key);
        let text = format!(
            "{} would be deleted while {} is at work",
            before.title(),
            self.upgrade.title()
        );
        let at = Pointer::from("/spec/services").key(key);
        verdict.add(SERVICE.at(at).says(text).hint(self.hint()));
    }

    fn judge_containers(
        &self,
        before: &ComponentView<'_, Spec>,
        after: &ComponentView<'_, Spec>,
        asker: Asker,
        verdict: &mut Verdict,
    ) {
        let at = after.setting("/containers");
        let (old, new) = (containers(before), containers(after));
        for (number, container) in new.iter().enumerate() {
            let was = find(old, &container.name).map(|one| &one.image);
            if was != Some(&container.image) {
                let at = at.index(number);
                self.judge_image(after, container, (was, &at), asker, verdict);
            }
        }
        for container in old.iter().filter(|old| find(new, &old.name).is_none()) {
            let text = format!(
                "{}: container {} would go while {} is at work",
                after.title(),
                container.name,
                self.upgrade.title()
            );
            verdict.add(SERVICE.at(&at).says(text).hint(self.hint()));
        }
    }

    /// One that is new, or that has another image than it had; it is at `at`.
    fn judge_image(
        &self,
        service: &ComponentView<'_, Spec>,
        container: &Container,
        (was, at): (Option<&String>, &Pointer),
        asker: Asker,
        verdict: &mut Verdict,
    ) {
        let Container { name, image } = container;
        let (title, upgrade) = (service.title(), self.upgrade.title());
        let finding = match (self.step.role(name, image), was) {
            (Role::Own, _) => return,
            (Role::Early, _) if asker == Asker::Operator => return,
            (Role::Early, _) => IMAGE.at(at.key("image")).says(format!(
                "{title}: container {name} would get {image} beside {upgrade}, which sets it when it is the turn of the wave {}",
                self.step.wave
            )),
            (Role::Foreign, Some(_)) => {
                let own = self.step.own_images(name);
                let own = own.map_or_else(String::new, |own| format!(" (it may be {own})"));
                IMAGE.at(at.key("image")).says(format!(
                    "{title}: container {name} would get {image} while {upgrade} is at work{own}"
                ))
            }
            (Role::Foreign, None) => SERVICE
                .at(at)
                .says(format!("{title}: container {name} would come while {upgrade} is at work")),
        };
        verdict.add(finding.hint(self.hint()));
    }

    fn hint(&self) -> String {
        self.upgrade.hint_of_step(self.id)
    }
}

fn containers<'a>(component: &ComponentView<'a, Spec>) -> &'a [Container] {
    &component.spec.service_configuration.containers
}

fn find<'a>(containers: &'a [Container], name: &str) -> Option<&'a Container> {
    containers.iter().find(|one| one.name == name)
}
