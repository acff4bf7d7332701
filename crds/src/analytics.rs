//! Analytics: the collector and its API. Spec, status and the rules of one object.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::pod::{AaaMode, Container, PodConfiguration};
use crate::status::CommonStatus;

/// What Analytics shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "Analytics",
        plural = "analytics",
        shortname = "tfan",
        namespaced,
        status = "AnalyticsStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "Analytics is the collector of what happens in the network and the API to ask for it: one pod on each node that matches the node selector.",
        printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
        printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AnalyticsSpec {
    /// Where the pods run, and what they share with all components.
    pub common_configuration: Option<PodConfiguration>,
    /// What only Analytics has.
    pub service_configuration: AnalyticsConfiguration,
}

/// The settings of Analytics.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct AnalyticsConfiguration {
    /// The images of containers analyticsapi, collector, nodemanager and provisioner.
    pub containers: Option<Vec<Container>>,
    /// Port of the Analytics API. Default 8081; tf-operator works with no other.
    pub analytics_port: Option<i64>,
    /// Introspection of the API. Default 8090.
    pub analytics_introspect_port: Option<i64>,
    /// Port of the collector. Default 8086; tf-operator works with no other.
    pub collector_port: Option<i64>,
    /// Introspection of the collector. Default 8089.
    pub collector_introspect_port: Option<i64>,
    /// What the API checks about a request: no-auth, rbac or cloud-admin; the last two need
    /// authMode keystone. Default rbac with keystone, else no-auth.
    pub aaa_mode: Option<AaaMode>,
    /// Hours for which objects and logs are kept. Default 48.
    #[serde(rename = "analyticsDataTTL")]
    pub analytics_data_ttl: Option<i64>,
    /// Hours for which changes of the configuration are kept. Default 2160.
    #[serde(rename = "analyticsConfigAuditTTL")]
    pub analytics_config_audit_ttl: Option<i64>,
    /// Hours for which statistics are kept. Default 4.
    #[serde(rename = "analyticsStatisticsTTL")]
    pub analytics_statistics_ttl: Option<i64>,
    /// Hours for which flows are kept. Default 2.
    #[serde(rename = "analyticsFlowTTL")]
    pub analytics_flow_ttl: Option<i64>,
}

/// What became of Analytics.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AnalyticsStatus {
    /// What all components report.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// Cluster address of the Analytics API's Service.
    pub endpoint: Option<String>,
}

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    crate::pod::aaa_mode(schema);
    let _ = crate::schema::Fields::of(schema)
        .ports(
            "OSDN1519",
            &[
                "analyticsPort",
                "analyticsIntrospectPort",
                "collectorPort",
                "collectorIntrospectPort",
            ],
        )
        .at_least(
            "OSDN1615",
            &[
                "analyticsDataTTL",
                "analyticsConfigAuditTTL",
                "analyticsStatisticsTTL",
                "analyticsFlowTTL",
            ],
            -1,
            "a number of hours, or -1 for the collector's default",
        );
}
