//! The release of images, as their tag says it, and what differs from release to release.

/// Year and number: 24.1 is `Release(24, 1)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub u16, pub u16);

/// The last that was named by year and month, 2112.
const LAST_OF_MONTHS: u16 = 2112;
/// From this on images are called `opensdn-…` (tf-container-builder 45850a1, of March 2025).
const FIRST_OPENSDN: Release = Release(25, 1);

impl Release {
    /// Of `R24.1`, `25.1-rc2`; `R2011` and `2011.L1` of old are 20.11, and `R5.0` is older. None where the tag does not say
    /// it, as `latest`, the number of a build, or a date.
    #[must_use]
    pub fn of_tag(tag: &str) -> Option<Self> {
        let digits = tag.strip_prefix(['R', 'r', 'v']).unwrap_or(tag);
        let end = digits.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let mut parts =
            digits.get(..end.unwrap_or(digits.len()))?.split('.').filter(|part| !part.is_empty());
        let first: u16 = parts.next()?.parse().ok()?;
        if first >= 1900 {
            let is_month = (1..=12).contains(&(first % 100)) && first <= LAST_OF_MONTHS;
            return is_month.then_some(Self(first / 100, first % 100));
        }
        Some(Self(first, parts.next()?.parse().ok()?))
    }

    /// What names of images begin with.
    #[must_use]
    pub fn image_prefix(tag: &str) -> &'static str {
        match Self::of_tag(tag) {
            Some(release) if release < FIRST_OPENSDN => "contrail-",
            _ => "opensdn-",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_of_its_tag_and_nothing_else_is_taken_for_one() {
        for (tag, release) in [
            ("R24.1", Release(24, 1)),
            ("25.1-rc2", Release(25, 1)),
            ("R25.3.l1", Release(25, 3)),
            ("v24.2", Release(24, 2)),
            ("R2011", Release(20, 11)),
            ("2011.L5.406", Release(20, 11)),
            ("1912", Release(19, 12)),
            ("21.4.L2", Release(21, 4)),
            ("R5.0", Release(5, 0)),
        ] {
            assert_eq!(Release::of_tag(tag), Some(release), "{tag}");
        }
        for tag in
            ["latest", "", "7", "dev-x", "2025-12-01", "2026.1", "2024.1", "2212", "20251201"]
        {
            assert_eq!(Release::of_tag(tag), None, "{tag}");
        }
    }

    #[test]
    fn images_are_called_as_their_release_calls_them() {
        for (tag, prefix) in [
            ("R24.1", "contrail-"),
            ("R25.1", "opensdn-"),
            ("latest", "opensdn-"),
            ("2011", "contrail-"),
        ] {
            assert_eq!(Release::image_prefix(tag), prefix, "{tag}");
        }
    }
}
