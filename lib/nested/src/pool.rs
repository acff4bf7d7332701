//! The addresses that link-local services may get: networks, ranges and single addresses, in the order in which they
//! are taken. They are never written out: a /8 costs as much as one address. The network and broadcast address of a
//! network are left out, but for a /31 or /32; a range and a single address are taken as they are.

use std::net::Ipv4Addr;
use std::str::FromStr;

use crate::ranges::{Range, Ranges};
use crate::subnet::Subnet;

/// Addresses in the order in which they are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Network(Subnet),
    Range(Range),
}

/// A part of a pool that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// It is neither an address, a network nor a range.
    #[error(
        "{0:?} is neither an address, a network such as 10.10.10.0/24, nor a range such as \
         10.10.10.1-10.10.10.9"
    )]
    Unreadable(String),
    /// The end of a range is before its first address.
    #[error("{0:?} is a range that ends before it starts")]
    Backwards(String),
}

impl Part {
    fn range(self) -> Range {
        match self {
            Self::Range(range) => range,
            Self::Network(network) => {
                let all = Range::from(network);
                match network.edges() {
                    Some(_) => Range { first: all.first + 1, last: all.last - 1 },
                    None => all,
                }
            }
        }
    }
}

impl FromStr for Part {
    type Err = PoolError;

    fn from_str(text: &str) -> Result<Self, PoolError> {
        let unreadable = || PoolError::Unreadable(text.to_owned());
        if text.contains('/') {
            return Ok(Self::Network(text.parse().map_err(|_| unreadable())?));
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let address = |text: &str| text.trim().parse::<Ipv4Addr>().map_err(|_| unreadable());
        let (first, last) = (u32::from(address(first)?), u32::from(address(last)?));
        if last < first {
            return Err(PoolError::Backwards(text.to_owned()));
        }
        Ok(Self::Range(Range { first, last }))
    }
}

impl Pool {
    /// Reads each part; what is none is reported beside the pool of the others.
    pub fn read<T: AsRef<str>>(texts: &[T]) -> (Self, Vec<PoolError>) {
        let (mut parts, mut wrong) = (Vec::new(), Vec::new());
        for text in texts {
            match text.as_ref().parse() {
                Ok(part) => parts.push(part),
                Err(error) => wrong.push(error),
            }
        }
        (Self { parts }, wrong)
    }

    /// Every address once, in order.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.free(&Ranges::default()).into_iter().flat_map(Range::addresses)
    }

    /// What is in none of the ranges, in the order of the pool, each address once.
    pub(crate) fn free(&self, taken: &Ranges) -> Vec<Range> {
        let mut free = Vec::new();
        let mut before = Ranges::default();
        for part in &self.parts {
            let gaps = taken.gaps(part.range());
            free.extend(gaps.into_iter().flat_map(|gap| before.gaps(gap)));
            before = before.and([part.range()]);
        }
        free
    }

    /// The network of the pool of which this is the network or broadcast address.
    pub(crate) fn edge_of(&self, address: Ipv4Addr) -> Option<Subnet> {
        self.parts.iter().find_map(|part| match part {
            Part::Network(network) if network.edges()?.contains(&address) => Some(*network),
            Part::Network(_) | Part::Range(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Pool, PoolError};

    fn pool(parts: &[&str]) -> Pool {
        let (pool, wrong) = Pool::read(parts);
        assert_eq!(wrong, []);
        pool
    }

    fn addresses(parts: &[&str]) -> Vec<String> {
        pool(parts).addresses().take(20).map(|one| one.to_string()).collect()
    }

    #[test]
    fn a_network_has_neither_its_first_nor_its_last_address() {
        assert_eq!(addresses(&["10.0.0.0/30"]), ["10.0.0.1", "10.0.0.2"]);
        assert_eq!(addresses(&["10.0.0.4/31"]), ["10.0.0.4", "10.0.0.5"]);
        assert_eq!(addresses(&["10.0.0.5/32"]), ["10.0.0.5"]);
    }

    #[test]
    fn a_range_and_an_address_are_taken_as_they_are() {
        assert_eq!(addresses(&["10.0.0.0 - 10.0.0.1"]), ["10.0.0.0", "10.0.0.1"]);
        assert_eq!(addresses(&["10.0.0.255"]), ["10.0.0.255"]);
    }

    #[test]
    fn the_order_is_that_of_the_parts_and_no_address_comes_twice() {
        let all = addresses(&["10.0.0.9", "10.0.0.1-10.0.0.3", "10.0.0.2-10.0.0.4", "10.0.0.9/32"]);
        assert_eq!(all, ["10.0.0.9", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]);
    }

    #[test]
    fn the_whole_of_ipv4_is_not_written_out() {
        let whole = pool(&["0.0.0.0/0", "10.0.0.0/8"]);
        assert_eq!(whole.addresses().nth(1 << 10).unwrap().to_string(), "0.0.4.1");
    }

    #[test]
    fn every_part_that_is_none_is_reported() {
        let (left, wrong) =
            Pool::read(&["10.0.0.1", "fd00::1", "10.0.0.9-10.0.0.1", "", "10.0.0.0/33"]);
        assert_eq!(left, pool(&["10.0.0.1"]));
        assert_eq!(wrong.len(), 4);
        assert_eq!(wrong[1], PoolError::Backwards("10.0.0.9-10.0.0.1".to_owned()));
    }

    #[test]
    fn edges_are_known_of_networks_only() {
        let all = pool(&["10.0.0.0/24", "10.1.0.0-10.1.0.255", "10.2.0.1/32"]);
        let edge = |text: &str| all.edge_of(text.parse().unwrap()).is_some();
        assert!(edge("10.0.0.0") && edge("10.0.0.255"));
        assert!(!edge("10.0.0.1") && !edge("10.1.0.0") && !edge("10.2.0.1"));
    }
}
