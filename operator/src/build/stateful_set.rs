//! The StatefulSet: a pod on each node of the component.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde_json::json;

use super::{Owner, pod};
use crate::ensemble::record::ANNOTATION;
use crate::names::CONFIGURATION;

pub(super) fn build(owner: &Owner<'_>, configuration: &str) -> StatefulSet {
    let valid = owner.valid;
    let labels = valid.instance.labels();
    let mut metadata = owner.metadata(valid.instance.stateful_set());
    let record = valid.members.as_ref().map(|members| json!(members.record).to_string());
    metadata.annotations = record.map(|record| [(ANNOTATION.to_owned(), record)].into());
    StatefulSet {
        metadata,
        spec: Some(StatefulSetSpec {
            // Members do not wait for each other: one that cannot start keeps none of the others down.
            pod_management_policy: Some("Parallel".to_owned()),
            replicas: Some(valid.replicas_now()),
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    annotations: Some(
                        [(CONFIGURATION.to_owned(), configuration.to_owned())].into(),
                    ),
                    labels: Some(labels),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod::build(valid)),
            },
            // tf-operator's; no Service of that name has ever given the pods names.
            service_name: valid.description.service.map(|_| valid.instance.word.clone()),
            // The operator replaces one after the other, when all are well: the controller of StatefulSets would begin with the
            // last while another is away.
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("OnDelete".to_owned()),
                ..StatefulSetUpdateStrategy::default()
            }),
            min_ready_seconds: valid.description.min_ready_seconds,
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}
