//! The DaemonSet: a pod on each node of the component.
//!
//! tf-operator leaves it to a person to delete pods one by one (OnDelete). Here one is replaced at a time, and the next
//! only when the one before has been ready for a while: a change that does not work stops at the first node.

use k8s_openapi::api::apps::v1::{
    DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet,
};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Owner, pod};
use crate::names::CONFIGURATION;

/// For so many seconds a new pod has to be ready before the next one is replaced.
const SETTLED: i32 = 30;
/// tf-operator's, on pods only.
const VERSION: (&str, &str) = ("version", "1");

pub(super) fn build(owner: &Owner<'_>, configuration: &str) -> DaemonSet {
    let valid = owner.valid;
    let labels = valid.instance.labels();
    let mut of_pods = labels.clone();
    of_pods.insert(VERSION.0.to_owned(), VERSION.1.to_owned());
    DaemonSet {
        metadata: owner.metadata(valid.instance.daemon_set()),
        spec: Some(DaemonSetSpec {
            min_ready_seconds: Some(SETTLED),
            selector: LabelSelector { match_labels: Some(labels), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    annotations: Some(
                        [(CONFIGURATION.to_owned(), configuration.to_owned())].into(),
                    ),
                    labels: Some(of_pods),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod::build(valid)),
            },
            update_strategy: Some(DaemonSetUpdateStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDaemonSet {
                    max_unavailable: Some(IntOrString::Int(1)),
                    ..RollingUpdateDaemonSet::default()
                }),
            }),
            ..DaemonSetSpec::default()
        }),
        ..DaemonSet::default()
    }
}
