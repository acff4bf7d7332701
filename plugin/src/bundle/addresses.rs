//! Pseudonyms of addresses: the same address has the same one everywhere in a bundle, and it says nothing of the address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use regex::{Captures, Regex};

/// As they are written, and with hyphens, as names of nodes have them.
const V4: &str = r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}|(?:[0-9]{1,3}-){3}[0-9]{1,3}";
const V6: &str = r"[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:]*";

/// Those of one bundle.
#[derive(Debug)]
pub(crate) struct Pseudonyms {
    v4: Regex,
    v6: Regex,
    known: Mutex<HashMap<IpAddr, usize>>,
}

impl Pseudonyms {
    /// None yet.
    ///
    /// # Errors
    /// Never: the forms are constants.
    pub(crate) fn new() -> Result<Self, regex::Error> {
        let (v4, v6) = (Regex::new(V4)?, Regex::new(V6)?);
        Ok(Self { v4, v6, known: Mutex::default() })
    }

    /// The text with pseudonyms in the place of addresses.
    pub(crate) fn text(&self, text: &str) -> String {
        let clean = self.v4.replace_all(text, |found: &Captures<'_>| self.of_v4(text, found));
        let clean = &*clean;
        let all = self.v6.replace_all(clean, |found: &Captures<'_>| self.of_v6(clean, found));
        all.into_owned()
    }

    fn of_v4(&self, text: &str, found: &Captures<'_>) -> String {
        let Some(whole) = found.get(0) else { return String::new() };
        let written = whole.as_str();
        let (before, after) = around(text, &whole);
        let is_part = |letter: Option<char>| match written.contains('-') {
            // A piece of a UUID or of a date is none.
            true => letter.is_some_and(|one| one.is_ascii_hexdigit()),
            false => letter.is_some_and(|one| one.is_ascii_digit()),
        };
        match written.replace('-', ".").parse::<Ipv4Addr>() {
            Ok(address) if !is_part(before) && !is_part(after) && !says_nothing(address) => {
                self.of(IpAddr::V4(address))
            }
            _ => written.to_owned(),
        }
    }

    fn of_v6(&self, text: &str, found: &Captures<'_>) -> String {
        let Some(whole) = found.get(0) else { return String::new() };
        let written = whole.as_str();
        let (before, after) = around(text, &whole);
        let is_part = |letter: Option<char>| {
            letter.is_some_and(|one| one.is_alphanumeric() || "-_".contains(one))
        };
        if is_part(before) || is_part(after) {
            return written.to_owned();
        }
        // `fe80::1: refused`.
        let end = if written.ends_with("::") { "" } else { ":" };
        let plain = written.strip_suffix(end).unwrap_or(written);
        match plain.parse::<Ipv6Addr>() {
            Ok(address) if !address.is_unspecified() && !address.is_loopback() => {
                let rest = written.get(plain.len()..).unwrap_or_default();
                format!("{}{rest}", self.of(IpAddr::V6(address)))
            }
            _ => written.to_owned(),
        }
    }

    fn of(&self, address: IpAddr) -> String {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let next = known.len() + 1;
        format!("address-{}", known.entry(address.to_canonical()).or_insert(next))
    }
}

/// The letters beside it.
fn around(text: &str, found: &regex::Match<'_>) -> (Option<char>, Option<char>) {
    let before = text.get(..found.start()).and_then(|before| before.chars().next_back());
    (before, text.get(found.end()..).and_then(|after| after.chars().next()))
}

/// An address that is the same in every network: loopback, any, all, and the masks of networks.
fn says_nothing(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    address.is_loopback() || bits.leading_ones() + bits.trailing_zeros() >= u32::BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_address_has_the_same_pseudonym_wherever_and_however_it_is_written() {
        let names = Pseudonyms::new().unwrap();
        let said =
            names.text("dial tcp 10.0.0.7:8085: refused; node ip-10-0-0-7, peer 10.0.0.8/24.");
        assert_eq!(said, "dial tcp address-1:8085: refused; node ip-address-1, peer address-2/24.");
        let said =
            names.text("[2001:DB8::1]:443 2001:db8:0:0:0:0:0:1 fe80::5054:ff:fe12:3456%eth0");
        assert_eq!(said, "[address-3]:443 address-3 address-4%eth0");
        assert_eq!(names.text("64512:10.0.0.8:32767:10.0.0.7"), "64512:address-2:32767:address-1");
        assert_eq!(
            names.text("2001:db8::1: refused, ::ffff:10.0.0.7"),
            "address-3: refused, ::ffff:address-1"
        );
        assert_eq!(names.text("<vif>10.0.0.7</vif>"), "<vif>address-1</vif>");
    }

    #[test]
    fn what_is_no_address_of_a_machine_stays() {
        let names = Pseudonyms::new().unwrap();
        for text in [
            "127.0.0.1:8080 0.0.0.0 255.255.255.0 255.255.255.255 [::1]:80 ::",
            "52:54:00:12:34:56 at 12:34:56, 2026-11-25T03:00:00Z",
            "uid 0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0, 1.35.4, v24.2.0",
            "std::io::Error in face::cafe::run, 300.1.1.1",
        ] {
            assert_eq!(names.text(text), text);
        }
    }
}
