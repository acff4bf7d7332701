//! A network of IPv4, such as `10.32.0.0/12`. Deliberately not here: lists of addresses that are no network (`pool`).

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A network of IPv4. Bits of the host are cut off where it is read.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct Subnet {
    first: u32,
    length: u8,
}

/// A text is no network of IPv4.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no network of IPv4 such as 10.32.0.0/12")]
pub struct NotASubnet(String);

impl Subnet {
    /// The network of that length which has the address; nothing where the length is above 32.
    #[must_use]
    pub fn new(address: Ipv4Addr, length: u8) -> Option<Self> {
        let first = u32::from(address) & mask(length)?;
        Some(Self { first, length })
    }

    /// Its first address.
    #[must_use]
    pub fn first(self) -> Ipv4Addr {
        self.first.into()
    }

    /// Its last address.
    #[must_use]
    pub fn last(self) -> Ipv4Addr {
        (self.first | !mask(self.length).unwrap_or(u32::MAX)).into()
    }

    /// Whether the address is in it.
    #[must_use]
    pub fn contains(self, address: Ipv4Addr) -> bool {
        (self.first()..=self.last()).contains(&address)
    }

    /// Whether some address is in both.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.first() <= other.last() && other.first() <= self.last()
    }

    /// Its first and last address, where they are no addresses of hosts: /31 and /32 have none that are not.
    #[must_use]
    pub(crate) fn edges(self) -> Option<[Ipv4Addr; 2]> {
        (self.length < 31).then(|| [self.first(), self.last()])
    }
}

fn mask(length: u8) -> Option<u32> {
    match length {
        0 => Some(0),
        1..=32 => Some(u32::MAX << (32 - u32::from(length))),
        _ => None,
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", self.first(), self.length)
    }
}

impl FromStr for Subnet {
    type Err = NotASubnet;

    fn from_str(text: &str) -> Result<Self, NotASubnet> {
        let parse = || {
            let (address, length) = text.trim().split_once('/')?;
            Self::new(address.parse().ok()?, length.parse().ok()?)
        };
        parse().ok_or_else(|| NotASubnet(text.to_owned()))
    }
}

impl TryFrom<String> for Subnet {
    type Error = NotASubnet;

    fn try_from(text: String) -> Result<Self, NotASubnet> {
        text.parse()
    }
}

impl From<Subnet> for String {
    fn from(subnet: Subnet) -> Self {
        subnet.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::Subnet;

    fn subnet(text: &str) -> Subnet {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_is_read_and_written_alike() {
        assert_eq!(subnet("10.32.7.1/12").to_string(), "10.32.0.0/12");
        assert_eq!(subnet("0.0.0.0/0").last().to_string(), "255.255.255.255");
        for wrong in ["10.0.0.0", "10.0.0.0/33", "fd00::/8", "10.0.0/8", "", "10.0.0.0/-1"] {
            assert!(wrong.parse::<Subnet>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn networks_overlap_where_they_share_an_address() {
        assert!(subnet("10.0.0.0/8").overlaps(subnet("10.9.0.0/16")));
        assert!(!subnet("10.0.0.0/16").overlaps(subnet("10.1.0.0/16")));
        assert!(subnet("10.0.0.0/16").contains("10.0.255.255".parse().unwrap()));
    }

    #[test]
    fn only_networks_with_hosts_between_have_edges() {
        assert!(subnet("10.0.0.4/30").edges().is_some());
        assert_eq!(subnet("10.0.0.4/31").edges(), None);
        assert_eq!(subnet("10.0.0.4/32").edges(), None);
    }
}
