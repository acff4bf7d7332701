//! Nested mode: the nodes of the cluster are virtual machines of a cloud whose network OpenSDN makes, and
//! pods get interfaces of that network. Here is what a Manager and a Kubemanager say of the underlay:
//! where its services are as the nodes reach them. How the underlay is made to let them through is a
//! NestedCluster.
//!
//! Each field stands for a variable of kube-manager's container or of the CNI's (tf-container-builder,
//! `containers/kubernetes/kube-manager/entrypoint.sh`), which upstream's nested manifest has in a ConfigMap.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The underlay of a nested cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct Nested {
    /// Name of this cluster in OpenSDN (KUBERNETES_CLUSTER_NAME). No other cluster of the whole cloud may have
    /// it, nested or not: kube-manager deletes what carries its name and is not its own.
    pub cluster_name: String,
    /// The virtual network of the nodes (KUBERNETES_CLUSTER_NETWORK). Each node's address must be one of it.
    pub cluster_network: VirtualNetwork,
    /// Where the services of the underlay are, as the nodes reach them: their own addresses with Fabric
    /// SNAT, else link-local addresses.
    pub underlay: Underlay,
    /// What makes the interfaces of pods on each node.
    pub cni: Option<Cni>,
}

/// A virtual network by its fully qualified name.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = network_constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualNetwork {
    /// The domain. Default default-domain.
    pub domain: Option<String>,
    /// The project, in which everything of this cluster is made.
    pub project: String,
    /// The network.
    pub name: String,
}

/// The services of the underlay.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = underlay_constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct Underlay {
    /// The Config API (CONFIG_NODES). Default port 8082.
    pub config: Endpoint,
    /// The vrouter of the compute node below (KUBERNESTES_NESTED_VROUTER_VIP, spelt so): the address of the
    /// link-local service that leads to it. Default port 9091.
    pub vrouter: Endpoint,
    /// The config database (CONFIGDB_NODES). Default: the addresses of config, port 9041, where images of
    /// R24.1 and later have CQL.
    pub config_database: Option<Endpoint>,
    /// The message bus (RABBITMQ_NODES). Default: the addresses of configDatabase, port 5673.
    pub rabbitmq: Option<Endpoint>,
    /// Name of a Secret with the keys user, password and vhost. Default: RabbitMQ's own guest.
    pub rabbitmq_secret_name: Option<String>,
    /// ZooKeeper (ZOOKEEPER_NODES). Default: the addresses of configDatabase, port 2181.
    pub zookeeper: Option<Endpoint>,
    /// The collectors (ANALYTICS_NODES). Default: the addresses of config, port 8086.
    pub analytics: Option<Endpoint>,
    /// Name of a Secret with the key ca-bundle.crt, by which the certificates of the underlay are checked.
    pub ca_secret_name: Option<String>,
}

/// A service of the underlay.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = endpoint_constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// IPv4 addresses.
    pub addresses: Vec<String>,
    /// Port of all of them.
    pub port: Option<i64>,
    /// Whether it speaks TLS. Default false.
    pub tls: Option<bool>,
}

/// What makes the interfaces of pods on each node.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(transform = cni_constraints)
)]
#[serde(rename_all = "camelCase")]
pub struct Cni {
    /// Image of the container that puts the plugin and its configuration on the node,
    /// opensdn-kubernetes-cni-init of upstream. Default: that of kube-manager's release.
    pub image: Option<String>,
    /// MTU of the interfaces of pods (VROUTER_MTU). Default 1500; it must not be above that of the node's
    /// own interface, for the kernel refuses a VLAN with a larger one.
    pub mtu: Option<i64>,
}

/// IPv4 unicast that does not stay on the machine.
#[cfg(feature = "kube")]
pub(crate) const UNICAST: &str = "isIP(self) && ip(self).family() == 4 && \
    !self.matches('^(0|127|22[4-9]|2[3-5][0-9])[.]')";
#[cfg(feature = "kube")]
pub(crate) const UNICAST_TEXT: &str = "must be an IPv4 address of another machine: not in 0.0.0.0/8 or \
    127.0.0.0/8, and below 224.0.0.0";

/// kube-manager makes names of objects of it, and the CNI's configuration.
#[cfg(feature = "kube")]
pub(crate) const CLUSTER_NAME: &str = "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')";
#[cfg(feature = "kube")]
pub(crate) const CLUSTER_NAME_TEXT: &str =
    "must be lower-case letters, digits and -, such as k8s-a";

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema).longest(&["clusterName"], 63).field(
        "",
        "clusterName",
        CLUSTER_NAME,
        CLUSTER_NAME_TEXT,
    );
}

#[cfg(feature = "kube")]
fn network_constraints(schema: &mut schemars::Schema) {
    let mut fields = crate::schema::Fields::of(schema);
    for name in ["domain", "project", "name"] {
        fields = fields.longest(&[name], crate::schema::HOST).field(
            "OSDN3031",
            name,
            // It becomes a literal of Python, and a part of a name with colons.
            "self.matches('^[^:\"\\'\\\\\\\\{}\\n]+$')",
            "must be the name of a domain, project or network, without colons, quotes or braces",
        );
    }
    let _ = fields;
}

#[cfg(feature = "kube")]
fn underlay_constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        .longest(&["rabbitmqSecretName", "caSecretName"], crate::schema::HOST)
        .rule_at(
            "vrouter",
            "OSDN3088",
            "self.?vrouter.?addresses.orValue([]).size() <= 1",
            "vrouter.addresses must have one address, that of the link-local service",
        )
        .rule_at("configDatabase", "OSDN3036", CQL, CQL_TEXT);
}

/// Of what has a configDatabase.
#[cfg(feature = "kube")]
pub(crate) const CQL: &str = "!has(self.configDatabase) || !has(self.configDatabase.port) || \
    !(self.configDatabase.port in [9160, 9161])";
#[cfg(feature = "kube")]
pub(crate) const CQL_TEXT: &str = "configDatabase.port must be that of CQL, such as 9041: images from R24.1 on do not speak Thrift, and older ones \
     are not supported here";

#[cfg(feature = "kube")]
fn endpoint_constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema)
        .set("addresses", "minItems", serde_json::json!(1))
        .most_items(&["addresses"], 16)
        .set("addresses", "x-kubernetes-list-type", serde_json::json!("set"))
        .longest_item("addresses", 64)
        .items("OSDN3007", "addresses", UNICAST, &format!("addresses {UNICAST_TEXT}"))
        .ports("OSDN3006", &["port"]);
}

#[cfg(feature = "kube")]
fn cni_constraints(schema: &mut schemars::Schema) {
    let _ = crate::schema::Fields::of(schema).longest(&["image"], crate::schema::TEXT).range(
        "",
        &["mtu"],
        68,
        65535,
        "an MTU from 68 to 65535",
    );
}
