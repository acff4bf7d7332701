//! The PodDisruptionBudget: so many pods may be evicted that the service still works.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Owner;
use crate::kind::Workload;

/// None for a single pod, which no drain could ever evict, and for two of which both are needed.
pub(super) fn build(owner: &Owner<'_>) -> Option<PodDisruptionBudget> {
    let valid = owner.valid;
    // A drain leaves the pods of a DaemonSet where they are.
    if valid.workload == Workload::DaemonSet {
        return None;
    }
    // None may go while what is stored is not kept as often as it is to be.
    let spare = valid.spare();
    (valid.usually_spare() > 0 || spare > 0).then(|| PodDisruptionBudget {
        metadata: owner.metadata(valid.instance.disruption_budget()),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: valid.homes.is_none().then_some(IntOrString::Int(spare)),
            // Of several StatefulSets Kubernetes counts only those whose pod there is: with that alone one more could go. A pod that
            // is no member yet, or not any more, stands for none.
            min_available: valid
                .homes
                .is_some()
                .then(|| IntOrString::Int(valid.replicas_now() - spare)),
            // Without a quorum a member that is not ready may be the one that the others wait for.
            unhealthy_pod_eviction_policy: Some("IfHealthyBudget".to_owned()),
            selector: Some(LabelSelector {
                match_labels: Some(valid.instance.labels()),
                ..LabelSelector::default()
            }),
        }),
        ..PodDisruptionBudget::default()
    })
}
