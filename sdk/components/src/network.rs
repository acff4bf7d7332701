//! An IPv4 network, as fields of several kinds give it.

use std::net::Ipv4Addr;

/// An IPv4 network, without the bits of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: u32,
    mask: u32,
}

impl Network {
    /// Reads `10.0.0.0/24`; `None` for what is no IPv4 network, though it may be an IPv6 one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.trim().split_once('/')?;
        let length: u32 = length.parse().ok().filter(|length| *length <= 32)?;
        let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
        let address: Ipv4Addr = address.parse().ok()?;
        Some(Self { first: u32::from(address) & mask, mask })
    }

    /// Its first address.
    #[must_use]
    pub fn first(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.first)
    }

    /// Its last address.
    #[must_use]
    pub fn last(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.first | !self.mask)
    }

    /// Whether the address lies in it.
    #[must_use]
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        u32::from(address) & self.mask == self.first
    }

    /// Whether every address of the other lies in it.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.contains(other.first()) && self.contains(other.last())
    }

    /// Whether some address lies in both.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let mask = self.mask & other.mask;
        self.first & mask == other.first & mask
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::Network;

    fn contains(network: &str, ip: [u8; 4]) -> Option<bool> {
        Network::parse(network).map(|network| network.contains(Ipv4Addr::from(ip)))
    }

    #[test]
    fn a_network_contains_what_shares_its_prefix() {
        assert_eq!(contains("10.64.0.0/12", [10, 79, 255, 255]), Some(true));
        assert_eq!(contains("10.64.0.0/12", [10, 80, 0, 0]), Some(false));
        assert_eq!(contains("10.1.2.3/32", [10, 1, 2, 3]), Some(true));
        assert_eq!(contains("0.0.0.0/0", [1, 2, 3, 4]), Some(true));
    }

    #[test]
    fn what_is_no_ipv4_network_is_none() {
        for text in ["10.0.0.0", "10.0.0.0/33", "fd00::/8", "x/8", ""] {
            assert_eq!(contains(text, [10, 0, 0, 0]), None, "{text}");
        }
    }

    #[test]
    fn bits_of_the_host_do_not_count() {
        assert_eq!(Network::parse("10.1.0.7/24"), Network::parse("10.1.0.0/24"));
        assert_ne!(Network::parse("10.1.0.0/24"), Network::parse("10.1.0.0/25"));
    }

    #[test]
    fn networks_meet_where_one_covers_the_other() {
        let compared = |left, right| {
            let (left, right) = (Network::parse(left).unwrap(), Network::parse(right).unwrap());
            (left.meets(&right), left.covers(&right))
        };
        assert_eq!(compared("10.1.0.0/16", "10.1.2.0/24"), (true, true));
        assert_eq!(compared("10.1.2.0/24", "10.1.0.0/16"), (true, false));
        assert_eq!(compared("0.0.0.0/0", "10.1.0.0/16"), (true, true));
        assert_eq!(compared("10.1.0.0/24", "10.1.1.0/24"), (false, false));
    }
}
