//! What nodes are to reach of each other, by which components run on them and what they answered before: the document
//! that all probes are given, and who has which place in it. It is bounded whatever the number of nodes, as it is a
//! variable of pods. On a node where pods of components are, a probe listens nowhere, so that it takes no port from one
//! that restarts. Deliberately not here: how it is tried (`operator`), and what comes of it
//! (`crate::checks::probed_matrix`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use opensdn_node_probe::{
    Extent, FORMAT, Matrix, NodeFindings, PeerGroup, Ports, Transport, Wanted, WantedPort,
};
use serde_json::Value;

use super::{Answers, Nodes};
use crate::checks::mtu;
use crate::checks::ports::{self, Port};
use crate::checks::vrouter_settings::encapsulations;
use crate::checks::world::World;
use crate::snapshot::name;

/// Above it, each node tries some others only, unless it is said.
const MOST_IN_FULL: usize = 20;
/// So many bytes of groups and addresses a document has: pods are stored with it, and the kernel takes 128 KiB.
const LONGEST: usize = 48 << 10;
/// Peers are tried so long, and longer where there are many: their pods are made one after the other.
const SECONDS: usize = 20;
const NODES_A_SECOND: usize = 20;
const MOST_SECONDS: usize = 90;
/// So long at most nodes have to answer: with the first question a run is not older than one that was killed.
pub(crate) const MOST_TIMEOUT: Duration = Duration::from_secs(4 * 60);

const VROUTER: &str = "Vrouter";
/// What vrouters and what runs beside them asks of others, by the numbers that these ports have by default: agents the
/// control nodes (XMPP, and XMPP and names of DNS), all of them collectors, provisioners the Config API; and tunnels.
/// The ports for introspection are for people.
const FOR_VROUTERS: [(&str, u16); 7] = [
    ("Analytics", 8086),
    ("Config", 8082),
    ("Control", 53),
    ("Control", 5269),
    ("Control", 8093),
    (VROUTER, 4789),
    (VROUTER, 6635),
];
/// What is asked on the node itself alone: JMX and rndc.
const LOCAL: [(&str, u16); 2] = [("Cassandra", 7201), ("Control", 8094)];
/// A control node that waits for the BGP of a peer takes a connection from the peer's address for it (tf-controller
/// `src/bgp/state_machine.cc`), so that it is left alone.
const BGP: (&str, u16) = ("Control", 179);
/// Which UDP is needed by which encapsulation.
const TUNNELS: [(u16, &str); 2] = [(4789, "VXLAN"), (6635, "MPLSoUDP")];

/// A node that tries others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its name.
    pub(crate) node: String,
    /// What others need of it.
    pub(crate) ports: BTreeMap<WantedPort, &'static str>,
    /// What of these is not tried, as something has the port; by whom it is needed.
    pub(crate) held: BTreeMap<WantedPort, Audience>,
}

/// Who needs a port of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Audience {
    /// Vrouters do.
    pub(crate) vrouters: bool,
    /// What else there is of OpenSDN does.
    pub(crate) members: bool,
}

/// What nodes are to reach of each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// What probes are given.
    pub(crate) matrix: Matrix,
    /// The nodes in it, by the addresses by which they find their places.
    pub(crate) peers: BTreeMap<IpAddr, Peer>,
    /// Nodes that are not in it, with the reason.
    pub(crate) left_out: BTreeMap<String, String>,
}

/// What nodes were to reach of each other, and what they answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tried {
    pub(crate) plan: Plan,
    pub(crate) answers: Answers,
}

/// What a node is in the matrix.
struct Place {
    address: IpAddr,
    peer: Peer,
    group: PeerGroup,
}

impl Plan {
    /// By what nodes answered. A probe is known by the token.
    pub(crate) fn of(
        world: &World,
        answers: &Answers,
        extent: Option<Extent>,
        token: &str,
    ) -> Self {
        let ports = ports::of_nodes(world);
        let objects: HashMap<&str, &Value> =
            world.nodes.items().iter().map(|node| (name(node), node)).collect();
        let mut plan = Self::default();
        let mut places = Vec::new();
        for (node, answer) in answers {
            // Of one that did not answer the reason is known.
            let (Ok(answer), Some(ports)) = (answer, ports.get(node.as_str())) else { continue };
            let findings = &answer.findings;
            let object = objects.get(node.as_str()).copied();
            match findings.addresses.first() {
                Some(address) => {
                    places.push(place(
                        world,
                        object.unwrap_or(&Value::Null),
                        ports,
                        (*address, findings),
                    ));
                }
                None => {
                    let why = "the pod was not given the node's addresses".to_owned();
                    plan.left_out.insert(node.clone(), why);
                }
            }
        }
        // Those of the control plane first: all others need them.
        places.sort_by_key(|one| !one.group.is_member);
        let is_small = places.len() <= MOST_IN_FULL;
        let default = if is_small { Extent::Full } else { Extent::Sample };
        let seconds = (SECONDS + places.len() / NODES_A_SECOND).min(MOST_SECONDS);
        plan.matrix = Matrix {
            token: token.to_owned(),
            seconds: u16::try_from(seconds).unwrap_or(u16::MAX),
            extent: extent.unwrap_or(default),
            groups: Vec::new(),
        };
        let mut length = 0;
        for one in places {
            plan.add(one, &mut length);
        }
        plan
    }

