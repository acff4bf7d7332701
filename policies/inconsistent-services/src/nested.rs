//! A nested cluster uses the services of its underlay, so that others are right in it than elsewhere. That it
//! is nested is said by the setting, and not concluded from services that are absent: a misspelt key is
//! absent, too.

use opensdn_policy_components::{ComponentView, component::Component};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};

use crate::Spec;
use crate::presence::MISSING;

pub(crate) const OF_THE_UNDERLAY: Message = Message {
    code: "OSDN1710",
    severity: Severity::Warn,
    title: "a nested cluster has services that its underlay has",
    explanation: "kube-manager and the CNI of a nested cluster speak to the services of the underlay, whose \
        network the pods are in. What is here besides them makes a network of its own that is not used.",
    hint: "remove the services other than kubemanager, or remove nested",
};

/// Whether the kube-manager says so.
pub(crate) fn is_nested(components: &[ComponentView<'_, Spec>]) -> bool {
    let kube_manager = components.iter().find(|component| component.kind == "Kubemanager");
    kube_manager.is_some_and(|one| one.spec.service_configuration.nested.is_some())
}

pub(crate) fn judge(components: &[ComponentView<'_, Spec>], verdict: &mut Verdict) {
    let services = Pointer::from("/spec/services");
    let (own, others): (Vec<_>, Vec<_>) =
        components.iter().partition(|component| component.kind == "Kubemanager");
    if own.is_empty() {
        let text = "no kubemanager: nothing else runs in a nested cluster";
        verdict.add(MISSING.at(&services).says(text).hint("add kubemanager, or remove nested"));
    }
    if !others.is_empty() {
        let keys = others.iter().filter_map(|one| Component::of_kind(one.kind));
        let mut names: Vec<&str> = keys.map(|component| component.key).collect();
        names.dedup();
        let text = format!("the underlay has {}: these are not used", names.join(", "));
        verdict.add(OF_THE_UNDERLAY.at(&services).says(text));
    }
}
