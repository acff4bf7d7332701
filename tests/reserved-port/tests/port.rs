//! A reserved port is given to a server that asks for it, as often as it likes, and to no other.

use std::collections::BTreeSet;
use std::io;
use std::net::{TcpListener, TcpStream};

use opensdn_reserved_port::ReservedPort;

/// So many and as many again are some of one another nearly always, if a port may be given to two.
const MANY: usize = 300;

#[test]
fn a_server_listens_goes_and_returns_and_is_missed_between() -> io::Result<()> {
    let port = ReservedPort::new()?;
    for _ in 0..3 {
        let missed = TcpStream::connect(port.address()).map_err(|error| error.kind());
        assert!(matches!(missed, Err(io::ErrorKind::ConnectionRefused)), "{missed:?}");
        let server = TcpListener::bind(port.address())?;
        let client = TcpStream::connect(port.address())?;
        let (served, _) = server.accept()?;
        // The server's end closes first: its port waits out the connection's end.
        drop(served);
        drop(client);
    }
    Ok(())
}

#[test]
fn a_second_server_is_refused() -> io::Result<()> {
    let port = ReservedPort::new()?;
    let _first = TcpListener::bind(port.address())?;
    let second = TcpListener::bind(port.address()).map_err(|error| error.kind());
    assert!(matches!(second, Err(io::ErrorKind::AddrInUse)), "{second:?}");
    Ok(())
}

#[test]
fn no_process_that_asks_for_any_port_gets_a_reserved_one() -> io::Result<()> {
    let reserved: Vec<ReservedPort> =
        (0..MANY).map(|_| ReservedPort::new()).collect::<io::Result<_>>()?;
    let ours: BTreeSet<u16> = reserved.iter().map(ReservedPort::number).collect();
    assert_eq!(ours.len(), MANY, "a port was given to two");
    let mut others = Vec::new();
    for _ in 0..MANY {
        let other = TcpListener::bind("127.0.0.1:0")?;
        let port = other.local_addr()?.port();
        assert!(!ours.contains(&port), "{port} is reserved");
        others.push(other);
    }
    Ok(())
}
