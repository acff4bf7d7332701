//! Redis: the cache beside analytics and the web UI. Spec, status and the rules of one object.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::pod::{Container, PodConfiguration};
use crate::status::CommonStatus;

/// What Redis shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "Redis",
        plural = "redis",
        shortname = "tfredis",
        namespaced,
        status = "RedisStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "Redis is the cache that analytics and the web UI reach on their own node.",
        printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct RedisSpec {
    /// Where the pods run, and what they share with all components.
    pub common_configuration: Option<PodConfiguration>,
    /// What only Redis has.
    pub service_configuration: RedisConfiguration,
}

/// The settings of Redis.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct RedisConfiguration {
    /// The images of containers redis and stunnel.
    pub containers: Option<Vec<Container>>,
    /// Port of Redis on 127.0.0.1 and of stunnel on the address of the pod. Default 6389.
    pub redis_port: Option<i64>,
    /// No effect in tf-operator.
    pub cluster_name: Option<String>,
}

/// What became of Redis.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RedisStatus {
    /// What all components report.
    #[serde(flatten)]
    pub common: CommonStatus,
}

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema).ports("OSDN1519", &["redisPort"]);
}
