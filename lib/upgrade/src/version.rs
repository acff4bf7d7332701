//! Releases of OpenSDN, as tags of images say them: `R24.1`, `R21.4.1`, `2011`, `21.4.0-77`, `R25.1-rc1`.

use std::fmt;

/// A release. Releases are ordered by their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The year, without its century.
    pub year: u32,
    /// The number in the year, or the month.
    pub number: u32,
    /// The patch.
    pub patch: u32,
}

/// `L5` of 2011.L5.1 comes after all builds such as 2011.138.
const AFTER_BUILDS: u32 = 1_000_000;

/// The releases that upstream has a branch of (tf-controller), the oldest first. One is upgraded to the next
/// (OpenSDN-io/docs, `installing-opensdn-ansible-ziu.rst`).
pub const RELEASES: &[(u32, u32)] = &[(20, 11), (21, 3), (21, 4), (24, 1), (25, 1)];

impl Version {
    /// Of a tag.
    #[must_use]
    pub fn of_tag(tag: &str) -> Option<Self> {
        let tag = tag.trim_start_matches(['R', 'r', 'v']);
        let (first, rest) = number(tag)?;
        let (year, month, mut rest) = match first.len() {
            // With a month: 2011.
            4 => (first.get(..2)?.parse().ok()?, first.get(2..)?.parse().ok()?, rest),
            2 => {
                let (second, rest) = number(rest.strip_prefix('.')?)?;
                (first.parse().ok()?, second.parse().ok()?, rest)
            }
            _ => return None,
        };
        let mut patch = 0;
        if let Some(third) = rest.strip_prefix('.') {
            let after_builds = if third.starts_with('L') { AFTER_BUILDS } else { 0 };
            if let Some((digits, after)) = number(third.trim_start_matches('L')) {
                (patch, rest) = (digits.parse::<u32>().ok()?.saturating_add(after_builds), after);
            }
        }
        let is_end = rest.is_empty() || rest.starts_with(['-', '.', '_', '+']);
        // 2024-05-01 and 2025.1 have no month there.
        let is_month = first.len() == 2 || (1..=12).contains(&month);
        let is_release = (19..=99).contains(&year) && is_month && is_end;
        is_release.then_some(Self { year, number: month, patch })
    }

    /// Its place among the releases: how many of them are not after it.
    #[must_use]
    pub fn place(self) -> usize {
        RELEASES.iter().filter(|release| **release <= (self.year, self.number)).count()
    }

    /// Whether images of it are named `opensdn-…`, and configured so.
    #[must_use]
    pub fn is_opensdn(self) -> bool {
        self.year >= 25
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.year {
            ..=20 => write!(formatter, "{}{:02}", self.year, self.number)?,
            _ => write!(formatter, "R{}.{}", self.year, self.number)?,
        }
        match self.patch {
            0 => Ok(()),
            AFTER_BUILDS.. => write!(formatter, ".L{}", self.patch - AFTER_BUILDS),
            build => write!(formatter, ".{build}"),
        }
    }
}

/// The digits at the beginning, and what follows.
fn number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_says_year_number_and_patch() {
        for (tag, expected) in [
            ("R24.1", Some("R24.1")),
            ("R21.4.1-centos", Some("R21.4.1")),
            ("2011", Some("2011")),
            ("2011.138", Some("2011.138")),
            ("R2011.L5.1", Some("2011.L5")),
            ("21.4.0-77", Some("R21.4")),
            ("R25.1-rc1", Some("R25.1")),
            ("26.2.0", Some("R26.2")),
            ("latest", None),
            ("3.11", None),
            ("7.0.15", None),
            ("3.10.7-management", None),
            ("24", None),
            ("24.x", None),
            ("", None),
            ("24.1beta", None),
            ("2024-05-01", None),
            ("2025.1", None),
        ] {
            assert_eq!(
                Version::of_tag(tag).map(|one| one.to_string()).as_deref(),
                expected,
                "{tag}"
            );
        }
    }

    #[test]
    fn releases_follow_each_other() {
        let place = |tag| Version::of_tag(tag).unwrap().place();
        assert_eq!((place("2008"), place("2011")), (0, 1));
        assert_eq!(place("R21.4.1"), place("R21.4"));
        assert_eq!(place("24.2.0"), place("R24.1"), "one between belongs to the one before");
        assert_eq!(place("R24.1") + 1, place("R25.1"));
        assert!(Version::of_tag("2011.L5.379") > Version::of_tag("2011.138"));
        assert!(RELEASES.is_sorted());
    }
}
