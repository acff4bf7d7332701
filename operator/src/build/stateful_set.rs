//! The StatefulSet: a pod on each node of the component. Where each node has a volume it has a StatefulSet of one pod, too: of a single
//! one any pod, with its volume, could come on any node, and the last would go when another node is given up.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde_json::json;

use super::{Owner, pod};
use crate::build::valid::Home;
use crate::ensemble::record::ANNOTATION;
use crate::names::{CONFIGURATION, HOME, NODE};

/// That of all pods.
pub(super) fn build(owner: &Owner<'_>, configuration: &str) -> StatefulSet {
    let valid = owner.valid;
    let mut set = of(owner, configuration, None);
    set.metadata.name = Some(valid.instance.stateful_set());
    let record = valid.members.as_ref().map(|members| json!(members.record).to_string());
    set.metadata.annotations = record.map(|record| [(ANNOTATION.to_owned(), record)].into());
    set
}

/// That of the one pod of a node.
pub(super) fn build_at(owner: &Owner<'_>, configuration: &str, home: &Home) -> StatefulSet {
    let mut set = of(owner, configuration, Some(home));
    set.metadata.name = Some(home.stateful_set.clone());
    set.metadata.annotations = Some([(NODE.to_owned(), home.node.clone())].into());
    set
}

fn of(owner: &Owner<'_>, configuration: &str, home: Option<&Home>) -> StatefulSet {
    let valid = owner.valid;
    let mut labels = valid.instance.labels();
    let mut metadata = owner.metadata(String::new());
    let mut replicas = valid.replicas_now();
    if let Some(home) = home {
        let label = (HOME.to_owned(), home.stateful_set.clone());
        metadata.labels.get_or_insert_default().extend([label.clone()]);
        labels.extend([label]);
        replicas = i32::from(!home.ends && valid.stopped.is_none());
    }
    StatefulSet {
        metadata,
        spec: Some(StatefulSetSpec {
            // Members do not wait for each other: one that cannot start keeps none of the others down.
            pod_management_policy: Some("Parallel".to_owned()),
            replicas: Some(replicas),
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
                spec: Some(pod::build(valid, home)),
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
