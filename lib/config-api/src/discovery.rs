//! The nodes of the cloud by their roles, as the Config API knows them. Nodes of RabbitMQ, ZooKeeper and Keystone are not
//! known there.

use std::net::Ipv4Addr;

use crate::client::{ConfigApi, Error};
use crate::fields::{Fields, own_name, text};

/// A role of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The Config API and what is beside it.
    Config,
    /// Analytics, with the collector.
    Analytics,
    /// The database of the configuration.
    ConfigDatabase,
    /// The database of analytics.
    Database,
    /// Computes.
    VirtualRouter,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 5] =
        [Self::Config, Self::Analytics, Self::ConfigDatabase, Self::Database, Self::VirtualRouter];

    /// The kind of its objects.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Config => "config-node",
            Self::Analytics => "analytics-node",
            Self::ConfigDatabase => "config-database-node",
            Self::Database => "database-node",
            Self::VirtualRouter => "virtual-router",
        }
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its address in the fabric, where it is one of IPv4.
    pub address: Option<Ipv4Addr>,
}

/// The nodes of a role by their addresses.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn nodes(api: &ConfigApi, role: Role) -> Result<Vec<Node>, Error> {
    let kind = role.kind();
    let field = format!("{}_ip_address", kind.replace('-', "_"));
    let node = |object: Fields| {
        Some(Node { name: own_name(&object), address: text(&object, &field).parse().ok() })
    };
    let mut nodes: Vec<Node> = api.list(kind, &[&field], &[], node).await?;
    nodes.sort_by_key(|node| node.address);
    Ok(nodes)
}
