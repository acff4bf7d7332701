//! Values that contradict each other, or that nothing can be found by.

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Message, Severity, Verdict};

use crate::Spec;

pub(crate) const FABRIC: Message = Message {
    code: "OSDN1705",
    severity: Severity::Warn,
    title: "ipFabricSnat counts in few namespaces only",
    explanation: "With ipFabricForwarding pods use the fabric with their own addresses. The translation to the \
        address of their node is switched on only in isolated namespaces that switch forwarding off by an \
        annotation.",
    hint: "leave both if there are such namespaces; else set ipFabricSnat to false, or ipFabricForwarding",
};

pub(crate) const HEAP: Message = Message {
    code: "OSDN1502",
    severity: Severity::Warn,
    title: "one size of Cassandra's heap is left to the node",
    explanation: "Cassandra computes the size that is not given from the memory of the node. Where \
        its smallest size is then above the largest, it does not start.",
    hint: "set minHeapSize and maxHeapSize, to the same value as a rule",
};

pub(crate) const PATHS: Message = Message {
    code: "OSDN1817",
    severity: Severity::Warn,
    title: "a certificate or key is not where the container looks",
    explanation: "Of files the agent sees /etc/certificates, with the certificates of the component, \
        /etc/ssl/certs/kubernetes, with the CA, and of its node /var/lib/contrail and /var/log/contrail. A path elsewhere is \
        one within the image: the agent finds no file there and does not connect.",
    hint: "remove the field; the operator's own paths are right",
};

pub(crate) const ORCHESTRATOR: Message = Message {
    code: "OSDN1706",
    severity: Severity::Warn,
    title: "the containers do not know this orchestrator",
    explanation: "They compare the word with those that they know and treat every other as none: what \
        belongs to the one that was meant is left out. With kubernetes misspelt the agents \
        do not set up their gateway for the pods.",
    hint: "write kubernetes, openshift, openstack, vcenter or none, or leave it out",
};

pub(crate) const PAGES: Message = Message {
    code: "OSDN1806",
    severity: Severity::Warn,
    title: "the vrouter's pods ask for huge pages of one size only",
    explanation: "With tf-operator a request for pages of 2M takes the place of that for pages of 1G, even where it is for \
        none, while the agent's script is given both numbers and prefers those of 1G: the vrouter takes pages that \
        Kubernetes has not reserved for it. Our operator asks for those of 1G, as the script does, and for none of 2M; with dpdk for both.",
    hint: "leave one of hugePages2M and hugePages1G, and remove the other",
};

/// What cloudOrchestrator may be (tf-container-builder, `containers/base/common.sh:53` and `:375`).
const ORCHESTRATORS: [&str; 5] = ["kubernetes", "openshift", "openstack", "vcenter", "none"];

pub(crate) fn judge_orchestrator(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let given = component.spec.service_configuration.text("cloudOrchestrator");
    if let Some(word) = given.filter(|word| !ORCHESTRATORS.contains(word)) {
        let text = format!("{}: cloudOrchestrator {word:?} counts as none", component.title());
        verdict.add(ORCHESTRATOR.at(component.setting("/cloudOrchestrator")).says(text));
    }
}

/// Of two requests the second replaces the first, one for 0 pages too (tf-operator,
/// `pkg/controller/vrouter/vrouter_ds.go:185-211`); our operator makes the larger one. Less than none is the schema's.
pub(crate) fn judge_pages(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let given = &component.spec.service_configuration;
    // Of a DPDK process some may be of either size, and tf-operator runs none.
    if given.has("dpdk") {
        return;
    }
    let large = given.number("hugePages1G").filter(|pages| *pages > 0);
    let small = given.number("hugePages2M").filter(|pages| *pages >= 0);
    if let (Some(large), Some(small)) = (large, small) {
        let text = format!(
            "{}: of tf-operator the pods ask for {small} pages of 2M and none of 1G, of our operator for {large} of 1G \
             and none of 2M",
            component.title()
        );
        verdict.add(PAGES.at(component.setting("/hugePages1G")).says(text));
    }
}

/// What the agent has of files (tf-operator, `pkg/apis/tf/v1alpha1/base_types.go:647-662`), and of its node
/// (`pkg/controller/vrouter/vrouter_ds.go:252-255`, as with our operator).
const MOUNTED: [&str; 4] = [
    "/etc/certificates/",
    "/etc/ssl/certs/kubernetes/",
    "/var/lib/contrail/",
    "/var/log/contrail/",
];

pub(crate) fn judge_paths(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let given = component.spec.service_configuration.texts();
    let wrong: Vec<_> = given
        .filter(|(field, _)| field.ends_with("Certfile") || field.ends_with("Keyfile"))
        .filter(|(field, _)| !field.starts_with("keystone"))
        .filter(|(_, path)| MOUNTED.iter().all(|mounted| !path.starts_with(mounted)))
        .collect();
    if let Some((first, _)) = wrong.first() {
        let names: Vec<_> = wrong.iter().map(|(field, path)| format!("{field} {path}")).collect();
        let text =
            format!("{}: no such file in the container: {}", component.title(), names.join(", "));
        verdict.add(PATHS.at(component.setting("").key(first)).says(text));
    }
}

pub(crate) fn judge_fabric(
    component: &ComponentView<'_, Spec>,
    nested: bool,
    verdict: &mut Verdict,
) {
    let given = &component.spec.service_configuration;
    let forwarding = given.switch("ipFabricForwarding") == Some(true);
    let snat = given.switch("ipFabricSnat");
    // Nested, it is false by default.
    if forwarding && snat.unwrap_or(!nested && !given.has("nested")) {
        let default = if snat.is_none() { " (its default)" } else { "" };
        let text = format!(
            "{}: ipFabricForwarding is true, so ipFabricSnat, true as well{default}, counts only in isolated \
             namespaces that switch forwarding off",
            component.title()
        );
        verdict.add(FABRIC.at(component.setting("/ipFabricForwarding")).says(text));
    }
}

pub(crate) fn judge_heap(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let given = &component.spec.service_configuration;
    for (field, other) in [("minHeapSize", "maxHeapSize"), ("maxHeapSize", "minHeapSize")] {
        if given.has(field) && !given.has(other) {
            let text = format!("{}: {field} is given and {other} is not", component.title());
            verdict.add(HEAP.at(component.setting("").key(field)).says(text));
        }
    }
}
