//! Addresses as a NestedCluster gives them: one, a network, or a range.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use opensdn_policy_components::Network;

/// All addresses from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    first: Ipv4Addr,
    last: Ipv4Addr,
}

impl Addresses {
    /// Reads `10.0.0.1`, `10.0.0.0/24` or `10.0.0.1-10.0.0.9`; `None` for anything else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(network) = Network::parse(text) {
            return Some(network.into());
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let addresses = Self { first: first.trim().parse().ok()?, last: last.trim().parse().ok()? };
        (addresses.first <= addresses.last).then_some(addresses)
    }

    pub(crate) fn contain(&self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address)
    }

    /// How many different addresses there are in all of them but for these; no more than so many are counted.
    pub(crate) fn number_without(all: &[Self], others: &BTreeSet<Ipv4Addr>, most: usize) -> usize {
        let mut counted = BTreeSet::new();
        for one in all {
            let free = (u32::from(one.first)..=u32::from(one.last)).map(Ipv4Addr::from);
            let free = free.filter(|address| !others.contains(address));
            // Of each there are enough where it has as many as all together need.
            counted.extend(free.take(most));
        }
        counted.len().min(most)
    }

    /// Whether some address is in both.
    pub(crate) fn meet(&self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

impl From<Network> for Addresses {
    fn from(network: Network) -> Self {
        Self { first: network.first(), last: network.last() }
    }
}

#[cfg(test)]
mod tests {
    use super::Addresses;

    #[test]
    fn addresses_are_one_a_network_or_a_range() {
        let parse =
            |text| Addresses::parse(text).map(|all| (all.first.octets()[3], all.last.octets()[3]));
        assert_eq!(parse("10.0.0.7"), Some((7, 7)));
        assert_eq!(parse("10.0.0.0/24"), Some((0, 255)));
        assert_eq!(parse("10.0.0.1 - 10.0.0.9"), Some((1, 9)));
        for none in ["10.0.0.9-10.0.0.1", "fd00::1", "10.0.0.0/24-10.0.1.0/24", ""] {
            assert_eq!(parse(none), None, "{none}");
        }
    }

    #[test]
    fn addresses_of_several_ranges_are_counted_once_and_no_further_than_needed() {
        let all: Vec<_> = ["10.0.0.1-10.0.0.3", "10.0.0.3", "10.0.0.9"]
            .map(|text| Addresses::parse(text).unwrap())
            .into();
        let without = ["10.0.0.2".parse().unwrap()].into();
        assert_eq!(Addresses::number_without(&all, &without, 9), 3);
        assert_eq!(Addresses::number_without(&all, &without, 2), 2);
        let whole = [Addresses::parse("0.0.0.0/0").unwrap()];
        assert_eq!(Addresses::number_without(&whole, &without, 17), 17);
    }

    #[test]
    fn ranges_meet_where_they_share_an_address() {
        let meet =
            |one, other| Addresses::parse(one).unwrap().meet(Addresses::parse(other).unwrap());
        assert!(meet("10.0.0.1-10.0.0.9", "10.0.0.9"));
        assert!(meet("10.0.0.0/16", "10.0.3.4-10.9.0.0"));
        assert!(!meet("10.0.0.1-10.0.0.9", "10.0.0.10"));
    }
}
