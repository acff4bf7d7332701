//! Nodes that are registered in the Config API and are in the cluster no more are registered there no more after a while:
//! nothing else of OpenSDN removes them, and agents and control nodes look for them without an end. A node is gone when
//! none of its name and none with its address is left in the cluster: addresses change, and a name or an address alone
//! may be another's. Only what was marked as this cluster's goes, few at once.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Instant;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType};
use opensdn_config_api::ConfigApi;
use opensdn_config_api::client;
use opensdn_config_api::deregistration::{
    Expected, Fate, NodeKind, Registered, Workloads, deregister, mark, registered,
};
use opensdn_config_api::ownership::ClusterId;

use crate::cloud::pass::Pass;
use crate::node::Node;

/// So many in one pass.
const MOST: usize = 4;

/// What is there, by which others are known to be gone.
#[derive(Debug)]
pub(in crate::cloud) struct Gone {
    /// The addresses of the members of each kind.
    members: Vec<(NodeKind, BTreeSet<IpAddr>)>,
    /// The names of all nodes of the cluster, without their domains.
    names: BTreeSet<String>,
    /// The addresses of all of them.
    addresses: BTreeSet<IpAddr>,
}

/// What is to be done about a node that is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fits {
    /// It is a member, and is marked as that.
    Member,
    /// It is in the cluster.
    Present,
    /// It is not.
    Gone,
}

impl Gone {
    pub(super) fn new(members: Vec<(NodeKind, BTreeSet<IpAddr>)>, nodes: &[Node]) -> Self {
        let addresses = nodes.iter().flat_map(|node| node.address.iter().chain(&node.others));
        Self {
            members,
            names: nodes.iter().map(|node| short(&node.name)).collect(),
            addresses: addresses.filter_map(|address| address.parse().ok()).collect(),
        }
    }

    fn fits(&self, members: &BTreeSet<IpAddr>, node: &Registered) -> Fits {
        let is_there = |all: &BTreeSet<IpAddr>| node.address.is_some_and(|one| all.contains(&one));
        let is_named = self.names.contains(&short(&node.name));
        match (is_there(members), is_named || is_there(&self.addresses)) {
            (true, _) => Fits::Member,
            (false, true) => Fits::Present,
            // Without a node nothing is known.
            (false, false) if self.names.is_empty() => Fits::Present,
            (false, false) => Fits::Gone,
        }
    }

    /// Marks the members, and takes away what is gone. Whether it waits for some.
    pub(super) async fn forget(
        &self,
        pass: &Pass<'_>,
        api: &ConfigApi,
        id: &ClusterId,
    ) -> Result<bool, client::Error> {
        let (mut waits, mut left) = (false, MOST);
        for (kind, members) in &self.members {
            for node in registered(api, *kind).await? {
                let Some(address) = node.address else { continue };
                let expected = Expected {
                    kind: *kind,
                    name: &node.name,
                    address,
                    sub_cluster: node.sub_cluster.as_deref(),
                    cluster: id,
                };
                let (since, what) =
                    (&pass.clouds.since, format!("{} {}", kind.object(), node.name));
                let fits = self.fits(members, &node);
                if fits != Fits::Gone {
                    since.forget(pass.uid(), &what);
                    if fits == Fits::Member && node.cluster.is_none() {
                        mark(api, &expected).await?;
                    }
                } else if is_of(&node, id) {
                    let gone_for = since.time(pass.uid(), &what, Instant::now());
                    if gone_for < pass.clouds.forget_after || left == 0 {
                        waits = true;
                        continue;
                    }
                    left -= 1;
                    let done = deregister(api, &expected, Workloads::Respect).await?;
                    publish(pass, &node, &done.node).await;
                    since.forget(pass.uid(), &what);
                }
            }
        }
        Ok(waits)
    }
}

/// As agents know their hosts: with or without a domain, in any case.
fn short(name: &str) -> String {
    name.split('.').next().unwrap_or_default().to_ascii_lowercase()
}

fn is_of(node: &Registered, id: &ClusterId) -> bool {
    node.cluster.as_deref() == Some(id.to_string().as_str())
}

async fn publish(pass: &Pass<'_>, node: &Registered, fate: &Fate) {
    let (type_, reason, note) = match fate {
        Fate::Deleted => (
            EventType::Normal,
            "NodeDeregistered",
            format!("removed the registration of {node}: the cluster has no such node any more"),
        ),
        Fate::Absent => return,
        Fate::Left(why) => (
            EventType::Warning,
            "NodeLeftRegistered",
            format!("{node} is gone, and stays registered in the Config API: {why}"),
        ),
    };
    let namespace = &pass.object.metadata.namespace;
    tracing::info!(namespace, reason, note, "looked at a registration of a node that is gone");
    let (reason, action) = (reason.to_owned(), "Deregister".to_owned());
    // Events with one reason are counted, and only the first has its note.
    let secondary = ObjectReference {
        kind: Some(node.kind.object().to_owned()),
        name: Some(node.name.clone()),
        ..ObjectReference::default()
    };
    let secondary = Some(secondary);
    pass.publish(Event { type_, reason, note: Some(note), action, secondary }).await;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_node_whose_name_or_address_is_in_the_cluster_is_never_gone() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let node = |name: &str, address: Option<&str>, others: &[&str]| Node {
            name: name.to_owned(),
            labels: BTreeMap::new(),
            address: address.map(str::to_owned),
            others: others.iter().map(|one| (*one).to_owned()).collect(),
            drained_for: None,
            is_lost: false,
            taints: Vec::new(),
        };
        let nodes =
            [node("master1", Some("10.0.0.1"), &["10.1.0.1"]), node("c2.example.com", None, &[])];
        let gone = Gone::new(vec![(NodeKind::Control, [ip("10.1.0.1")].into())], &nodes);
        let (_, members) = &gone.members[0];
        let fits = |name: &str, address: &str| {
            gone.fits(
                members,
                &Registered {
                    kind: NodeKind::Control,
                    name: name.to_owned(),
                    address: Some(ip(address)),
                    sub_cluster: None,
                    cluster: None,
                },
            )
        };
        assert_eq!(fits("master1", "10.1.0.1"), Fits::Member);
        assert_eq!(fits("other", "10.1.0.1"), Fits::Member);
        assert_eq!(
            fits("MASTER1.example.com", "10.9.9.9"),
            Fits::Present,
            "an address that changed"
        );
        assert_eq!(fits("c2", "10.9.9.9"), Fits::Present, "a node without an address");
        assert_eq!(fits("other", "10.0.0.1"), Fits::Present);
        assert_eq!(fits("other", "10.9.9.9"), Fits::Gone);
        let nothing = Gone::new(vec![(NodeKind::Control, BTreeSet::new())], &[]);
        let (_, members) = &nothing.members[0];
        let registered = Registered {
            kind: NodeKind::Control,
            name: "a".to_owned(),
            address: Some(ip("10.9.9.9")),
            sub_cluster: None,
            cluster: None,
        };
        assert_eq!(nothing.fits(members, &registered), Fits::Present);
    }
}