    /// Adds a node, if there is room for it.
    fn add(&mut self, one: Place, length: &mut usize) {
        let Place { address, peer, group } = one;
        if let Some(other) = self.peers.get(&address) {
            let why = format!("{} has the same address {address}", other.node);
            self.left_out.insert(peer.node, why);
            return;
        }
        let groups = &mut self.matrix.groups;
        let same = groups.iter().position(|other| is_same(other, &group));
        let of_group = match same {
            Some(_) => 0,
            None => serde_json::to_string(&group).map_or(LONGEST, |text| text.len() + 1),
        };
        // With its quotes and its comma.
        let more = of_group + address.to_string().len() + 3;
        if *length + more > LONGEST {
            let why =
                "there are more nodes than a pod can be given at once: name some with --node or -l";
            self.left_out.insert(peer.node, why.to_owned());
            return;
        }
        *length += more;
        let at = same.unwrap_or(groups.len());
        if same.is_none() {
            groups.push(group);
        }
        if let Some(group) = groups.get_mut(at) {
            group.addresses.push(address);
        }
        self.peers.insert(address, peer);
    }

    /// The nodes that are asked, if there are others for each.
    pub(crate) fn nodes(&self) -> Option<Nodes> {
        let nodes = self.peers.values().map(|peer| (peer.node.clone(), None));
        (self.peers.len() > 1).then(|| nodes.collect())
    }

    /// What they look for; nothing but that. In this time they have to answer.
    pub(crate) fn wanted(&self, timeout: Duration) -> Wanted {
        let mut matrix = self.matrix.clone();
        let half = u16::try_from(timeout.as_secs() / 2).unwrap_or(u16::MAX).max(1);
        matrix.seconds = matrix.seconds.min(half);
        Wanted {
            format: FORMAT,
            module: super::wanted::MODULE.to_owned(),
            matrix: Some(matrix),
            ..Wanted::default()
        }
    }
}

fn is_same(one: &PeerGroup, other: &PeerGroup) -> bool {
    let of = |group: &PeerGroup| (group.has_vrouter, group.is_member);
    of(one) == of(other)
        && one.packet == other.packet
        && (&one.for_vrouters, &one.for_members) == (&other.for_vrouters, &other.for_members)
}

fn place(
    world: &World,
    node: &Value,
    ports: &BTreeSet<Port>,
    (address, findings): (IpAddr, &NodeFindings),
) -> Place {
    let mut group = PeerGroup {
        has_vrouter: ports.iter().any(|port| port.kind == VROUTER),
        is_member: ports.iter().any(|port| port.kind != VROUTER),
        ..PeerGroup::default()
    };
    if group.has_vrouter {
        group.packet = mtu::packet(world, node, findings).unwrap_or_default();
    }
    let node_name = name(node);
    let mut peer =
        Peer { node: node_name.to_owned(), ports: BTreeMap::new(), held: BTreeMap::new() };
    let is_empty = world.ours_on(node_name).is_some_and(|pods| pods.is_empty());
    let encapsulations = encapsulations(world, node);
    for port in ports {
        let Some((wanted, audience)) = needed(port, encapsulations.as_ref()) else { continue };
        let is_held = findings.ports.iter().any(|one| one.port == wanted && one.address == address);
        peer.ports.insert(wanted, port.kind);
        let is_tcp = wanted.transport == Transport::Tcp;
        let is_free = is_empty && !is_held;
        if !is_free && (!is_tcp || (port.kind, port.default) == BGP) {
            peer.held.insert(wanted, audience);
            continue;
        }
        let of = [
            (audience.vrouters, &mut group.for_vrouters),
            (audience.members, &mut group.for_members),
        ];
        for (_, ports) in of.into_iter().filter(|(is_needed, _)| *is_needed) {
            numbers(ports, is_free, wanted.transport).push(wanted.number);
        }
    }
    Place { address, peer, group }
}

fn numbers(ports: &mut Ports, is_free: bool, transport: Transport) -> &mut Vec<u16> {
    match (is_free, transport) {
        (true, Transport::Tcp) => &mut ports.tcp,
        (_, Transport::Udp) => &mut ports.udp,
        (false, Transport::Tcp) => &mut ports.connect,
    }
}

/// By whom a port is needed, if by any other node.
fn needed(
    port: &Port,
    encapsulations: Option<&BTreeSet<String>>,
) -> Option<(WantedPort, Audience)> {
    let known = (port.kind, port.default);
    let is_tunnel = |one: &&(u16, &str)| port.kind == VROUTER && one.0 == port.default;
    let tunnel = TUNNELS.iter().find(is_tunnel).map(|(_, encapsulation)| *encapsulation);
    let is_used = match (tunnel, encapsulations) {
        (Some(one), Some(stated)) => stated.contains(one),
        _ => true,
    };
    let audience =
        Audience { vrouters: FOR_VROUTERS.contains(&known), members: port.kind != VROUTER };
    let is_needed = (audience.vrouters || audience.members) && !LOCAL.contains(&known) && is_used;
    let is_udp = port.protocol == Transport::Udp.word();
    let transport = if is_udp { Transport::Udp } else { Transport::Tcp };
    let number = u16::try_from(port.number).ok().filter(|_| is_needed)?;
    Some((WantedPort { number, transport }, audience))
}

#[cfg(test)]
mod tests;
