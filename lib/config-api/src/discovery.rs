//! The nodes of the cloud by their roles, as the Config API knows them. Nodes of RabbitMQ, ZooKeeper and Keystone are not
//! known there.

use std::net::Ipv4Addr;

use serde_json::Value;

use crate::client::{ConfigApi, Error};
use crate::virtual_network::name_of;

/// A role of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The Config API and what is beside it.
    Config,
    /// Analytics, with the collector.
    Analytics,
    /// The database of the configuration.
    ConfigDatabase,
    /// Computes.
    VirtualRouter,
}

impl Role {
    fn kind(self) -> &'static str {
        match self {
            Self::Config => "config-node",
            Self::Analytics => "analytics-node",
            Self::ConfigDatabase => "config-database-node",
            Self::VirtualRouter => "virtual-router",
        }
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its address in the fabric.
    pub address: Ipv4Addr,
}

/// The nodes of a role by their addresses; one without an address of IPv4 is left out.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn nodes(api: &ConfigApi, role: Role) -> Result<Vec<Node>, Error> {
    let kind = role.kind();
    let field = format!("{}_ip_address", kind.replace('-', "_"));
    let all = api.list(kind, &[&field], &[]).await?;
    let node = |object: &serde_json::Map<String, Value>| {
        let name = name_of(object).rsplit(':').next().unwrap_or_default().to_owned();
        let address = object.get(&field)?.as_str()?.parse().ok()?;
        Some(Node { name, address })
    };
    let mut nodes: Vec<Node> = all.iter().filter_map(node).collect();
    nodes.sort_by_key(|node| node.address);
    Ok(nodes)
}
