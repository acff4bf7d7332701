//! The routes and addresses of IPv4 of the node that concern us, by /proc/net/route and /proc/net/fib_trie.

use std::net::{IpAddr, Ipv4Addr};

use opensdn_node_probe::Route;

use super::host::Host;

/// So many are shown: a router has many thousands.
const SHOWN: usize = 200;

/// A network of IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: u32,
    mask: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let length: u32 = length.parse().ok().filter(|length| *length <= 32)?;
        let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
        let address: Ipv4Addr = address.parse().ok()?;
        Some(Self { address: u32::from(address) & mask, mask })
    }

    fn overlaps(self, other: Self) -> bool {
        let mask = self.mask & other.mask;
        self.address & mask == other.address & mask
    }

    fn has(self, address: Ipv4Addr) -> bool {
        u32::from(address) & self.mask == self.address
    }
}

/// Default routes, those of the node's own addresses, and those that overlap `networks`.
pub(super) fn look(
    host: &Host,
    networks: &[String],
    addresses: &[IpAddr],
) -> Result<Vec<Route>, String> {
    let networks: Vec<Network> = networks.iter().filter_map(|one| Network::parse(one)).collect();
    let concerns = |network: Network, is_direct: bool| {
        let is_own = |address: &IpAddr| matches!(address, IpAddr::V4(one) if network.has(*one));
        network.mask == 0
            || (is_direct && addresses.iter().any(is_own))
            || networks.iter().any(|ours| ours.overlaps(network))
    };
    let table = host.needed("/proc/net/route")?;
    let lines = table.lines().skip(1).filter_map(line);
    let routes = lines.filter(|(network, route)| concerns(*network, route.gateway.is_none()));
    Ok(routes.map(|(_, route)| route).take(SHOWN).collect())
}

/// Networks that interfaces are in: destinations of routes without a router, with the names of interfaces.
pub(super) fn direct(host: &Host) -> Result<Vec<(String, String)>, String> {
    let table = host.needed("/proc/net/route")?;
    let routes = table.lines().skip(1).filter_map(line).map(|(_, route)| route);
    let direct = routes.filter(|route| route.gateway.is_none());
    Ok(direct.map(|route| (route.interface, route.destination)).collect())
}

/// The node's own addresses in `networks`, whichever interface or table has them.
pub(super) fn local(host: &Host, networks: &[String]) -> Result<Vec<Ipv4Addr>, String> {
    let networks: Vec<Network> = networks.iter().filter_map(|one| Network::parse(one)).collect();
    let table = host.needed("/proc/net/fib_trie")?;
    let (mut found, mut last) = (Vec::new(), None);
    for line in table.lines() {
        // `|-- 192.168.0.1`, and below it `/32 host LOCAL`.
        let line = line.trim_start();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.trim_end().parse::<Ipv4Addr>().ok();
        } else if line.starts_with("/32 host LOCAL")
            && let Some(address) = last
            && networks.iter().any(|network| network.has(address))
        {
            found.push(address);
        }
    }
    // The table of the node and that of its addresses have each.
    found.sort_unstable();
    found.dedup();
    found.truncate(SHOWN);
    Ok(found)
}

/// `eth0 0000A8C0 00000000 0001 0 0 100 00FFFFFF …`, with addresses as numbers of this machine.
fn line(line: &str) -> Option<(Network, Route)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| Some(u32::from_be(u32::from_str_radix(fields.get(at)?, 16).ok()?));
    let (address, gateway, mask) = (number(1)?, number(2)?, number(7)?);
    let route = Route {
        destination: format!("{}/{}", Ipv4Addr::from(address), mask.count_ones()),
        interface: (*fields.first()?).to_owned(),
        gateway: (gateway != 0).then(|| Ipv4Addr::from(gateway).to_string()),
    };
    Some((Network { address, mask }, route))
}

#[cfg(test)]
mod tests {
    use super::super::tests::node;
    use super::*;

    #[test]
    fn routes_that_concern_us_are_shown_and_no_others() {
        let table = "Iface\tDestination\tGateway\n\
            eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
            eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
            eth1\t0000200A\t0201A8C0\t0003\t0\t0\t100\t0000FFFF\t0\t0\t0\n\
            eth1\t000010AC\t00000000\t0001\t0\t0\t100\t0000FFFF\t0\t0\t0\n";
        let (_folder, host) = node(&[("proc/net/route", table)]);
        let own = ["192.168.1.7".parse().unwrap()];
        let seen = look(&host, &["10.32.0.0/12".to_owned()], &own).unwrap();
        let seen: Vec<(&str, &str, Option<&str>)> = seen
            .iter()
            .map(|one| (&*one.destination, &*one.interface, one.gateway.as_deref()))
            .collect();
        let expected = [
            ("0.0.0.0/0", "eth0", Some("192.168.1.1")),
            ("192.168.1.0/24", "eth0", None),
            ("10.32.0.0/16", "eth1", Some("192.168.1.2")),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn own_addresses_are_those_of_the_kernel_whichever_interface_has_them() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.1.0.0\n        /24 link UNICAST\n     |-- 10.1.0.7\n\
            \x20       /32 host LOCAL\n     |-- 10.1.0.255\n        /32 link BROADCAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n\
            Local:\n     |-- 10.1.0.7\n        /32 host LOCAL\n     |-- 10.9.0.1\n        /32 host LOCAL\n";
        let (_folder, host) = node(&[("proc/net/fib_trie", trie)]);
        let networks = ["10.1.0.0/16".to_owned()];
        assert_eq!(local(&host, &networks), Ok(vec![Ipv4Addr::new(10, 1, 0, 7)]));
        assert_eq!(local(&host, &[]), Ok(vec![]));
        let (_folder, host) = node(&[("proc/net/route", "")]);
        assert!(local(&host, &networks).is_err());
    }
}
