//! The rows of a plan, the rows of ours that it has no use for any more, and the environment in which the workloads
//! find the services. Deliberately not here: how rows get into the cloud without a loss of others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

use opensdn_config_api::link_local::{Key, Row, Target};
use opensdn_config_api::ownership::{Held, How};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::allocate::{Allocation, VROUTERS, own_record};
use crate::input::{Input, Permission, Service};
use crate::list::{List, Seen, Standing};
use crate::live::Live;
use crate::naming::Names;
use crate::roles::{Profile, Role};

/// An address and a port.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Endpoint {
    /// The address.
    pub address: Ipv4Addr,
    /// The port.
    pub port: u16,
}

/// A link-local service of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedRow {
    /// What it is for.
    pub role: Role,
    /// Its name. A row that is there keeps the one that it has, and one that is lost gets it again.
    pub name: String,
    /// The name that it would get if it were new, where it has another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_name: Option<String>,
    /// What virtual machines reach.
    pub service: Endpoint,
    /// Where it leads.
    pub target: Endpoint,
    /// Where the row is from.
    pub origin: Origin,
    /// What has to be done in the cloud.
    pub change: Change,
    /// What our record says of it then: what is adopted is never removed by us.
    #[schemars(with = "String")]
    pub how: How,
    /// Whether another cluster has it in its record.
    pub sharing: Sharing,
}

/// Where a planned row is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Our record has it.
    Kept,
    /// It is in the cloud, and not in our record.
    Adopted,
    /// It is not there yet.
    New,
}

/// What has to be done for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Nothing.
    None,
    /// It is appended.
    Add,
    /// The row that has its key is replaced where it is.
    Replace,
}

/// Whether several clusters have a row in their records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// At most this one.
    Alone,
    /// Another one: it stays when this cluster goes.
    Shared,
}

/// A row of our record that the plan does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemovedRow {
    /// Its service address and port.
    pub service: String,
    /// Where it leads.
    pub target: String,
    /// What becomes of it.
    pub fate: Fate,
}

/// What becomes of a row that leaves our record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It is removed from the cloud.
    Deleted,
    /// It stays until it is asked to remove what is not wanted any more: workloads may use it still.
    Kept,
    /// It stays, for another cluster has it in its record.
    Shared,
    /// It stays, for we have found it there.
    Adopted,
    /// It is not in the cloud any more, or leads elsewhere by now and stays.
    Gone,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}:{}", self.address, self.port)
    }
}

impl PlannedRow {
    /// By what agents know it.
    #[must_use]
    pub fn key(&self) -> Key {
        Key::new(self.service.address, self.service.port)
    }

    /// Where it leads.
    #[must_use]
    pub fn leads_to(&self) -> Target {
        Target::new([self.target.address], self.target.port)
    }

    /// As the Config API stores it.
    #[must_use]
    pub fn row(&self) -> Row {
        Row::new(&self.name, self.key(), &self.leads_to())
    }

    pub(crate) fn title(&self) -> String {
        format!("{} ({})", self.name, self.service)
    }
}

/// A row before it is compared with the cloud.
struct Wanted {
    role: Role,
    number: usize,
    count: usize,
    service: Endpoint,
    target: Endpoint,
}

impl Wanted {
    fn key(&self) -> Key {
        Key::new(self.service.address, self.service.port)
    }

    fn leads_to(&self) -> Target {
        Target::new([self.target.address], self.target.port)
    }
}

/// In the order of roles and nodes, the vrouters last.
fn wanted(input: &Input, allocation: &Allocation) -> Vec<Wanted> {
    let mut all = Vec::new();
    let services = input.services.iter().filter(|_| input.is_link_local());
    for (role, service) in services {
        let count = service.nodes.len();
        for (at, node) in service.nodes.iter().enumerate().filter(|(_, node)| **node != VROUTERS) {
            let Some(assigned) = allocation.addresses.get(node) else { continue };
            all.push(Wanted {
                role: *role,
                number: at + 1,
                count,
                service: Endpoint { address: assigned.address, port: service.port },
                target: Endpoint { address: *node, port: service.fabric_port },
            });
        }
    }
    let port = input.vrouter_port;
    all.extend(allocation.addresses.get(&VROUTERS).map(|assigned| Wanted {
        role: Role::Vrouter,
        number: 1,
        count: 1,
        service: Endpoint { address: assigned.address, port },
        target: Endpoint { address: VROUTERS, port },
    }));
    all
}

/// The rows of the plan.
pub(crate) fn rows(
    input: &Input,
    live: &Live,
    allocation: &Allocation,
    list: &List,
) -> Vec<PlannedRow> {
    let wanted = wanted(input, allocation);
    let taken = wanted.iter().filter_map(|row| known_name(row, live, list));
    let mut names = Names::new(input.choices.naming, &input.cluster, taken);
    wanted.iter().map(|row| compared(row, live, list, &mut names)).collect()
}

/// A row that is there keeps its name, and one of ours that is lost gets its own again.
fn known_name(wanted: &Wanted, live: &Live, list: &List) -> Option<String> {
    let key = wanted.key();
    let served = list.first(key).filter(|seen| seen.leads_to(&wanted.leads_to()));
    let held = || {
        let held = own_record(live)?.rows.get(&key)?;
        (held.how.is_ours() && !held.name.is_empty()).then(|| held.name.clone())
    };
    served.map(|seen| seen.row.name().to_owned()).or_else(held)
}

