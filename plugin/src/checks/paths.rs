//! How large packets pass whole between nodes of vrouters, by what the nodes tried of each other: a path may carry less than
//! the interfaces at both of its ends. Deliberately not here: what that means for the MTU of pods (`mtu`).

use std::collections::BTreeMap;

use opensdn_node_probe::{NodeFindings, Seen};
use serde_json::Value;

use super::fabric::{self, legs};
use super::few;
use super::probed::Said;
use super::probed_devices::uncertain;
use super::probed_matrix::answer_of;
use super::world::World;
use crate::probe::matrix::Tried;
use crate::snapshot::name;

const OLDER: &str =
    "the image of its probe does not try it: take the image of this release with --probe-image";

/// What a node found of the paths to others.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// Peers by how large packets pass to them and how large these have to be, where that is less.
    pub(super) narrow: BTreeMap<(u16, u16), Vec<String>>,
    /// What is not known.
    pub(super) unknown: Vec<Said>,
}

impl Paths {
    /// The least that passes to a peer, where less passes than has to.
    pub(super) fn least(&self) -> Option<u16> {
        self.narrow.keys().map(|(passes, _)| *passes).min()
    }
}

/// Whether tunnels of the node leave by the address by which nodes try each other.
pub(crate) fn are_of_tunnels(world: &World, node: &Value, findings: &NodeFindings) -> bool {
    let by =
        findings.addresses.first().and_then(|address| fabric::interface_of(findings, *address));
    legs(world, node, findings).is_ok_and(|legs| legs.iter().any(|one| Some(&*one.name) == by))
}

/// What the node found; nothing where it was not to try others.
pub(super) fn of_node(world: &World, node: &Value) -> Option<Paths> {
    let tried = world.matrix.as_ref()?;
    let plan = &tried.plan;
    let own = name(node);
    if let Some(why) = plan.left_out.get(own) {
        return Some(not_known(why));
    }
    let place =
        plan.peers.iter().find(|(_, peer)| peer.node == own).map(|(address, _)| *address)?;
    let nodes = plan.matrix.nodes();
    let place = plan.matrix.place(&[place])?;
    let (_, group) = nodes.get(place)?;
    let peers = plan.matrix.peers(place);
    let with_vrouters = peers.into_iter().filter_map(|peer| nodes.get(peer));
    let with_vrouters: Vec<_> = with_vrouters.filter(|(_, of)| of.has_vrouter).collect();
    if with_vrouters.is_empty() {
        return None;
    }
    if group.packet == 0 {
        let why = "tunnels leave by another interface than that of the node's address";
        return Some(not_known(why));
    }
    Some(found(tried, own))
}

fn not_known(why: &str) -> Paths {
    let text = format!("whether packets pass whole to other nodes was not tried: {why}");
    Paths { unknown: vec![uncertain(text)], ..Paths::default() }
}

fn found(tried: &Tried, own: &str) -> Paths {
    let findings = match answer_of(tried, own) {
        Ok((_, findings)) => findings,
        Err(why) => return not_known(&why),
    };
    let Some(packets) = &findings.packets else { return not_known(OLDER) };
    let mut paths = Paths::default();
    let mut silent: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for one in &packets.stopped {
        let peer = tried.plan.peers.get(&one.peer);
        let peer = peer.map_or_else(|| one.peer.to_string(), |peer| peer.node.clone());
        match &one.passes {
            Seen::Is(passes) => {
                paths.narrow.entry((*passes, one.wanted)).or_default().push(peer);
            }
            Seen::Unknown(why) => silent.entry(why).or_default().push(peer),
        }
    }
    paths.unknown = silent
        .into_iter()
        .map(|(why, peers)| {
            let peers = few(&peers);
            uncertain(format!("whether packets pass whole to {peers} is not known: {why}"))
        })
        .collect();
    if packets.left_out > 0 {
        let text = format!("and {} more to which packets did not pass", packets.left_out);
        paths.unknown.push(uncertain(text));
    }
    paths
}
