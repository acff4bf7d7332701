//! Ports for servers that cannot be handed an open socket.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Below Linux' range for outgoing connections (32768 and up), so that no client socket
/// sits on the port while a server that owned it is restarted.
const RANGE: std::ops::Range<u16> = 20_000..32_000;
const ATTEMPTS: u32 = 200;

/// A port of the loopback interface that is free now. Another process may take it before
/// the server listens, so whoever starts the server tries again with another one.
pub(super) fn free() -> io::Result<u16> {
    let width = u64::from(RANGE.end - RANGE.start);
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for attempt in 0..ATTEMPTS {
        let offset = RandomState::new().hash_one(attempt) % width;
        let port = RANGE.start.saturating_add(u16::try_from(offset).unwrap_or_default());
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = error,
        }
    }
    Err(last)
}
