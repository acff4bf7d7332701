//! LinkLocalService: a service of the fabric that workloads reach under a link-local address.
//! That nothing else has its address and port is the policy `duplicate-link-local`.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::status::Condition;

/// Which service, and under which address workloads reach it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "opensdn.io",
        version = "v1alpha1",
        kind = "LinkLocalService",
        plural = "linklocalservices",
        shortname = "lls",
        namespaced,
        status = "LinkLocalServiceStatus",
        derive = "PartialEq",
        doc = "LinkLocalService lets workloads reach a service of the fabric under a link-local address, on every vrouter of the cluster.",
        printcolumn(name = "Address", type_ = "string", json_path = ".spec.ip"),
        printcolumn(name = "Port", type_ = "integer", json_path = ".spec.port"),
        printcolumn(
            name = "Ready",
            type_ = "string",
            json_path = r#".status.conditions[?(@.type=="Ready")].status"#
        ),
        printcolumn(
            name = "Reason",
            type_ = "string",
            json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
        ),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    ),
    schemars(transform = constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct LinkLocalServiceSpec {
    /// Name of the service in OpenSDN, by which workloads find it in DNS. Default: the name of the object.
    pub name: Option<String>,
    /// IPv4 address under which workloads reach the service, normally in 169.254.0.0/16.
    pub ip: String,
    /// Port under which workloads reach the service.
    pub port: i64,
    /// The service in the fabric.
    pub fabric: Fabric,
}

/// A service in the fabric: addresses or a name, and a port.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = fabric_constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct Fabric {
    /// IPv4 addresses; traffic is spread over them.
    pub addresses: Option<Vec<String>>,
    /// DNS name, which the vrouters resolve.
    pub dns_name: Option<String>,
    /// Port of the service.
    pub port: i64,
}

/// What became of the service.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = crate::status::conditions)
)]
#[serde(rename_all = "camelCase")]
pub struct LinkLocalServiceStatus {
    /// Whether OpenSDN has the service; see the condition Ready.
    pub conditions: Option<Vec<Condition>>,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        // Of rows that are there already too, such as `Contrail Config`.
        .longest(&["name"], crate::schema::HOST)
        .field(
            "",
            "name",
            r"self.matches('^[!-~]([ -~]*[!-~])?$')",
            "must be made of printable ASCII characters, without spaces at its ends; workloads find \
             it by DNS only if it is a label, such as node-exporter",
        )
        // Not by `format`: the API server would then check no other rule.
        .longest(&["ip"], 64)
        .field(
            "",
            "ip",
            "isIP(self) && ip(self).family() == 4",
            "must be an IPv4 address, normally in 169.254.0.0/16",
        )
        .set("port", "minimum", serde_json::json!(1))
        .set("port", "maximum", serde_json::json!(65535));
}

#[cfg(feature = "kube")]
fn fabric_constraints(schema: &mut schemars::Schema) {
    use serde_json::json;
    let _ = crate::schema::Fields::of(schema)
        .set("addresses", "minItems", json!(1))
        .most_items(&["addresses"], 16)
        .set("addresses", "x-kubernetes-list-type", json!("set"))
        .longest_item("addresses", 64)
        .items(
            "",
            "addresses",
            "isIP(self) && ip(self).family() == 4",
            "addresses must be IPv4 addresses",
        )
        .longest(&["dnsName"], crate::schema::HOST)
        .field(
            "",
            "dnsName",
            "self.matches(r'^[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?([.][A-Za-z0-9_]([-A-Za-z0-9_]*\
             [A-Za-z0-9_])?)*[.]?$') && !self.matches('^[0-9.]+$')",
            "must be a DNS name; addresses belong into addresses",
        )
        .set("port", "minimum", json!(1))
        .set("port", "maximum", json!(65535))
        .rule("", "has(self.addresses) != has(self.dnsName)", "give either addresses or dnsName");
}
