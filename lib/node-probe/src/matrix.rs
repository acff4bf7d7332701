//! Which nodes try to reach which others, on which ports, and what came of it. All probes are given the same document,
//! and each finds its own place in it by its address, as one DaemonSet has one text for all of its pods. Which peers a
//! node tries is computed here, so that the plugin knows it as well. Deliberately not here: which ports a node needs
//! (`plugin`), and how they are tried (`operator`).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{LARGEST_PACKET, PacketFindings, SMALLEST_PACKET, Transport, WantedPort};

/// So many groups there are at most: of each other one every node tries a peer.
pub const MOST_GROUPS: usize = 16;
/// So many nodes of the control plane try each other in full, also in a sample.
pub const MOST_MEMBERS: usize = 16;
/// So many ports that were not reached are named in an answer.
pub const MOST_MISSED: usize = 256;

/// Nodes that are to reach each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Matrix {
    /// By what a probe of this run is known: no other run has it.
    pub token: String,
    /// For so many seconds peers are tried that are not reached.
    pub seconds: u16,
    /// Which peers each node tries.
    pub extent: Extent,
    /// The nodes: those are together that have the same ports.
    pub groups: Vec<PeerGroup>,
}

/// Which peers a node tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Extent {
    /// All.
    #[default]
    Full,
    /// Some: those behind it at 1, 2, 4 and so on, one of each group, and those of the control plane among themselves.
    Sample,
}

/// Nodes with the same ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PeerGroup {
    /// Their addresses.
    pub addresses: Vec<IpAddr>,
    /// Whether vrouters are there: they need [`PeerGroup::for_vrouters`] of others.
    pub has_vrouter: bool,
    /// Whether something else of OpenSDN is there: it needs [`PeerGroup::for_members`] of others.
    pub is_member: bool,
    /// What vrouters of others need here.
    pub for_vrouters: Ports,
    /// What the control plane of others needs here.
    pub for_members: Ports,
    /// So large are the packets that vrouters of others are to send here whole, in bytes with the header of IP; 0 where
    /// none is tried.
    #[serde(skip_serializing_if = "is_zero")]
    pub packet: u16,
}

// Serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

/// Ports of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ports {
    /// Of TCP, on which the probe of the node answers.
    pub tcp: Vec<u16>,
    /// Of UDP, on which the probe of the node answers.
    pub udp: Vec<u16>,
    /// Of TCP, which the probe of the node leaves to others: a connection is all that is tried.
    pub connect: Vec<u16>,
}

/// How a port is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trial {
    /// It is connected to, and nothing is asked.
    Connect,
    /// The probe there has to answer.
    Answer,
}

impl Ports {
    fn all(&self) -> impl Iterator<Item = (WantedPort, Trial)> {
        let of = |numbers: &[u16], transport: Transport, trial: Trial| {
            let port = move |number: &u16| (WantedPort { number: *number, transport }, trial);
            numbers.iter().map(port).collect::<Vec<_>>()
        };
        let tcp = of(&self.tcp, Transport::Tcp, Trial::Answer);
        let udp = of(&self.udp, Transport::Udp, Trial::Answer);
        let connect = of(&self.connect, Transport::Tcp, Trial::Connect);
        tcp.into_iter().chain(udp).chain(connect)
    }
}

impl PeerGroup {
    /// The ports on which a probe of the group answers.
    pub fn answered(&self) -> BTreeSet<WantedPort> {
        let all = self.for_vrouters.all().chain(self.for_members.all());
        all.filter(|(_, trial)| *trial == Trial::Answer).map(|(port, _)| port).collect()
    }

    /// What a node of this group needs of one of another.
    pub fn needs(&self, of: &Self) -> BTreeMap<WantedPort, Trial> {
        let vrouters = of.for_vrouters.all().filter(|_| self.has_vrouter);
        let members = of.for_members.all().filter(|_| self.is_member);
        vrouters.chain(members).collect()
    }

