//! The services of the underlay that a nested cluster uses: in which order they come, their names and their ports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A service of the underlay. The order is that of the plan's rows.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The Config API.
    Config,
    /// The collector.
    Analytics,
    /// RabbitMQ.
    Rabbitmq,
    /// The config database.
    ConfigDatabase,
    /// ZooKeeper, for drivers that speak CQL.
    Zookeeper,
    /// Keystone.
    Keystone,
    /// The vrouter agent of the compute node below.
    Vrouter,
}

/// Which release's ports and services are planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Those of the old documentation: no ZooKeeper, and the database by Thrift.
    Doc,
    /// Releases up to 21.x: no ZooKeeper, and the database by Thrift.
    Thrift,
    /// Releases since 24.1: ZooKeeper, and the database by CQL.
    #[default]
    Cql,
}

/// How rows are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Naming {
    /// As in the old documentation: `Contrail Config`.
    Doc,
    /// By the cluster, as labels of DNS: `k8s-a-config`.
    #[default]
    Scoped,
}

/// The port of the vrouter agent, which is fixed in upstream's code.
pub const VROUTER_PORT: u16 = 9091;
/// The only port on which kube-manager's client of ZooKeeper asks.
pub const ZOOKEEPER_PORT: u16 = 2181;

impl Role {
    /// Every role, in order.
    pub const ALL: [Self; 7] = [
        Self::Config,
        Self::Analytics,
        Self::Rabbitmq,
        Self::ConfigDatabase,
        Self::Zookeeper,
        Self::Keystone,
        Self::Vrouter,
    ];

    /// Its name in the documentation, without the number of a node.
    #[must_use]
    pub fn display_name(self) -> &'static str {
        match self {
            Self::Config => "Contrail Config",
            Self::Analytics => "Contrail Analytics",
            Self::Rabbitmq => "Contrail Msg Queue",
            Self::ConfigDatabase => "Contrail VNC DB",
            Self::Zookeeper => "ZooKeeper",
            Self::Keystone => "Keystone",
            Self::Vrouter => "K8s-cni-to-agent",
        }
    }

    /// Its name as a label of DNS.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Analytics => "analytics",
            Self::Rabbitmq => "rabbitmq",
            Self::ConfigDatabase => "config-database",
            Self::Zookeeper => "zookeeper",
            Self::Keystone => "keystone",
            Self::Vrouter => "vrouter",
        }
    }
}

impl Profile {
    /// Whether a plan has rows of the role.
    #[must_use]
    pub fn has(self, role: Role) -> bool {
        role != Role::Zookeeper || self == Self::Cql
    }

    /// The port of a role where none is given.
    #[must_use]
    pub fn port(self, role: Role) -> u16 {
        match (role, self) {
            (Role::Config, _) => 8082,
            (Role::Analytics, _) => 8086,
            (Role::Rabbitmq, _) => 5673,
            (Role::ConfigDatabase, Self::Doc | Self::Thrift) => 9161,
            (Role::ConfigDatabase, Self::Cql) => 9041,
            (Role::Zookeeper, _) => ZOOKEEPER_PORT,
            // tf-container-builder `containers/base/common.sh` up to R21.4, and from R24.1 on.
            (Role::Keystone, Self::Doc | Self::Thrift) => 35357,
            (Role::Keystone, Self::Cql) => 5000,
            (Role::Vrouter, _) => VROUTER_PORT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Profile, Role};

    #[test]
    fn only_cql_has_zookeeper() {
        let roles = |profile: Profile| Role::ALL.iter().filter(|role| profile.has(**role)).count();
        assert_eq!((roles(Profile::Doc), roles(Profile::Thrift), roles(Profile::Cql)), (6, 6, 7));
    }

    #[test]
    fn the_order_of_roles_is_the_order_of_the_list() {
        assert!(Role::ALL.is_sorted());
    }

    #[test]
    fn ports_follow_the_profile() {
        assert_eq!(Profile::Doc.port(Role::ConfigDatabase), 9161);
        assert_eq!(Profile::Cql.port(Role::ConfigDatabase), 9041);
        assert_eq!(Profile::Doc.port(Role::Keystone), 35357);
        assert_eq!(Profile::Thrift.port(Role::Keystone), 35357);
        assert_eq!(Profile::Cql.port(Role::Keystone), 5000);
    }
}
