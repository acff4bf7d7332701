//! Webui: the web interface. Spec, status and the rules of one object.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::pod::{Container, PodConfiguration};
use crate::status::CommonStatus;

/// What the web UI shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "Webui",
        plural = "webuis",
        shortname = "tfwui",
        namespaced,
        status = "WebuiStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "Webui is the web interface of OpenSDN on https port 8143: one pod on each node that matches the node selector.",
        printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
        printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct WebuiSpec {
    /// Where the pods run, and what they share with all components.
    pub common_configuration: Option<PodConfiguration>,
    /// What only the web UI has.
    pub service_configuration: WebuiConfiguration,
}

/// The settings of the web UI.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct WebuiConfiguration {
    /// The images of containers webuiweb and webuijob.
    pub containers: Option<Vec<Container>>,
    /// Name of the Control whose nodes the web UI shows. Must exist.
    pub control_instance: Option<String>,
}

/// What became of the web UI.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WebuiStatus {
    /// What all components report.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The ports in use.
    pub ports: Option<WebuiStatusPorts>,
    /// Cluster address of the web UI's Service.
    pub endpoint: Option<String>,
    /// State of each module by node and module.
    pub service_status: Option<BTreeMap<String, BTreeMap<String, WebuiModuleStatus>>>,
}

/// The ports in use.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WebuiStatusPorts {
    /// Plain HTTP.
    #[serde(rename = "webUIHttpPort")]
    pub web_ui_http_port: Option<i64>,
    /// HTTPS.
    #[serde(rename = "webUIHttpsPort")]
    pub web_ui_https_port: Option<i64>,
}

/// State of one module of the web UI.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WebuiModuleStatus {
    /// Name of the module.
    pub module_name: Option<String>,
    /// Functional or Non-Functional.
    pub state: Option<String>,
}

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema).longest(&["controlInstance"], crate::schema::HOST);
}
