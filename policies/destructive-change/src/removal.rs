//! Services that vanish from a Manager, and with them their objects.

use opensdn_policy_components::{
    ComponentView,
    component::{Component, Count},
};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};

use crate::{
    confirmation::{Losses, item},
    deletion::loss,
    interruption::Spec,
    is_same,
};

pub(crate) const REMOVED: Message = Message {
    code: "OSDN1112",
    severity: Severity::Deny,
    title: "a service vanishes from the Manager",
    explanation: "tf-operator deletes the object of a service that the Manager does not name any \
        more, at once; our operator lets it run on until the annotation confirms the loss. A key that is misspelt counts as none, for the API server drops it. A service \
        that gets another name is a new one: of a list tf-operator deletes the old one; of the others \
        it forgets it, so that both run, on the same ports of the same nodes.",
    hint: "put the service back, or name it in the annotation opensdn.io/confirm-loss of the same \
        change, as KIND/NAME",
};

/// The components that the change takes out. One without a name has no object.
pub(crate) fn removed<'a, 'b>(
    before: &'a [ComponentView<'b, Spec>],
    after: &[ComponentView<'_, Spec>],
) -> Vec<&'a ComponentView<'b, Spec>> {
    let is_gone = |old: &&ComponentView<'_, Spec>| {
        !old.name.is_empty() && !after.iter().any(|new| is_same(old, new))
    };
    before.iter().filter(is_gone).collect()
}

/// `after` are the components of the Manager after the change.
pub(crate) fn judge(
    old: &ComponentView<'_, Spec>,
    after: &[ComponentView<'_, Spec>],
    losses: &Losses<'_>,
    verdict: &mut Verdict,
) {
    let service = Component::of_kind(old.kind);
    let key = service.map_or(old.kind, |service| service.key);
    if service.is_some_and(|service| service.count == Count::One)
        && let Some(new) = after.iter().find(|new| new.kind == old.kind)
    {
        judge_rename(old, new, key, verdict);
        return;
    }
    if losses.are_meant(&item(old.kind, old.name)) {
        return;
    }
    let text = format!("{} would be deleted: {}", old.title(), loss(old.kind));
    let hint = format!(
        "put it back under spec.services.{key}, or, if it is meant, confirm it in the same change: \
         {}",
        losses.how_to_confirm()
    );
    let at = Pointer::from("/spec/services").key(key);
    verdict.add(REMOVED.at(at).says(text).hint(hint));
}

/// A service of which there is one gets another name. No confirmation makes that right: tf-operator
/// deletes such an object only while the Manager names none of the kind (upstream's
/// `pkg/controller/manager/manager_controller.go:913-949`).
fn judge_rename(
    old: &ComponentView<'_, Spec>,
    new: &ComponentView<'_, Spec>,
    key: &str,
    verdict: &mut Verdict,
) {
    let text = format!(
        "{} would be renamed to {:?}: tf-operator leaves the old one, and both run on the same ports",
        old.title(),
        new.name
    );
    let hint = format!(
        "keep the name {}; to change it, take {key} out of spec.services in a change of its own, \
         confirmed by opensdn.io/confirm-loss: {}, wait until its pods are gone, and add it again",
        old.name,
        item(old.kind, old.name)
    );
    let at = Pointer::from("/spec/services").key(key).join("/metadata/name");
    verdict.add(REMOVED.at(at).says(text).hint(hint));
}
