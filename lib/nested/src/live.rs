//! What the cloud has, as far as a plan needs it. Each part can be unknown, and then each check that needs it says so.
//! Deliberately not here: how it is read. Who reads it may take a list or map of the Config API for empty only when a
//! second read says the same, since its writes of these are not atomic.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

use opensdn_config_api::link_local::Row;
use opensdn_config_api::ownership::Records;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::subnet::Subnet;

/// The built-in IPAM of service chains.
const SERVICE_CHAINS: &str = "service-chain-flat-ipam";

/// What is so, or why it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<T> {
    /// It is so.
    Known(T),
    /// It is not known, because of this.
    Unknown(String),
}

impl<T> Fact<T> {
    /// What is so.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }
}

impl<T> Fact<Fact<T>> {
    /// One that is known to be unknown is unknown.
    pub fn flatten(self) -> Fact<T> {
        match self {
            Self::Known(fact) => fact,
            Self::Unknown(why) => Fact::Unknown(why),
        }
    }
}

/// The state of a cloud.
#[derive(Clone, Debug)]
pub struct Live {
    /// The rows of the cloud's link-local services, in order.
    pub rows: Fact<Vec<Row>>,
    /// What clusters have noted as theirs, this one's among them.
    pub records: Fact<Records>,
    /// The subnets of all virtual networks and IPAMs.
    pub subnets: Fact<Vec<UsedSubnet>>,
    /// Addresses of control nodes, compute nodes and their like, with what has them.
    pub underlay: Fact<BTreeMap<Ipv4Addr, String>>,
    /// Addresses of interfaces, and floating and alias addresses, with what has them.
    pub addresses: Fact<BTreeMap<Ipv4Addr, String>>,
    /// The network of the nodes; known as nothing where the cloud has none of that name.
    pub network: Fact<Option<NodeNetwork>>,
    /// The protocols that have a port translation pool.
    pub pools: Fact<BTreeSet<Protocol>>,
    /// Whether there are pools, and not those that kube-manager sets.
    pub pools_of_others: Fact<bool>,
    /// The interfaces of the cloud that have the address of a node.
    pub interfaces: Fact<BTreeMap<Ipv4Addr, Vec<Interface>>>,
    /// The names of all virtual-routers.
    pub virtual_routers: Fact<BTreeSet<String>>,
    /// What the login may write.
    pub may_write: MayWrite,
    /// Objects that show a cluster of the planned name.
    pub traces: Fact<Vec<Trace>>,
    /// How the Config API authorises.
    pub aaa_mode: Fact<AaaMode>,
}

impl Live {
    /// A cloud of which nothing is known, because of this.
    #[must_use]
    pub fn unknown(why: &str) -> Self {
        Self {
            rows: Fact::Unknown(why.to_owned()),
            records: Fact::Unknown(why.to_owned()),
            subnets: Fact::Unknown(why.to_owned()),
            underlay: Fact::Unknown(why.to_owned()),
            addresses: Fact::Unknown(why.to_owned()),
            network: Fact::Unknown(why.to_owned()),
            pools: Fact::Unknown(why.to_owned()),
            pools_of_others: Fact::Unknown(why.to_owned()),
            interfaces: Fact::Unknown(why.to_owned()),
            virtual_routers: Fact::Unknown(why.to_owned()),
            may_write: MayWrite {
                vrouter_config: Fact::Unknown(why.to_owned()),
                network: Fact::Unknown(why.to_owned()),
            },
            traces: Fact::Unknown(why.to_owned()),
            aaa_mode: Fact::Unknown(why.to_owned()),
        }
    }
}

/// What the login may write, by the permissions of these objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MayWrite {
    /// global-vrouter-config, with the rows, the records and the pools.
    pub vrouter_config: Fact<bool>,
    /// The network of the nodes, for SNAT; so where there is none.
    pub network: Fact<bool>,
}

/// A subnet that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedSubnet {
    /// The subnet.
    pub subnet: Subnet,
    /// The virtual network or IPAM by its fully qualified name: `default-domain:admin:private`.
    pub owner: String,
}

impl UsedSubnet {
    /// Not the built-in subnets of service chains, which cover what nothing else uses.
    pub(crate) fn is_of_tenants(&self) -> bool {
        self.owner != SERVICE_CHAINS && !self.owner.ends_with(&format!(":{SERVICE_CHAINS}"))
    }
}

/// The network of the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeNetwork {
    /// Its UUID.
    pub uuid: String,
    /// `fabric_snat` as it is stored; never set counts as off.
    pub fabric_snat: Option<bool>,
    /// Its subnets.
    pub subnets: Vec<Subnet>,
    /// Logical routers that have an interface in it.
    pub logical_routers: Vec<String>,
    /// Route targets that are set on it.
    pub route_targets: Vec<String>,
    /// Policies that are attached to it.
    pub policies: Vec<String>,
    /// How many interfaces in it are not those of the cluster's nodes; nothing where the nodes are not known.
    pub other_interfaces: Option<usize>,
}

/// A protocol that a port translation pool is for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// An interface of a virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its uuid.
    pub id: String,
    /// The virtual network by its fully qualified name.
    pub network: String,
    /// The compute node on which it is bound, where it is.
    pub host_id: Option<String>,
}

/// An object that shows a cluster of the planned name: `<cluster>-default-pod-network`, an application policy set, or
/// a virtual machine or load balancer that is annotated with the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Kind and fully qualified name.
    pub object: String,
    /// Whose it is.
    pub owner: TraceOwner,
}

/// Whose an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceOwner {
    /// This cluster's: its parent interfaces are those of the nodes.
    Ours,
    /// Another cluster's, by this.
    Other(String),
    /// Nothing on it says whose it is, or the nodes of this cluster are not known.
    Undecided,
}

/// How the Config API authorises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AaaMode {
    /// Not at all: the default of the containers.
    NoAuth,
    /// Writes need a role of the name `admin`.
    CloudAdmin,
    /// By access lists.
    Rbac,
}
