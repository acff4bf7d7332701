//! Whether ports are free: each is bound for a moment on the addresses of the node, as its component would.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use opensdn_node_probe::{PortFinding, Seen, Transport, WantedPort};
use socket2::{Domain, Protocol, Socket, Type};

use super::host::Host;
use super::sockets::Sockets;

/// Those that are not free, or could not be tried.
pub(super) fn look(host: &Host, ports: &[WantedPort], addresses: &[IpAddr]) -> Vec<PortFinding> {
    let mut sockets = None;
    let mut found = Vec::new();
    // What listens on all addresses, as many components do, also needs that of the node itself.
    let addresses: Vec<IpAddr> =
        addresses.iter().copied().chain([Ipv4Addr::LOCALHOST.into()]).collect();
    for port in ports {
        for address in &addresses {
            let holder = match bind(*port, *address) {
                Ok(()) => continue,
                Err(error) if error.kind() == ErrorKind::AddrInUse => {
                    let sockets = sockets.get_or_insert_with(|| Sockets::of(host));
                    Seen::Is(sockets.holder(host, *port, *address))
                }
                Err(error) => Seen::Unknown(format!("failed to bind: {error}")),
            };
            found.push(PortFinding { port: *port, address: *address, holder });
        }
    }
    found
}

fn bind(port: WantedPort, address: IpAddr) -> io::Result<()> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let (kind, protocol) = match port.transport {
        Transport::Tcp => (Type::STREAM, Protocol::TCP),
        Transport::Udp => (Type::DGRAM, Protocol::UDP),
    };
    let socket = Socket::new(domain, kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if port.transport == Transport::Tcp {
        // Connections that ended a moment ago are no reason; what listens is one all the same. Of UDP two
        // could have one port by it.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&SocketAddr::new(address, port.number).into())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::super::tests::node;
    use super::*;

    #[test]
    fn a_port_that_something_has_is_found_and_a_free_one_is_not() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = |number: u16, transport: Transport| WantedPort { number, transport };
        let held = [
            port(tcp.local_addr().unwrap().port(), Transport::Tcp),
            port(udp.local_addr().unwrap().port(), Transport::Udp),
        ];
        let (_folder, host) = node(&[]);
        let found = look(&host, &held, &[]);
        assert_eq!(found.iter().map(|one| one.port).collect::<Vec<_>>(), held);
        // Without the node's files only that it is held is known.
        assert!(found.iter().all(|one| one.holder.known().is_some()), "{found:#?}");
        drop((tcp, udp));
        assert_eq!(look(&host, &held, &[]), []);
    }

    #[test]
    fn an_address_that_is_not_of_the_node_is_no_busy_port() {
        let (_folder, host) = node(&[]);
        let port = WantedPort { number: 40_001, transport: Transport::Tcp };
        let found = look(&host, &[port], &["192.0.2.1".parse().unwrap()]);
        assert!(matches!(&*found, [one] if one.holder.known().is_none()), "{found:#?}");
    }
}
