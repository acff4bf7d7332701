//! What a node of RabbitMQ says of the cluster, and what all of them come to (pure).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Answers, Member};
use crate::ensemble::Answer;
use crate::exec::brief;

/// What a node knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Status {
    own: String,
    members: BTreeSet<String>,
    running: BTreeSet<String>,
}

/// As `rabbitmqctl cluster_status --formatter json` has it; before 3.8 members are in `nodes`.
#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    disk_nodes: BTreeSet<String>,
    #[serde(default)]
    ram_nodes: BTreeSet<String>,
    #[serde(default)]
    nodes: BTreeMap<String, BTreeSet<String>>,
    #[serde(default)]
    running_nodes: BTreeSet<String>,
    #[serde(default)]
    partitions: Value,
}

impl Status {
    /// The name of the node in a line, and what it says.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (own, json) = text.trim_start().split_once('\n').unwrap_or_default();
        let said: Said = serde_json::from_str(json.trim())
            .map_err(|error| format!("failed to read what it says of the cluster: {error}"))?;
        let Said { disk_nodes, ram_nodes, nodes, running_nodes, partitions } = said;
        let is_parted = match &partitions {
            Value::Object(all) => !all.is_empty(),
            Value::Array(all) => !all.is_empty(),
            _ => false,
        };
        if is_parted {
            let partitions = brief(&partitions.to_string());
            return Err(format!("is parted from others by the network: {partitions}"));
        }
        let own = own.trim().to_owned();
        if !running_nodes.contains(&own) {
            return Err(format!("{own} does not serve yet, or not any more"));
        }
        let members =
            disk_nodes.into_iter().chain(ram_nodes).chain(nodes.into_values().flatten()).collect();
        Ok(Self { own, members, running: running_nodes })
    }

    pub(super) fn members(&self) -> &BTreeSet<String> {
        &self.members
    }

    pub(super) fn has_exactly(&self, numbers: impl Iterator<Item = u32>) -> bool {
        let own: BTreeSet<u32> = self.members.iter().map(|node| number_of(node)).collect();
        own == numbers.collect()
    }
}

/// What all come to. RabbitMQ has no versions of its list and no leader. So the list counts that most have who answer,
/// and if no list has most, none does; who is not seen by all others does not serve; and that member leads, which
/// means that it is notified and started again last, whose name comes first.
pub(super) fn answers(said: BTreeMap<String, Result<Status, String>>) -> Answers {
    let good = || said.values().flatten();
    let mut lists: BTreeMap<&BTreeSet<String>, usize> = BTreeMap::new();
    for status in good() {
        *lists.entry(&status.members).or_default() += 1;
    }
    let count = good().count();
    let list = lists.into_iter().find(|(_, times)| times * 2 > count).map(|(list, _)| list.clone());
    let agree: Vec<Status> =
        good().filter(|status| Some(&status.members) == list.as_ref()).cloned().collect();
    let leader = agree.iter().map(|status| status.own.clone()).min();
    let judge = |status: Status| {
        if Some(&status.members) != list.as_ref() {
            let members: Vec<_> = status.members.iter().map(String::as_str).collect();
            return Err(format!("lists other members than others: {}", members.join(" ")));
        }
        let unseen = agree.iter().find(|other| !other.running.contains(&status.own));
        if let Some(other) = unseen {
            return Err(format!("{} does not see it", other.own));
        }
        let is_leader = Some(&status.own) == leader.as_ref();
        let members =
            status.members.iter().map(|node| Member { id: number_of(node), host: host_of(node) });
        Ok(Answer { members: members.collect(), is_leader, ..Answer::default() })
    };
    said.into_iter().map(|(address, status)| (address, status.and_then(judge))).collect()
}

/// Of `rabbit@192.0.2.1`, or, as tf-operator names them, `rabbit@NODE.DOMAIN`.
pub(super) fn host_of(node: &str) -> String {
    node.split_once('@').map_or(node, |(_, host)| host).to_owned()
}

/// A number by which a node is found again: it has none itself.
pub(super) fn number_of(node: &str) -> u32 {
    let digest = Sha256::digest(node.as_bytes());
    digest.iter().take(4).fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

#[cfg(test)]
mod tests;
