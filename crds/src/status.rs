//! What the status of every component has in common. The fields of one kind's status are with
//! the kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// One aspect of an object's state, in the form that `kubectl wait` and kstatus read.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = condition))]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about: Ready, Reconciling, Stalled, Waiting.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// One word that says why, for programs.
    pub reason: Option<String>,
    /// Why, and what is awaited or to be done, for people.
    pub message: Option<String>,
    /// When `status` last changed, RFC 3339.
    pub last_transition_time: Option<String>,
    /// The generation of the spec that the condition is about.
    pub observed_generation: Option<i64>,
}

/// A pod of the component and the node that it runs on.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeInfo {
    /// Address of the pod, which is that of its node or of its data network.
    pub ip: Option<String>,
    /// Name by which the other members know the pod.
    pub hostname: Option<String>,
}

/// The status fields of every component except Vrouter.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = conditions))]
#[serde(rename_all = "camelCase")]
pub struct CommonStatus {
    /// Whether the service can do its work: enough of its pods are ready.
    pub active: Option<bool>,
    /// Whether fewer pods are ready than wanted.
    pub degraded: Option<bool>,
    /// The pods of the service by name.
    pub nodes: Option<BTreeMap<String, NodeInfo>>,
    /// Whether the configuration changed in the last pass. Written by tf-operator only.
    pub config_changed: Option<bool>,
    /// The state in detail; see the condition Ready first.
    pub conditions: Option<Vec<Condition>>,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}

#[cfg(feature = "kube")]
fn condition(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema).set(
        "lastTransitionTime",
        "format",
        serde_json::json!("date-time"),
    );
}

/// Makes the field `conditions` a map keyed by type, so that several writers can each own theirs.
#[cfg(feature = "kube")]
pub(crate) fn conditions(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        .set("conditions", "x-kubernetes-list-type", serde_json::json!("map"))
        .set("conditions", "x-kubernetes-list-map-keys", serde_json::json!(["type"]));
}
