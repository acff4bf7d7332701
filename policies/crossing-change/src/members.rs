//! Services that would run on other nodes: while an Upgrade is at work, and while members of a data store come and go.
//! Nodes that get or lose a label are not seen here; the operator lets one member in or out at a time whatever is asked.

use std::collections::{BTreeMap, BTreeSet};

use opensdn_policy_components::{
    ComponentView, Field,
    nodes::{Selector, selected},
    null_as_default,
};
use opensdn_policy_sdk::{Failure, Index, Message, Outcome, Pointer, Severity, Verdict};
use serde::Deserialize;

use crate::{Spec, upgrades::Upgrade};

pub(crate) const MOVED: Message = Message {
    code: "OSDN2011",
    severity: Severity::Deny,
    title: "a service would run on other nodes while an Upgrade is at work",
    explanation: "Pods that come and go are not those that the Upgrade has planned to replace. The gate behind each wave waits \
        for all services of the Manager: with one that moves a wave may not be well in time, and is taken back.",
    hint: "wait until the Upgrade is over, take it back, or delete it: kubectl opensdn upgrade status",
};

pub(crate) const IN_FLIGHT: Message = Message {
    code: "OSDN2014",
    severity: Severity::Deny,
    title: "other members are asked for while members of the service change",
    explanation: "Members of ZooKeeper, RabbitMQ and Cassandra come and go one at a time, each after the others have its data. \
        While one does, or is started again, another set of members may lack one that has the data, or take back half of a \
        change. The set that was there before may be asked for again: nodes on which its pods are, one less at most.",
    hint: "wait until the object of the service is Ready; a node that is lost for good is deleted: kubectl delete node NODE",
};

const READS: &[&str] = &["/status/conditions", "/status/nodes"];

pub(crate) const CASSANDRAS: Index =
    Index { name: "cassandras", group: "tf.tungsten.io", kind: "Cassandra", key: "", reads: READS };
pub(crate) const RABBITMQS: Index =
    Index { name: "rabbitmqs", group: "tf.tungsten.io", kind: "Rabbitmq", key: "", reads: READS };
pub(crate) const ZOOKEEPERS: Index =
    Index { name: "zookeepers", group: "tf.tungsten.io", kind: "Zookeeper", key: "", reads: READS };

/// By this the operator says that members of a service change (`operator/src/reconcile/members.rs`).
const CHANGES: &str = "MembersChange";

/// What is read of the status of a service that counts its members.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
    /// Its pods by name.
    #[serde(deserialize_with = "null_as_default")]
    nodes: BTreeMap<String, Node>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(deserialize_with = "null_as_default")]
    reason: String,
    #[serde(deserialize_with = "null_as_default")]
    message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Node {
    #[serde(deserialize_with = "null_as_default")]
    hostname: String,
}

impl ServiceStatus {
    /// That of the object of a service; nothing of one that does not count its members, or is not there yet.
    pub(crate) fn read(kind: &str, namespace: &str, name: &str) -> Result<Self, Failure> {
        let index = [CASSANDRAS, RABBITMQS, ZOOKEEPERS].into_iter().find(|one| one.kind == kind);
        let Some(index) = index else { return Ok(Self::default()) };
        let Some(found) = index.get(namespace, name)? else { return Ok(Self::default()) };
        Ok(Self {
            conditions: found.part(0)?.unwrap_or_default(),
            nodes: found.part(1)?.unwrap_or_default(),
        })
    }

    /// What the operator is about to do with its members.
    fn change(&self) -> Option<&str> {
        let condition = self.conditions.iter().find(|one| one.reason == CHANGES);
        condition.map(|one| one.message.as_str())
    }

    /// Whether no member is asked for that is not there, and no more than one goes.
    fn takes_back(&self, nodes: &BTreeSet<String>) -> bool {
        let running: BTreeSet<_> = self.nodes.values().map(|node| node.hostname.clone()).collect();
        nodes.is_subset(&running) && nodes.len() + 1 >= running.len() && !nodes.is_empty()
    }
}

/// A service that would run elsewhere, outside of an Upgrade.
pub(crate) fn judge(
    service: &ComponentView<'_, Spec>,
    status: &ServiceStatus,
    (was, is): (Option<&Selector>, &Field<Option<&Selector>>),
    verdict: &mut Verdict,
) -> Outcome {
    let Some(change) = status.change().filter(|_| was != is.value) else { return Ok(()) };
    let before: BTreeSet<_> = selected(was)?.into_iter().collect();
    let after: BTreeSet<_> = selected(is.value)?.into_iter().collect();
    if before == after || status.takes_back(&after) {
        return Ok(());
    }
    let title = service.title();
    let text =
        format!("{title}: its members change right now ({change}), and others would be asked for");
    let hint = format!(
        "wait until {title} is Ready; to take back what runs, select the nodes on which its pods are ({}); a node that is \
         lost for good is deleted: kubectl delete node NODE",
        status.nodes.values().map(|node| node.hostname.as_str()).collect::<Vec<_>>().join(", ")
    );
    verdict.add(IN_FLIGHT.at(&is.at).says(text).hint(hint));
    Ok(())
}

/// Services that would run elsewhere while an Upgrade is at work, by one field at `at`.
pub(crate) fn judge_move(
    upgrade: &Upgrade,
    at: &Pointer,
    services: &[&ComponentView<'_, Spec>],
    verdict: &mut Verdict,
) {
    let titles = services.iter().map(|one| one.title()).collect::<Vec<_>>().join(", ");
    let text = format!("{titles}: would run on other nodes while {} is at work", upgrade.title());
    verdict.add(MOVED.at(at).says(text).hint(upgrade.hint()));
}
