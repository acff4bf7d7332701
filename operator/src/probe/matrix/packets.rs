//! How large packets pass to peers whole: datagrams of UDP that may not be split on the way (DF), whatever the kernel
//! believes of the path. A peer answers each with its length. First comes a small one, until the peer is there; then one of
//! the size that is wanted; and where that does not pass, several sizes at once between those that do and those that do
//! not, until they meet.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::iter;
use opensdn_node_probe::{MOST_MISSED, PacketFindings, SMALLEST_PACKET, Seen, Stopped};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep, timeout};

use super::RETRY_DELAY;
use super::answering::answer_of_size;

/// So many peers are tried at once.
const AT_ONCE: usize = 32;
/// So many sizes of one peer are tried at once.
const SIZES_AT_ONCE: u16 = 8;
/// So often a packet is sent that is not answered: one may be lost by chance.
const TRIES: u8 = 3;
/// For the answer, which a peer has at once.
const ANSWER: Duration = Duration::from_millis(500);
/// So long after the time a search may end: peers answer longer than they try.
const MORE: Duration = Duration::from_secs(5);
/// The headers of IP and UDP.
const HEADERS: u16 = 28;

/// A peer, and the packets that are to pass to it.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) peer: IpAddr,
    /// Bytes with the header of IP.
    pub(super) packet: u16,
    /// Ports of UDP on which its probe may answer, the best first.
    pub(super) ports: Vec<u16>,
}

/// What came of a packet.
enum Sent {
    Passed,
    /// It is too large for an interface of this node, or for a router that says so, or nothing came back.
    Stopped,
}

pub(super) async fn look(token: &str, paths: Vec<Path>, deadline: Instant) -> PacketFindings {
    let found = paths.into_iter().map(async |path| {
        let passes = largest(token, &path, deadline).await;
        (path, passes)
    });
    let found: Vec<(Path, Result<u16, String>)> =
        iter(found).buffer_unordered(AT_ONCE).collect().await;
    let count = found.len();
    let stopped = found.into_iter().filter_map(|(path, passes)| {
        let is_whole = passes.as_ref().is_ok_and(|passes| *passes == path.packet);
        let Path { peer, packet: wanted, .. } = path;
        (!is_whole).then(|| Stopped { peer, wanted, passes: Seen::from(passes) })
    });
    let mut stopped: Vec<Stopped> = stopped.collect();
    // What says most is first, as the last are left out.
    stopped.sort_by_key(|one| (one.passes.known().is_none(), one.peer));
    let passed = count - stopped.len();
    let left_out = stopped.len().saturating_sub(MOST_MISSED);
    stopped.truncate(MOST_MISSED);
    PacketFindings { passed, stopped, left_out }
}

/// The largest packet that passes, up to that which is wanted.
async fn largest(token: &str, path: &Path, deadline: Instant) -> Result<u16, String> {
    let at = answering(token, path, deadline).await?;
    if passes(token, at, path.packet).await? {
        return Ok(path.packet);
    }
    let (mut good, mut bad) = (SMALLEST_PACKET, path.packet);
    while bad - good > 1 && Instant::now() < deadline + MORE {
        let step = ((bad - good) / (SIZES_AT_ONCE + 1)).max(1);
        let sizes = (1..=SIZES_AT_ONCE).map(|number| good + number * step);
        let sizes: Vec<u16> = sizes.filter(|size| *size < bad).collect();
        let tried = join_all(sizes.iter().map(|size| passes(token, at, *size))).await;
        for (size, passed) in sizes.into_iter().zip(tried) {
            match passed? {
                true => good = good.max(size),
                false => bad = bad.min(size),
            }
        }
        // Of two ways to the peer one may carry more than the other: the smaller one counts.
        good = good.min(bad - 1);
    }
    // It is there still: else nothing would pass, whatever its size.
    match passes(token, at, SMALLEST_PACKET).await? {
        true => Ok(good),
        false => Err("its probe answers no longer".to_owned()),
    }
}

/// Where the peer answers small packets.
async fn answering(token: &str, path: &Path, deadline: Instant) -> Result<SocketAddr, String> {
    let mut last = "there was no time left to try it".to_owned();
    while Instant::now() < deadline {
        for port in &path.ports {
            let at = SocketAddr::new(path.peer, *port);
            match exchange(token, at, SMALLEST_PACKET).await {
                Ok(Sent::Passed) => return Ok(at),
                Ok(Sent::Stopped) => {
                    last = format!("not even {SMALLEST_PACKET} bytes were answered")
                }
                Err(error) => {
                    last = format!("not even {SMALLEST_PACKET} bytes were answered: {error}")
                }
            }
        }
        sleep(RETRY_DELAY).await;
    }
    Err(last)
}

/// Whether a packet of this size passes.
async fn passes(token: &str, at: SocketAddr, size: u16) -> Result<bool, String> {
    for _ in 0..TRIES {
        match exchange(token, at, size).await {
            Ok(Sent::Passed) => return Ok(true),
            Ok(Sent::Stopped) => {}
            Err(error) => return Err(format!("{size} bytes could not be tried: {error}")),
        }
    }
    Ok(false)
}

/// Sends one packet. Each has a socket of its own, so that no answer and no error is of another.
async fn exchange(token: &str, at: SocketAddr, size: u16) -> io::Result<Sent> {
    let length = usize::from(size.saturating_sub(HEADERS));
    let mut datagram = token.as_bytes().to_vec();
    datagram.resize(length.max(token.len() + 1), 0);
    let expected = answer_of_size(token, at.ip(), datagram.len());
    let mut bytes = vec![0; expected.len() + 1];
    let asking = async {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
        // With DF, and without what the kernel has learned of the path before.
        set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
        socket.connect(at).await?;
        socket.send(&datagram).await?;
        socket.recv(&mut bytes).await
    };
    match timeout(ANSWER, asking).await {
        Ok(Ok(length)) if bytes.get(..length) == Some(expected.as_bytes()) => Ok(Sent::Passed),
        Ok(Ok(_)) => Err(io::Error::other("something else answers there")),
        Ok(Err(error)) if is_too_large(&error) => Ok(Sent::Stopped),
        Ok(Err(error)) => Err(error),
        Err(_) => Ok(Sent::Stopped),
    }
}

fn is_too_large(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE) || error.kind() == ErrorKind::TimedOut
}
