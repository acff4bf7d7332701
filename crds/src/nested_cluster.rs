//! NestedCluster: what a cloud's OpenSDN has to know of a Kubernetes cluster on its virtual machines, so that
//! this one reaches the services of the underlay. `kubectl opensdn nested` and the operator write it into
//! the Config API of the underlay and keep it there. What the cluster itself runs is a Kubemanager with
//! `nested`.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::nested::VirtualNetwork;
use crate::status::Condition;

enumeration! {
    /// How nodes reach the services of the underlay.
    pub enum Connectivity {
        /// Fabric SNAT on the network of the nodes: they reach the fabric by the address of their compute node. One
        /// link-local service, for the vrouter, is all that is written besides.
        FabricSnat = "FabricSNAT",
        /// A link-local service for each port of each service. Every virtual machine of the cloud reaches
        /// these then, and no network policy or security group can narrow it.
        LinkLocal = "LinkLocal",
    }
}

/// A Kubernetes cluster on virtual machines of this cloud.
#[skip_serializing_none]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "opensdn.io",
        version = "v1alpha1",
        kind = "NestedCluster",
        plural = "nestedclusters",
        shortname = "nested",
        namespaced,
        status = "NestedClusterStatus",
        derive = "PartialEq",
        doc = "NestedCluster keeps in the underlay what a Kubernetes cluster on its virtual machines needs there: Fabric SNAT or link-local services.",
        printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
        printcolumn(name = "Connectivity", type_ = "string", json_path = ".spec.connectivity"),
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
pub struct NestedClusterSpec {
    /// Name of the cluster in OpenSDN, unique in the whole cloud. It cannot be changed: the records of what was
    /// written carry it.
    pub cluster_name: String,
    /// How nodes reach the services of the underlay. Default FabricSNAT.
    pub connectivity: Option<Connectivity>,
    /// The virtual network of the nodes.
    pub cluster_network: VirtualNetwork,
    /// The Config API of the underlay.
    pub config_api: ConfigApi,
    /// The services of the underlay, by their addresses in the fabric.
    pub services: Services,
    /// Addresses that link-local services get: addresses, networks such as 10.10.10.0/24, or ranges such as
    /// 10.10.10.1-10.10.10.9. They must be of no use to anything else in the cloud. With FabricSNAT one is needed,
    /// with LinkLocal one for each node of the underlay.
    pub service_addresses: Vec<String>,
}

/// The Config API of the underlay, and as whom it is asked.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = api_constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct ConfigApi {
    /// Its URLs, such as https://192.168.1.100:8082; the first that answers is used.
    pub urls: Vec<String>,
    /// Name of a Secret with what clouds.yaml has, under the names of OpenStack's variables: OS_AUTH_URL,
    /// OS_USERNAME, OS_PASSWORD, OS_PROJECT_NAME and the domains; and OPENSDN_CONFIG_API, the URLs that its token may be
    /// sent to, with commas between. Unset: no token is sent, as for aaa_mode no-auth.
    pub credentials_secret_name: Option<String>,
    /// Name of a Secret with the key ca-bundle.crt, by which its certificate and Keystone's are checked.
    pub ca_secret_name: Option<String>,
}

/// The services of the underlay.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = services_constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct Services {
    /// The Config API. Default port 8082.
    pub config: FabricService,
    /// The collectors. Default: the addresses of config, port 8086.
    pub analytics: Option<FabricService>,
    /// The config database. Default: the addresses of config, port 9041.
    pub config_database: Option<FabricService>,
    /// The message bus. Default: the addresses of configDatabase, port 5673.
    pub rabbitmq: Option<FabricService>,
    /// ZooKeeper. Default: the addresses of configDatabase, port 2181.
    pub zookeeper: Option<FabricService>,
    /// Keystone. Without it there is none.
    pub keystone: Option<FabricService>,
    /// Port of the vrouter agents on their compute nodes. Default 9091.
    pub vrouter_port: Option<i64>,
}

/// A service of the underlay, by its addresses in the fabric.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = service_constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct FabricService {
    /// IPv4 addresses. Names of their link-local services are numbered in numeric order of the addresses, whatever
    /// the order here.
    pub addresses: Vec<String>,
    /// Port of all of them.
    pub port: Option<i64>,
}

/// What is written in the underlay.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = crate::status::conditions)
)]
#[serde(rename_all = "camelCase")]
pub struct NestedClusterStatus {
    /// Whether all that the spec asks for is in place; see the condition Ready.
    pub conditions: Option<Vec<Condition>>,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// The link-local services, in the order of the plan.
    pub rows: Option<Vec<Row>>,
    /// What speaks against what the spec wants, and what is to be known of it.
    pub remarks: Option<Vec<Remark>>,
    /// When the underlay was compared with the spec last, RFC 3339; up to ten minutes ago where nothing has changed.
    pub last_checked: Option<String>,
}

