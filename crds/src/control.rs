//! Control: the BGP and XMPP speakers that distribute routes to the vrouters. Spec, status and the
//! rules of one object.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::pod::{Container, PodConfiguration};
use crate::status::CommonStatus;

/// What a group of control nodes shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "Control",
        plural = "controls",
        shortname = "tfctl",
        namespaced,
        status = "ControlStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "Control is a group of control nodes, which send the vrouters their routes: one pod on each node that matches the node selector.",
        printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ControlSpec {
    /// Where the pods run, and what they share with all components.
    pub common_configuration: Option<PodConfiguration>,
    /// What only Control has.
    pub service_configuration: ControlConfiguration,
}

/// The settings of a group of control nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct ControlConfiguration {
    /// The images of containers control, dns, named, nodemanager and provisioner.
    pub containers: Option<Vec<Container>>,
    /// AS number of the control nodes; usually that of Config. Default 64512.
    pub asn_number: Option<i64>,
    /// Name of the subcluster that these control nodes make. Vrouters with the same are registered in
    /// it, whichever Control they refer to.
    pub subcluster: Option<String>,
    /// Key by which dns controls named, base64. tf-operator's default is a public constant.
    pub rndckey: Option<String>,
    /// IPv4 network, such as 10.1.0.0/24, in which the daemons listen; each control node must have
    /// an address in it. Default: the address of the pod.
    pub data_subnet: Option<String>,
    /// No effect in tf-operator: always 179.
    pub bgp_port: Option<i64>,
    /// No effect in tf-operator: always 5269.
    pub xmpp_port: Option<i64>,
    /// No effect in tf-operator: always 53.
    pub dns_port: Option<i64>,
    /// Introspection of dns as the web UI believes it; no effect in tf-operator on the daemon:
    /// always 8092.
    pub dns_introspect_port: Option<i64>,
}

/// What became of a group of control nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ControlStatus {
    /// What all components report.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The ports in use.
    pub ports: Option<ControlStatusPorts>,
    /// The subcluster in use.
    pub subcluster: Option<String>,
    /// The AS number in use.
    pub asn_number: Option<String>,
}

/// The ports in use, as strings.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ControlStatusPorts {
    /// BGP.
    pub bgp_port: Option<String>,
    /// XMPP.
    pub xmpp_port: Option<String>,
    /// DNS.
    pub dns_port: Option<String>,
    /// Introspection of dns.
    pub dns_introspect_port: Option<String>,
    /// The AS number, where older versions put it.
    pub asn_number: Option<String>,
}

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        .ports("OSDN1519", &["bgpPort", "xmppPort", "dnsPort", "dnsIntrospectPort"])
        .set("asnNumber", "minimum", serde_json::json!(1))
        .set("asnNumber", "maximum", serde_json::json!(4_294_967_295_i64))
        .field(
            "OSDN1606",
            "asnNumber",
            "self >= 1 && self <= 4294967295",
            "must be 1 to 65535, or up to 4294967295 with bgpEnable4Byte of Config",
        )
        .networks("OSDN1609", &["dataSubnet"]);
}
