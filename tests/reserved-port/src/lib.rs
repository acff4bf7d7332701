//! A port for a server that opens it itself: a program of its own, or one that goes and returns.
//!
//! To find a free port and close it again is a race: until the server listens, and each
//! time it is down, the kernel may give the port to any process that connects somewhere. So the port
//! is bound here all the time, without listening. Linux lets a server bind it beside us if both
//! set `SO_REUSEADDR`, as the listeners of Rust's standard library, tokio and Go do, and gives it
//! to no process that asks for any port.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// A port of 127.0.0.1, held until this is dropped.
#[derive(Debug)]
pub struct ReservedPort {
    address: SocketAddr,
    _socket: Socket,
}

impl ReservedPort {
    /// Takes one that is free.
    ///
    /// # Errors
    /// There is none.
    pub fn new() -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        let address = socket.local_addr()?.as_socket();
        let address = address.ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { address, _socket: socket })
    }

    /// Where the server is to listen. Who connects while it does not is refused.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number alone.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.address.port()
    }
}
