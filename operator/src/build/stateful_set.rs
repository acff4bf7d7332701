//! The StatefulSet: a pod on each node of the component.

use k8s_openapi::api::apps::v1::{
    RollingUpdateStatefulSetStrategy, StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde_json::json;

use super::Valid;
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
            update_strategy: Some(update_strategy(valid)),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}

/// Of a service that counts its members the operator starts one after the other, after it has looked at the service.
fn update_strategy(valid: &Valid) -> StatefulSetUpdateStrategy {
    if valid.members.is_some() {
        let type_ = Some("OnDelete".to_owned());
        return StatefulSetUpdateStrategy { type_, ..StatefulSetUpdateStrategy::default() };
    }
    StatefulSetUpdateStrategy {
        type_: Some("RollingUpdate".to_owned()),
        rolling_update: Some(RollingUpdateStatefulSetStrategy {
            // The pods with lower numbers stay as they are.
            partition: Some(if valid.canary { (valid.replicas_now() - 1).max(0) } else { 0 }),
            ..RollingUpdateStatefulSetStrategy::default()
        }),
    }
}
