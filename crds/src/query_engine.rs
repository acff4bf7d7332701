//! QueryEngine: queries over the analytics database. Spec, status and the rules of one object.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::pod::{Container, PodConfiguration};
use crate::status::CommonStatus;

/// What QueryEngine shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "QueryEngine",
        plural = "queryengine",
        shortname = "tfqe",
        namespaced,
        status = "QueryEngineStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "QueryEngine answers queries over the analytics database: one pod on each node that matches the node selector. Useful only with a Cassandra analyticsdb1.",
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
        printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct QueryEngineSpec {
    /// Where the pods run, and what they share with all components.
    pub common_configuration: Option<PodConfiguration>,
    /// What only QueryEngine has.
    pub service_configuration: QueryEngineConfiguration,
}

/// The settings of QueryEngine.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct QueryEngineConfiguration {
    /// The image of container queryengine.
    pub containers: Option<Vec<Container>>,
    /// No effect in tf-operator: always 9160.
    pub analyticsdb_port: Option<i64>,
    /// No effect in tf-operator: always 8091.
    pub analyticsdb_introspect_port: Option<i64>,
}

/// What became of QueryEngine.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueryEngineStatus {
    /// What all components report.
    #[serde(flatten)]
    pub common: CommonStatus,
}

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        .ports("OSDN1519", &["analyticsdbPort", "analyticsdbIntrospectPort"]);
}
