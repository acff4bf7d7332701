//! Services that vanish from a Manager, and with them their objects.

use opensdn_policy_components::{ComponentView, component::Component};
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
    explanation: "The operator deletes the object of a service that the Manager does not name any \
        more, at once. A key that is misspelt counts as none, for the API server drops it, and a \
        service that gets another name is a new one: the old one and what it keeps are deleted.",
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

pub(crate) fn judge(old: &ComponentView<'_, Spec>, losses: &Losses<'_>, verdict: &mut Verdict) {
    if losses.are_meant(&item(old.kind, old.name)) {
        return;
    }
    let key = Component::of_kind(old.kind).map_or(old.kind, |service| service.key);
    let text = format!("{} would be deleted: {}", old.title(), loss(old.kind));
    let hint = format!(
        "put it back under spec.services.{key}, or, if it is meant, confirm it in the same change: \
         {}",
        losses.how_to_confirm()
    );
    let at = Pointer::from("/spec/services").key(key);
    verdict.add(REMOVED.at(at).says(text).hint(hint));
}
