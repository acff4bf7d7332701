//! AnalyticsAlarm: the alarm generator and its Kafka. Spec, status and the rules of one object.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::pod::{Container, PodConfiguration};
use crate::status::CommonStatus;

/// What AnalyticsAlarm shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "AnalyticsAlarm",
        plural = "analyticsalarm",
        shortname = "tfalarm",
        namespaced,
        status = "AnalyticsAlarmStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "AnalyticsAlarm is the alarm generator and the Kafka it reads from: one pod on each node that matches the node selector.",
        printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AnalyticsAlarmSpec {
    /// Where the pods run, and what they share with all components.
    pub common_configuration: Option<PodConfiguration>,
    /// What only AnalyticsAlarm has.
    pub service_configuration: AnalyticsAlarmConfiguration,
}

/// The settings of AnalyticsAlarm.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct AnalyticsAlarmConfiguration {
    /// The images of containers analytics-alarm-gen, kafka, nodemanager and provisioner.
    pub containers: Option<Vec<Container>>,
    /// No effect in tf-operator.
    pub log_file_path: Option<String>,
    /// No effect in tf-operator.
    pub log_local: Option<String>,
    /// No effect in tf-operator.
    pub alarmgen_redis_aggregate_db_offset: Option<i64>,
    /// No effect in tf-operator: always 30.
    pub alarmgen_partitions: Option<i64>,
    /// No effect in tf-operator: always 5995.
    pub alarmgen_introspect_listen_port: Option<i64>,
    /// No effect in tf-operator.
    pub alarmgen_log_file_name: Option<String>,
}

/// What became of AnalyticsAlarm.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AnalyticsAlarmStatus {
    /// What all components report.
    #[serde(flatten)]
    pub common: CommonStatus,
}

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema).ports("OSDN1519", &["alarmgenIntrospectListenPort"]);
}
