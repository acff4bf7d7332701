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
        // `L5` of 2011.L5.1 is a patch, too.
        if let Some((third, after)) =
            rest.strip_prefix('.').and_then(|rest| number(rest.trim_start_matches('L')))
        {
            (patch, rest) = (third.parse().ok()?, after);
        }
        let is_end = rest.is_empty() || rest.starts_with(['-', '.', '_', '+']);
        ((19..=99).contains(&year) && is_end).then_some(Self { year, number: month, patch })
    }

    /// Its place among the releases: that of the last one that is not after it.
    #[must_use]
    pub fn place(self) -> Option<usize> {
        RELEASES.iter().rposition(|release| *release <= (self.year, self.number))
    }

    /// Whether images of it are named `opensdn-…`, and configured so.
    #[must_use]
    pub fn is_opensdn(self) -> bool {
        self.year >= 25
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.year, self.number)?;
        if self.patch > 0 { write!(formatter, ".{}", self.patch) } else { Ok(()) }
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
            ("R24.1", Some("24.1")),
            ("R21.4.1-centos", Some("21.4.1")),
            ("2011", Some("20.11")),
            ("R2011.L5.1", Some("20.11.5")),
            ("21.4.0-77", Some("21.4")),
            ("R25.1-rc1", Some("25.1")),
            ("26.2.0", Some("26.2")),
            ("latest", None),
            ("3.11", None),
            ("7.0.15", None),
            ("3.10.7-management", None),
            ("24", None),
            ("24.x", None),
            ("", None),
            ("24.1beta", None),
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
        assert_eq!(place("2011"), Some(0));
        assert_eq!(place("R21.4.1"), place("R21.4"));
        assert_eq!(place("24.2.0"), place("R24.1"), "one between belongs to the one before");
        assert_eq!(place("R24.1").map(|one| one + 1), place("R25.1"));
        assert_eq!(place("19.12"), None);
        assert!(RELEASES.is_sorted());
    }
}
