//! How large packets pass between nodes of vrouters without being split on the way, and what came of it. Deliberately not
//! here: how they are sent (`operator`), and what follows from it for MTUs (`plugin`).

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::Seen;

/// On this port of UDP a probe answers packets whose size is tried, beside the ports of tunnels: nothing of OpenSDN has it.
pub const SIZES_PORT: u16 = 24_225;
/// The smallest packet that is tried: each host of IPv4 takes it (RFC 791).
pub const SMALLEST_PACKET: u16 = 576;
/// The largest: the most that interfaces of Ethernet are known to carry.
pub const LARGEST_PACKET: u16 = 9978;

/// What came of it on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PacketFindings {
    /// To so many peers packets passed that are as large as they have to be.
    pub passed: usize,
    /// The other peers that were tried, the first [`crate::MOST_MISSED`].
    pub stopped: Vec<Stopped>,
    /// How many more there are of them.
    pub left_out: usize,
}

/// A peer to which packets did not pass that are as large as they have to be, or of which that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stopped {
    /// The peer.
    pub peer: IpAddr,
    /// How large they have to be: bytes with the header of IP.
    pub wanted: u16,
    /// How large those are that passed; unknown where none was answered.
    pub passes: Seen<u16>,
}
