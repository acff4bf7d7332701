//! Who has which name and address in a lab. All of it is inside the lab's own networks, so two
//! labs may use the same. Deliberately not here: how the addresses are given (`wiring`).

use std::net::Ipv4Addr;

/// Where nodes reach the control plane.
pub const CONTROL: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 10);
/// The cluster's name server, a Service.
pub(crate) const NAME_SERVER: &str = "10.96.0.10";
/// The network between nodes and control plane has this length of prefix.
pub(super) const PREFIX: u8 = 24;
/// The network of nodes and control plane, and those of all pods.
pub(super) const NODE_RANGE: &str = "10.90.0.0/24";
pub(super) const POD_RANGE: &str = "10.244.0.0/16";
/// More would not fit into the ranges, and no machine bears them.
pub const MOST_NODES: u8 = 20;

/// Name and addresses of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlan {
    /// `node-1` and up, as Kubernetes calls it.
    pub name: String,
    /// Its internal address.
    pub address: Ipv4Addr,
    /// Where the addresses of its pods come from.
    pub pods: String,
}

/// The plans of that many nodes.
pub(super) fn nodes(count: u8) -> Vec<NodePlan> {
    (1..=count.min(MOST_NODES))
        .map(|number| NodePlan {
            name: format!("node-{number}"),
            address: Ipv4Addr::new(10, 90, 0, 10 + number),
            pods: format!("10.244.{number}.0/24"),
        })
        .collect()
}