fn compared(wanted: &Wanted, live: &Live, list: &List, names: &mut Names) -> PlannedRow {
    let key = wanted.key();
    let change = match list.standing(key, &wanted.leads_to()) {
        Standing::Absent => Change::Add,
        Standing::Served => Change::None,
        Standing::Elsewhere => Change::Replace,
    };
    let held = own_record(live).and_then(|record| record.rows.get(&key));
    let (origin, how) = match (held, change) {
        (Some(held), Change::None) if !held.how.is_ours() => (Origin::Kept, held.how),
        (Some(_), Change::None | Change::Add | Change::Replace) => (Origin::Kept, How::Written),
        (None, Change::None) => (Origin::Adopted, How::Adopted),
        (None, Change::Add | Change::Replace) => (Origin::New, How::Written),
    };
    let is_of_clusters = live.records.known().is_some_and(|all| all.other_written.contains(&key));
    // The last cluster that uses it takes it away.
    let how = if is_of_clusters { How::Written } else { how };
    let usual = names.usual(wanted.role, wanted.number, wanted.count);
    let name = known_name(wanted, live, list)
        .unwrap_or_else(|| names.take(wanted.role, wanted.number, wanted.count));
    PlannedRow {
        role: wanted.role,
        usual_name: Some(usual).filter(|usual| *usual != name),
        name,
        service: wanted.service,
        target: wanted.target,
        origin,
        change,
        how,
        sharing: sharing(live, key),
    }
}

fn sharing(live: &Live, key: Key) -> Sharing {
    let is_shared = live.records.known().is_some_and(|records| records.other_keys.contains(&key));
    if is_shared { Sharing::Shared } else { Sharing::Alone }
}

/// What our record has and the plan has not.
pub(crate) fn removed(
    input: &Input,
    live: &Live,
    list: &List,
    rows: &[PlannedRow],
) -> Vec<RemovedRow> {
    let of_alone = match input.choices.permissions.prune {
        Permission::Granted => Fate::Deleted,
        Permission::Refused => Fate::Kept,
    };
    let desired: BTreeSet<Key> = rows.iter().map(PlannedRow::key).collect();
    let held = own_record(live).into_iter().flat_map(|record| &record.rows);
    let left = held.filter(|(key, _)| !desired.contains(key));
    left.map(|(key, held)| {
        let is_there = list.at(*key).any(|seen| is_held(seen, held));
        let fate = match (held.how, sharing(live, *key)) {
            _ if !is_there => Fate::Gone,
            (How::Adopted, _) => Fate::Adopted,
            (_, Sharing::Shared) => Fate::Shared,
            (_, Sharing::Alone) => of_alone,
        };
        RemovedRow { service: key.to_string(), target: held.target.to_string(), fate }
    })
    .collect()
}

/// Whether a row of the cloud is the one of our record: others may have changed its name or its target, but not both.
pub(crate) fn is_held(seen: &Seen, held: &Held) -> bool {
    seen.row.name() == held.name || seen.target.is_same(&held.target)
}

/// The variables by which kube-manager and the CNI agent find the services.
pub(crate) fn environment(input: &Input, allocation: &Allocation) -> BTreeMap<String, String> {
    let reached = |node: &Ipv4Addr| match input.is_link_local() {
        true => allocation.addresses.get(node).map(|assigned| assigned.address),
        false => Some(*node),
    };
    let port = |service: &Service| match input.is_link_local() {
        true => service.port,
        false => service.fabric_port,
    };
    let database = match input.choices.profile {
        Profile::Doc | Profile::Thrift => "CONFIGDB_PORT",
        Profile::Cql => "CONFIGDB_CQL_PORT",
    };
    let variables = [
        (Role::Config, "CONFIG_NODES", Some("CONFIG_API_PORT")),
        (Role::Analytics, "ANALYTICS_NODES", Some("COLLECTOR_PORT")),
        (Role::Rabbitmq, "RABBITMQ_NODES", Some("RABBITMQ_NODE_PORT")),
        (Role::ConfigDatabase, "CONFIGDB_NODES", Some(database)),
        (Role::Zookeeper, "ZOOKEEPER_NODES", Some("ZOOKEEPER_PORT")),
        (Role::Keystone, "KEYSTONE_AUTH_HOST", Some("KEYSTONE_AUTH_ADMIN_PORT")),
    ];
    let mut env = BTreeMap::new();
    for (role, addresses, port_name) in variables {
        let Some(service) = input.services.get(&role) else { continue };
        let mut all: Vec<String> =
            service.nodes.iter().filter_map(reached).map(|one| one.to_string()).collect();
        if role == Role::Keystone {
            all.truncate(1);
        }
        env.insert(addresses.to_owned(), all.join(","));
        env.extend(port_name.map(|name| (name.to_owned(), port(service).to_string())));
    }
    if let Some(vrouters) = allocation.addresses.get(&VROUTERS) {
        // Spelt so upstream.
        env.insert("KUBERNESTES_NESTED_VROUTER_VIP".to_owned(), vrouters.address.to_string());
        env.insert("VROUTER_PORT".to_owned(), input.vrouter_port.to_string());
    }
    env
}

#[cfg(test)]
mod tests;
