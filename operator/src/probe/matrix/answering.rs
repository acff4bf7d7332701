//! Answers peers: over TCP each that connects, over UDP each that knows the token, with a line that names this probe, and
//! the length of what came where that is asked.
//! What came by UDP is never answered with much more than came, and nothing that comes by TCP is read. A port that
//! another has is left to it.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use opensdn_node_probe::{LARGEST_PACKET, SilentPort, Transport, WantedPort};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// So many ports it answers on at most; all components together have some seventy.
const MOST_PORTS: usize = 128;
/// So many peers are answered at once, on all ports together.
const AT_ONCE: usize = 128;
/// So many wait for that on a port.
const BACKLOG: u32 = 512;
/// So long a peer may take its line.
const LIMIT: Duration = Duration::from_secs(2);
/// So long nothing is accepted after an error such as too many open files.
const AFTER_ERROR: Duration = Duration::from_millis(200);

/// The largest datagram whose length is answered.
const LONGEST: usize = LARGEST_PACKET as usize;

/// What a datagram of this length is answered that has the token, and zeros after it.
pub(super) fn answer_of_size(token: &str, address: IpAddr, length: usize) -> String {
    format!("{token} {address} {length}\n")
}

/// The line by which the probe at this address is known.
pub(super) fn answer(token: &str, address: IpAddr) -> String {
    format!("{token} {address}\n")
}

/// Answers until that moment; the ports on which it cannot.
pub(super) async fn start(
    token: &str,
    address: IpAddr,
    ports: BTreeSet<WantedPort>,
    until: Instant,
) -> Vec<SilentPort> {
    let answer: Arc<str> = answer(token, address).into();
    let token: Arc<str> = token.into();
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut silent = Vec::new();
    for (number, port) in ports.into_iter().enumerate() {
        let at = SocketAddr::new(address, port.number);
        let started = match port.transport {
            _ if number >= MOST_PORTS => Err(io::Error::other("there are too many ports")),
            Transport::Tcp => listen(at).map(|listener| {
                let serving = serve_tcp(listener, answer.clone(), permits.clone());
                drop(tokio::spawn(timeout_at(until, serving)));
            }),
            Transport::Udp => UdpSocket::bind(at).await.map(|socket| {
                let serving = serve_udp(socket, token.clone(), address);
                drop(tokio::spawn(timeout_at(until, serving)));
            }),
        };
        if let Err(error) = started {
            silent.push(SilentPort { port, why: error.to_string() });
        }
    }
    silent
}

fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Connections that ended a moment ago do not hold the port.
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(BACKLOG)
}

async fn serve_tcp(listener: TcpListener, answer: Arc<str>, permits: Arc<Semaphore>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Others wait in the kernel meanwhile.
                let Ok(permit) = permits.clone().acquire_owned().await else { return };
                let answer = answer.clone();
                drop(tokio::spawn(async move {
                    greet(stream, &answer).await;
                    drop(permit);
                }));
            }
            Err(_) => sleep(AFTER_ERROR).await,
        }
    }
}

async fn greet(mut stream: TcpStream, answer: &str) {
    let written = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    // A peer that went away has nothing to learn.
    let _ = timeout(LIMIT, written).await;
}

async fn serve_udp(socket: UdpSocket, token: Arc<str>, address: IpAddr) {
    let mut bytes = vec![0; LONGEST];
    loop {
        match socket.recv_from(&mut bytes).await {
            Ok((length, from)) => {
                let datagram = bytes.get(..length).unwrap_or_default();
                if let Some(answer) = answer_to(datagram, &token, address) {
                    // The peer asks again where it got nothing.
                    let _ = socket.send_to(answer.as_bytes(), from).await;
                }
            }
            Err(_) => sleep(AFTER_ERROR).await,
        }
    }
}

/// Nothing is answered that is not of a peer.
fn answer_to(datagram: &[u8], token: &str, address: IpAddr) -> Option<String> {
    match datagram.strip_prefix(token.as_bytes())? {
        [] => Some(answer(token, address)),
        rest if rest.iter().all(|byte| *byte == 0) => {
            Some(answer_of_size(token, address, datagram.len()))
        }
        _ => None,
    }
}
