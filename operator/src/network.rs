//! An IPv4 network as settings give it: `10.1.0.0/24` (pure).

use std::net::Ipv4Addr;

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    prefix: u32,
    mask: u32,
}

impl Network {
    /// None where the text is no such network.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let address: Ipv4Addr = address.parse().ok()?;
        let bits: u32 = bits.parse().ok().filter(|bits| *bits <= 32)?;
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        Some(Self { prefix: u32::from(address) & mask, mask })
    }

    /// Whether the address is in it.
    #[must_use]
    pub fn has(self, address: &str) -> bool {
        address.parse().is_ok_and(|address: Ipv4Addr| u32::from(address) & self.mask == self.prefix)
    }
}

/// Whether a text is an address, of either family.
#[must_use]
pub fn is_address(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_of_its_prefix() {
        let network = Network::parse("10.1.0.7/24").unwrap();
        assert!(network.has("10.1.0.1") && network.has("10.1.0.255"));
        assert!(!network.has("10.1.1.1") && !network.has("fd00::1") && !network.has("node"));
        assert!(Network::parse("0.0.0.0/0").unwrap().has("192.0.2.1"));
        let one = Network::parse("10.1.0.7/32").unwrap();
        assert!(one.has("10.1.0.7") && !one.has("10.1.0.6"));
        for text in ["10.1.0.0", "10.1.0.0/33", "10.1.0/24", "/24", "fd00::/64"] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }
}
