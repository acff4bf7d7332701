//! One try to reach a port of a peer. By TCP nothing is sent, by UDP the token alone.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use opensdn_node_probe::Miss;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::answering::answer;

/// For a connection: the kernel repeats its first packet after 1 s.
const CONNECT: Duration = Duration::from_secs(3);
/// For the answer, which a peer has at once.
const ANSWER: Duration = Duration::from_secs(2);
const LONGEST_ANSWER: usize = 128;

pub(super) async fn connect(at: SocketAddr) -> Result<(), Miss> {
    connected(at).await.map(drop)
}

async fn connected(at: SocketAddr) -> Result<TcpStream, Miss> {
    match timeout(CONNECT, TcpStream::connect(at)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(miss(&error, CONNECT)),
        Err(_) => Err(no_answer(CONNECT)),
    }
}

pub(super) async fn tcp(at: SocketAddr, token: &str) -> Result<(), Miss> {
    let mut stream = connected(at).await?;
    let mut bytes = Vec::new();
    let mut limited = (&mut stream).take(LONGEST_ANSWER as u64);
    // What was read until it broke off, or until the time was over, is what it answered.
    let _ = timeout(ANSWER, limited.read_to_end(&mut bytes)).await;
    is_of_peer(&bytes, at.ip(), token)
}

pub(super) async fn udp(at: SocketAddr, token: &str) -> Result<(), Miss> {
    let of_us: IpAddr = match at {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut bytes = [0; LONGEST_ANSWER];
    let asking = async {
        let socket = UdpSocket::bind((of_us, 0)).await?;
        // What is not of this peer is not received then, and a refusal is.
        socket.connect(at).await?;
        socket.send(token.as_bytes()).await?;
        socket.recv(&mut bytes).await
    };
    match timeout(ANSWER, asking).await {
        Ok(Ok(length)) => is_of_peer(bytes.get(..length).unwrap_or_default(), at.ip(), token),
        Ok(Err(error)) => Err(miss(&error, ANSWER)),
        Err(_) => Err(no_answer(ANSWER)),
    }
}

fn is_of_peer(bytes: &[u8], peer: IpAddr, token: &str) -> Result<(), Miss> {
    if bytes == answer(token, peer).as_bytes() { Ok(()) } else { Err(Miss::Another) }
}

fn no_answer(limit: Duration) -> Miss {
    Miss::NoAnswer(u16::try_from(limit.as_secs()).unwrap_or(u16::MAX))
}

fn miss(error: &io::Error, limit: Duration) -> Miss {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Miss::Refused,
        ErrorKind::TimedOut => no_answer(limit),
        // A filter says so, of another machine or of this one.
        ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::PermissionDenied => Miss::Rejected(error.to_string()),
        _ => Miss::Untried(error.to_string()),
    }
}
