//! Nodes that try to reach each other: this probe answers on the ports that are free here, and tries those of its peers
//! until they answer or the time is over, as the pods of peers start earlier or later. A peer answers longer than it
//! tries, so that those that started later find it. Answering is in `answering`, one try in `trying`, how large packets pass
//! in `packets`.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::iter;
use opensdn_node_probe::{
    MOST_MISSED, Matrix, MatrixFindings, Miss, Missed, PeerGroup, SIZES_PORT, Transport, Trial,
    WantedPort,
};
use tokio::time::{Instant, sleep};

use super::clock;

mod answering;
mod packets;
mod trying;

/// So many ports are tried at once.
const AT_ONCE: usize = 64;
/// How long until what was missed is tried again.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// No plugin asks for more.
const LONGEST: Duration = Duration::from_secs(120);
/// So long peers find it beyond the time in which both try.
const MORE: Duration = Duration::from_secs(10);

/// A port of a peer.
#[derive(Clone, Debug)]
struct Try {
    peer: IpAddr,
    port: WantedPort,
    trial: Trial,
    missed: Option<Miss>,
}

/// Answers peers and tries them.
///
/// # Errors
/// This node is none of those that are meant.
pub(super) async fn look(wanted: &Matrix, own: &[IpAddr]) -> Result<MatrixFindings, String> {
    let Some(place) = wanted.place(own) else {
        return Err(format!("the node has none of the addresses that are tried: it has {own:?}"));
    };
    let nodes = wanted.nodes();
    let Some((address, group)) = nodes.get(place).copied() else {
        return Err("the node has no place among those that are tried".to_owned());
    };
    let seconds = Duration::from_secs(wanted.seconds.into()).min(LONGEST);
    let answers_for = 2 * seconds + MORE;
    let end = Instant::now() + answers_for;
    let silent = answering::start(&wanted.token, address, answered(group), end).await;
    let since = clock::now();
    let until = since + i64::try_from(answers_for.as_micros()).unwrap_or(i64::MAX / 2);
    let peers = wanted.peers(place).into_iter();
    let peers: Vec<(IpAddr, &PeerGroup)> =
        peers.filter_map(|peer| nodes.get(peer).copied()).collect();
    let tries = peers.iter().flat_map(|(peer, of)| {
        let needs = group.needs(of).into_iter();
        needs.map(|(port, trial)| Try { peer: *peer, port, trial, missed: None })
    });
    let paths = peers.iter().filter_map(|(peer, of)| path(*peer, group, of));
    let deadline = Instant::now() + seconds;
    let (tried, packets) = tokio::join!(
        all(&wanted.token, tries.collect(), deadline),
        packets::look(&wanted.token, paths.collect(), deadline),
    );
    let mut missed = tried.missed;
    let left_out = missed.len().saturating_sub(MOST_MISSED);
    missed.truncate(MOST_MISSED);
    let (tried, untried) = (tried.last, tried.untried);
    let packets = Some(packets);
    Ok(MatrixFindings { address, since, until, tried, silent, missed, left_out, untried, packets })
}

/// The ports on which this probe answers.
fn answered(group: &PeerGroup) -> BTreeSet<WantedPort> {
    let mut ports = group.answered();
    if group.packet > 0 {
        ports.insert(WantedPort { number: SIZES_PORT, transport: Transport::Udp });
    }
    ports
}

/// How packets are tried to the peer, if they are: best on the ports of tunnels, which firewalls let through.
fn path(peer: IpAddr, own: &PeerGroup, of: &PeerGroup) -> Option<packets::Path> {
    let packet = own.packet_to(of).filter(|_| peer.is_ipv4())?;
    let ports = of.for_vrouters.udp.iter().copied().chain([SIZES_PORT]).collect();
    Some(packets::Path { peer, packet, ports })
}

/// What came of all tries.
struct Tried {
    missed: Vec<Missed>,
    /// When all that is missed was tried for the last time.
    last: Option<i64>,
    untried: usize,
}

/// Tries in rounds what was not reached, until the deadline.
async fn all(token: &str, mut open: Vec<Try>, deadline: Instant) -> Tried {
    let mut settled = Vec::new();
    let mut last = None;
    loop {
        let start = clock::now();
        let mut is_whole = true;
        let round = std::mem::take(&mut open).into_iter().map(|one| again(token, one, deadline));
        let round: Vec<(Try, bool)> = iter(round).buffer_unordered(AT_ONCE).collect().await;
        for (one, is_tried) in round {
            is_whole &= is_tried;
            match (&one.missed, one.trial) {
                (None, _) if is_tried => {}
                // It came through to where nothing listens: that does not change by waiting.
                (Some(Miss::Refused), Trial::Connect) => settled.push(one),
                _ => open.push(one),
            }
        }
        if is_whole {
            last = Some(start);
        }
        if open.is_empty() || Instant::now() >= deadline {
            break;
        }
        sleep(RETRY_DELAY).await;
    }
    let untried = open.iter().filter(|one| one.missed.is_none()).count();
    let found = open.into_iter().chain(settled).filter_map(|one| {
        let Try { peer, port, missed, .. } = one;
        Some(Missed { peer, port, miss: missed? })
    });
    let mut missed: Vec<Missed> = found.collect();
    // What says most is first, as the last are left out: one that is refused may only be late.
    missed.sort_by_key(|one| (one.miss == Miss::Refused, one.peer, one.port));
    Tried { missed, last, untried }
}

/// The same with what came of it, and whether there was time for it.
async fn again(token: &str, mut one: Try, deadline: Instant) -> (Try, bool) {
    if Instant::now() >= deadline {
        return (one, false);
    }
    let at = SocketAddr::new(one.peer, one.port.number);
    one.missed = match (one.port.transport, one.trial) {
        (Transport::Tcp, Trial::Connect) => trying::connect(at).await.err(),
        (Transport::Tcp, Trial::Answer) => trying::tcp(at, token).await.err(),
        (Transport::Udp, _) => trying::udp(at, token).await.err(),
    };
    (one, true)
}

#[cfg(test)]
mod tests;
