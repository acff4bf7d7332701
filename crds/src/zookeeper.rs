//! Zookeeper: coordination of the config services. Spec, status and the rules of one object.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::pod::{Container, PodConfiguration};
use crate::status::CommonStatus;
use crate::storage::Storage;

/// What ZooKeeper shall be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "tf.tungsten.io",
        version = "v1alpha1",
        kind = "Zookeeper",
        plural = "zookeepers",
        shortname = "tfzk",
        namespaced,
        status = "ZookeeperStatus",
        derive = "PartialEq",
        derive = "Default",
        attr = "cfg_attr(all(), serde(default))",
        doc = "Zookeeper is the ZooKeeper ensemble that coordinates the config services: one member on each node that matches the node selector.",
        printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ZookeeperSpec {
    /// Where the pods run, and what they share with all components.
    pub common_configuration: Option<PodConfiguration>,
    /// What only ZooKeeper has.
    pub service_configuration: ZookeeperConfiguration,
}

/// The settings of ZooKeeper.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = constraints))]
#[serde(rename_all = "camelCase")]
pub struct ZookeeperConfiguration {
    /// The image of container zookeeper.
    pub containers: Option<Vec<Container>>,
    /// Port of the clients. Default 2181; tf-operator works with no other.
    pub client_port: Option<i64>,
    /// Port between the members, ZooKeeper's own "quorum port". Default 2888.
    pub election_port: Option<i64>,
    /// Port of the leader election. Default 3888. (The names of the two are swapped.)
    pub server_port: Option<i64>,
    /// Whether the admin server runs. Default true.
    pub admin_enabled: Option<bool>,
    /// Port of the admin server. Default 2182.
    pub admin_port: Option<i64>,
    /// Volumes for what the members store. Default: a folder of each node below
    /// /var/lib/contrail.
    pub storage: Option<Storage>,
}

/// What became of ZooKeeper.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ZookeeperStatus {
    /// What all components report.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The ports in use.
    pub ports: Option<ZookeeperStatusPorts>,
}

/// The ports in use, as strings.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ZookeeperStatusPorts {
    /// Port of the clients.
    pub client_port: Option<String>,
}

#[cfg(feature = "kube")]
fn constraints(schema: &mut schemars::Schema) {
    const CODE: &str = "OSDN1511";
    const PORTS: &str = "[self.?clientPort.orValue(2181), self.?electionPort.orValue(2888), \
        self.?serverPort.orValue(3888)] + \
        (self.?adminEnabled.orValue(true) ? [self.?adminPort.orValue(2182)] : [])";
    let _ = crate::schema::Fields::of(schema)
        .ports(CODE, &["clientPort", "electionPort", "serverPort", "adminPort"])
        .rule(
            CODE,
            &format!("({PORTS}).all(port, ({PORTS}).exists_one(other, other == port))"),
            "the ports of ZooKeeper must be different: clientPort (default 2181), electionPort \
             (2888), serverPort (3888) and adminPort (2182)",
        );
}
