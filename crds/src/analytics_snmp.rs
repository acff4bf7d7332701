//! AnalyticsSnmp: the SNMP collector and the topology that it finds. Spec, status and the rules of
//! one object.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::pod::{Container, PodConfiguration};
use crate::status::CommonStatus;

/// What AnalyticsSnmp shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "AnalyticsSnmp",
        plural = "analyticssnmp",
        shortname = "tfsnmp",
        namespaced,
        status = "AnalyticsSnmpStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "AnalyticsSnmp is the SNMP collector and the topology that it finds: one pod on each node that matches the node selector.",
        printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AnalyticsSnmpSpec {
    /// Where the pods run, and what they share with all components.
    pub common_configuration: Option<PodConfiguration>,
    /// What only AnalyticsSnmp has.
    pub service_configuration: AnalyticsSnmpConfiguration,
}

/// The settings of AnalyticsSnmp.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct AnalyticsSnmpConfiguration {
    /// The images of containers analytics-snmp-collector, analytics-snmp-topology, nodemanager and
    /// provisioner.
    pub containers: Option<Vec<Container>>,
    /// No effect in tf-operator.
    pub log_file_path: Option<String>,
    /// No effect in tf-operator.
    pub log_local: Option<String>,
    /// No effect in tf-operator: always 600 seconds.
    pub snmp_collector_scan_frequency: Option<i64>,
    /// No effect in tf-operator: always 60 seconds.
    pub snmp_collector_fast_scan_frequency: Option<i64>,
    /// No effect in tf-operator: always 5920.
    pub snmp_collector_introspect_listen_port: Option<i64>,
    /// No effect in tf-operator.
    pub snmp_collector_log_file_name: Option<String>,
    /// No effect in tf-operator: always 600 seconds. The frequency of the topology scan, in spite
    /// of the name.
    pub topology_snmp_frequency: Option<i64>,
    /// No effect in tf-operator: always 5921.
    pub topology_introspect_listen_port: Option<i64>,
    /// No effect in tf-operator.
    pub topology_log_file_name: Option<String>,
}

/// What became of AnalyticsSnmp.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AnalyticsSnmpStatus {
    /// What all components report.
    #[serde(flatten)]
    pub common: CommonStatus,
}

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        .ports("OSDN1519", &["snmpCollectorIntrospectListenPort", "topologyIntrospectListenPort"]);
}