/// A link-local service in the underlay.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its name, which may be one that it had before.
    pub name: String,
    /// Its address and port.
    pub service: String,
    /// Address and port in the fabric.
    pub target: String,
    /// InPlace; Missing; Changed, if it leads elsewhere; Shadowed, if another one before it has the address and port; Renamed;
    /// Orphan, if it is not wanted any more; Leaving, if it is not either and stays until it is pruned; or Taken, if what has the address and port is another's.
    pub state: String,
    /// By what kubectl opensdn explain knows the state, where it is not InPlace.
    pub code: Option<String>,
    /// What is there instead.
    pub found: Option<String>,
    /// Whether it was there before and belongs to another user: it is used and never removed.
    pub adopted: Option<bool>,
}

/// What speaks against a plan, or is to be known of it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Remark {
    /// By what kubectl opensdn explain knows it.
    pub code: String,
    /// Error, with which nothing is written; Warning; or Unknown, if it could not be looked at.
    pub severity: String,
    /// What is wrong, or why it is not known.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// Of a range of IPv4 addresses. Addresses have no order in CEL, numbers have one. How many parts there are at most is
/// said for the API server, which computes what the rule costs before it takes it.
#[cfg(feature = "kube")]
const UPWARDS: &str = "self.split('-', 2).map(one, one.trim().split('.', 4).map(part, int(part)))\
    .map(octets, octets[0] * 16777216 + octets[1] * 65536 + octets[2] * 256 + octets[3]).isSorted()";

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    use crate::nested::{CLUSTER_NAME, CLUSTER_NAME_TEXT};
    let _ = crate::schema::Fields::of(schema)
        .longest(&["clusterName"], 63)
        .field("", "clusterName", CLUSTER_NAME, CLUSTER_NAME_TEXT)
        .field(
            "",
            "clusterName",
            "self == oldSelf",
            "cannot be changed: delete the NestedCluster, which takes away what it wrote, and make another",
        )
        .set("serviceAddresses", "minItems", serde_json::json!(1))
        .most_items(&["serviceAddresses"], 64)
        .longest_item("serviceAddresses", 64)
        .items(
            "OSDN3001",
            "serviceAddresses",
            "self.split('-').size() <= 2 && self.split('-').all(one, isIP(one.trim()) ? \
             ip(one.trim()).family() == 4 : (!self.contains('-') && isCIDR(one) && \
             cidr(one).ip().family() == 4)) && \
             self.split('-').all(one, !one.trim().matches('^(0|127|22[4-9]|2[3-5][0-9])[.]'))",
            "serviceAddresses must be IPv4 addresses, networks such as 10.10.10.0/24, or ranges such as \
             10.10.10.1-10.10.10.9, of unicast addresses",
        )
        .items(
            "OSDN3001",
            "serviceAddresses",
            // What is no range of addresses at all the rule above refuses.
            &format!("!self.split('-', 2).all(one, isIP(one.trim()) && ip(one.trim()).family() == 4) || {UPWARDS}"),
            "serviceAddresses must have ranges that start at the lower address, such as 10.10.10.1-10.10.10.9",
        );
}

#[cfg(feature = "kube")]
fn api_constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        .set("urls", "minItems", serde_json::json!(1))
        .most_items(&["urls"], 16)
        .longest_item("urls", crate::schema::TEXT)
        .items(
            "",
            "urls",
            "self.matches('^https?://[^/@ ]+/?$')",
            "urls must be such as https://192.168.1.100:8082, without a path and without a user: credentials \
             belong into the Secret",
        )
        .longest(&["credentialsSecretName", "caSecretName"], crate::schema::HOST);
}

#[cfg(feature = "kube")]
fn services_constraints(schema: &mut schemars::Schema) {
    use crate::nested::{CQL, CQL_TEXT};
    let _ = crate::schema::Fields::of(schema).rule_at("configDatabase", "OSDN3036", CQL, CQL_TEXT);
}

#[cfg(feature = "kube")]
fn service_constraints(schema: &mut schemars::Schema) {
    use crate::nested::{UNICAST, UNICAST_TEXT};
    let _ = crate::schema::Fields::of(schema)
        .set("addresses", "minItems", serde_json::json!(1))
        .most_items(&["addresses"], 16)
        .set("addresses", "x-kubernetes-list-type", serde_json::json!("set"))
        .longest_item("addresses", 64)
        .items("OSDN3007", "addresses", UNICAST, &format!("addresses {UNICAST_TEXT}"))
        .ports("OSDN3006", &["port"]);
}