    /// How large packets are that a node of this group sends one of another; nothing where none is tried.
    pub fn packet_to(&self, of: &Self) -> Option<u16> {
        let packet = self.packet.min(of.packet).min(LARGEST_PACKET);
        (packet >= SMALLEST_PACKET).then_some(packet)
    }
}

impl Matrix {
    /// All nodes in their order, which is that of samples.
    pub fn nodes(&self) -> Vec<(IpAddr, &PeerGroup)> {
        let of = |group: &'_ PeerGroup| group.addresses.len();
        let mut all = Vec::with_capacity(self.groups.iter().map(of).sum());
        for group in &self.groups {
            all.extend(group.addresses.iter().map(|address| (*address, group)));
        }
        all
    }

    /// The place of the node with one of these addresses.
    pub fn place(&self, addresses: &[IpAddr]) -> Option<usize> {
        self.nodes().iter().position(|(address, _)| addresses.contains(address))
    }

    /// The places of the peers that the node at this place tries.
    pub fn peers(&self, place: usize) -> BTreeSet<usize> {
        let count = self.groups.iter().map(|group| group.addresses.len()).sum();
        let mut peers: BTreeSet<usize> = match self.extent {
            Extent::Full => (0..count).collect(),
            Extent::Sample => self.sample(place, count),
        };
        peers.remove(&place);
        peers
    }

    fn sample(&self, place: usize, count: usize) -> BTreeSet<usize> {
        let offsets = (0..usize::BITS).map(|power| 1_usize << power);
        let mut peers: BTreeSet<usize> =
            offsets.take_while(|offset| *offset < count).map(|one| (place + one) % count).collect();
        let mut members = Vec::new();
        let mut is_member = false;
        let mut start = 0;
        for (number, group) in self.groups.iter().enumerate() {
            let length = group.addresses.len();
            let own = (start..start + length).contains(&place);
            if length > 0 && !own && number < MOST_GROUPS {
                peers.insert(start + place % length);
            }
            is_member |= own && group.is_member;
            if group.is_member {
                members.extend((start..start + length).take(MOST_MEMBERS));
            }
            start += length;
        }
        if is_member {
            peers.extend(members.into_iter().take(MOST_MEMBERS));
        }
        peers
    }
}

/// What came of it on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MatrixFindings {
    /// The address by which it found its place.
    pub address: IpAddr,
    /// Since when it answered peers: microseconds since 1970, by its own clock.
    pub since: i64,
    /// Until when it does, by the same clock.
    pub until: i64,
    /// When all that is missed was tried for the last time, by the same clock; none where it was not tried.
    #[serde(default)]
    pub tried: Option<i64>,
    /// Ports on which it could not answer.
    #[serde(default)]
    pub silent: Vec<SilentPort>,
    /// What was not reached, the first [`MOST_MISSED`].
    #[serde(default)]
    pub missed: Vec<Missed>,
    /// How many more were not reached.
    #[serde(default)]
    pub left_out: usize,
    /// How many were not tried: the time was over.
    #[serde(default)]
    pub untried: usize,
    /// How large packets passed, where [`PeerGroup::packet`] asks for it; nothing in an answer of an older release.
    #[serde(default)]
    pub packets: Option<PacketFindings>,
}

/// A port on which a probe could not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SilentPort {
    /// The port.
    #[serde(flatten)]
    pub port: WantedPort,
    /// Why.
    pub why: String,
}

/// A port of a peer that was not reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Missed {
    /// The peer.
    pub peer: IpAddr,
    /// Its port.
    #[serde(flatten)]
    pub port: WantedPort,
    /// What came of the last try.
    pub miss: Miss,
}

