//! Ranges of addresses of IPv4, as numbers, so that what is free in a /8 is found without counting through it.

use std::net::Ipv4Addr;

use crate::subnet::Subnet;

/// All addresses from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Range {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

impl Range {
    pub(crate) fn addresses(self) -> impl Iterator<Item = Ipv4Addr> {
        (self.first..=self.last).map(Ipv4Addr::from)
    }
}

impl From<Ipv4Addr> for Range {
    fn from(address: Ipv4Addr) -> Self {
        Self { first: address.into(), last: address.into() }
    }
}

impl From<Subnet> for Range {
    fn from(subnet: Subnet) -> Self {
        Self { first: subnet.first().into(), last: subnet.last().into() }
    }
}

/// Addresses, in order and without overlaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(Vec<Range>);

impl FromIterator<Range> for Ranges {
    fn from_iter<I: IntoIterator<Item = Range>>(all: I) -> Self {
        let mut all: Vec<Range> = all.into_iter().collect();
        all.sort_unstable();
        let mut merged: Vec<Range> = Vec::new();
        for next in all {
            match merged.last_mut() {
                Some(before) if next.first <= before.last.saturating_add(1) => {
                    before.last = before.last.max(next.last);
                }
                _ => merged.push(next),
            }
        }
        Self(merged)
    }
}

impl Ranges {
    /// What is in the range, but in none of these.
    pub(crate) fn gaps(&self, range: Range) -> Vec<Range> {
        let mut free = Vec::new();
        let mut next = Some(range.first);
        let begin = self.0.partition_point(|one| one.last < range.first);
        for one in self.0.iter().skip(begin).take_while(|one| one.first <= range.last) {
            if let Some(first) = next.filter(|first| *first < one.first) {
                free.push(Range { first, last: one.first - 1 });
            }
            next = one.last.checked_add(1);
        }
        if let Some(first) = next.filter(|first| *first <= range.last) {
            free.push(Range { first, last: range.last });
        }
        free
    }

    /// These and others.
    pub(crate) fn and(&self, others: impl IntoIterator<Item = Range>) -> Self {
        self.0.iter().copied().chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Range, Ranges};

    fn range(first: u32, last: u32) -> Range {
        Range { first, last }
    }

    #[test]
    fn what_is_between_is_free() {
        let taken: Ranges = [range(5, 6), range(1, 1), range(6, 9)].into_iter().collect();
        assert_eq!(taken.gaps(range(0, 12)), [range(0, 0), range(2, 4), range(10, 12)]);
        assert_eq!(taken.gaps(range(6, 8)), []);
        assert_eq!(taken.gaps(range(20, 30)), [range(20, 30)]);
    }

    #[test]
    fn the_last_address_is_no_limit() {
        let taken: Ranges = [range(9, u32::MAX)].into_iter().collect();
        assert_eq!(taken.gaps(range(0, u32::MAX)), [range(0, 8)]);
        assert_eq!(Ranges::default().gaps(range(0, u32::MAX)), [range(0, u32::MAX)]);
    }
}