/// Why a port was not reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Miss {
    /// Nothing came back, within so many seconds.
    NoAnswer(u16),
    /// It was refused, as where nothing listens.
    Refused,
    /// The network, or this node itself, does not let it through: what the kernel says.
    Rejected(String),
    /// Something answered that is not the probe of that peer.
    Another,
    /// This probe could not try, because of this.
    Untried(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(extent: Extent, controllers: u8, workers: u16) -> Matrix {
        let worker = |number: u16| {
            let [high, low] = number.to_be_bytes();
            IpAddr::from([10, 1, high, low])
        };
        let control = PeerGroup {
            addresses: (0..controllers).map(|number| IpAddr::from([10, 0, 0, number])).collect(),
            is_member: true,
            ..PeerGroup::default()
        };
        let rest = PeerGroup {
            addresses: (0..workers).map(worker).collect(),
            has_vrouter: true,
            ..PeerGroup::default()
        };
        Matrix { extent, groups: vec![control, rest], ..Matrix::default() }
    }

    #[test]
    fn in_full_each_node_tries_all_others() {
        let all = matrix(Extent::Full, 3, 4);
        for place in 0..7 {
            let peers = all.peers(place);
            assert!(peers.len() == 6 && !peers.contains(&place), "{place}: {peers:?}");
        }
    }

    #[test]
    fn in_a_sample_each_node_is_tried_by_others_and_tries_a_bounded_number() {
        for workers in [0, 1, 2, 3, 20, 97, 1000, 4997] {
            let sample = matrix(Extent::Sample, 3, workers);
            let count = usize::from(workers) + 3;
            let mut tried_by = vec![0; count];
            for place in 0..count {
                let peers = sample.peers(place);
                assert!(!peers.contains(&place) && peers.iter().all(|peer| *peer < count));
                assert!(peers.len() <= 13 + MOST_MEMBERS, "{place}: {peers:?}");
                peers.into_iter().for_each(|peer| tried_by[peer] += 1);
            }
            assert!(tried_by.iter().all(|times| *times > 0), "{workers}: {tried_by:?}");
        }
    }

    #[test]
    fn a_sample_leads_from_each_node_to_each_other() {
        let sample = matrix(Extent::Sample, 3, 997);
        let mut reached = BTreeSet::from([0]);
        let mut next = vec![0];
        while let Some(place) = next.pop() {
            next.extend(sample.peers(place).into_iter().filter(|peer| reached.insert(*peer)));
        }
        assert_eq!(reached.len(), 1000);
    }

    #[test]
    fn in_a_sample_the_control_plane_is_tried_in_full_and_by_each_worker() {
        let sample = matrix(Extent::Sample, 5, 200);
        for place in 0..5 {
            let peers = sample.peers(place);
            assert!((0..5).all(|peer| peer == place || peers.contains(&peer)), "{peers:?}");
        }
        assert!((5..205).all(|place| sample.peers(place).iter().any(|peer| *peer < 5)));
    }

    #[test]
    fn vrouters_need_less_than_members() {
        let ports = |tcp: &[u16]| Ports { tcp: tcp.to_vec(), ..Ports::default() };
        let control = PeerGroup {
            is_member: true,
            for_vrouters: Ports { connect: vec![179], ..ports(&[5269]) },
            for_members: ports(&[5269, 2888]),
            ..PeerGroup::default()
        };
        let worker = PeerGroup {
            has_vrouter: true,
            for_vrouters: Ports { udp: vec![4789], ..Ports::default() },
            ..PeerGroup::default()
        };
        let needs = |from: &PeerGroup, of: &PeerGroup| -> Vec<(u16, Trial)> {
            from.needs(of).into_iter().map(|(port, trial)| (port.number, trial)).collect()
        };
        assert_eq!(needs(&worker, &control), [(179, Trial::Connect), (5269, Trial::Answer)]);
        assert_eq!(needs(&control, &control), [(2888, Trial::Answer), (5269, Trial::Answer)]);
        assert_eq!(needs(&worker, &worker), [(4789, Trial::Answer)]);
        assert_eq!(needs(&control, &worker), []);
        let numbers: Vec<u16> = control.answered().iter().map(|port| port.number).collect();
        assert_eq!(numbers, [2888, 5269]);
    }
}
