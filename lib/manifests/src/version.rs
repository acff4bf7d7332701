//! Versions of Kubernetes, for what an API server checks from a certain version on.

use std::fmt;
use std::str::FromStr;

/// The oldest version that is supported.
const OLDEST: u16 = 33;

/// The newest version that is known.
const NEWEST: u16 = 36;

/// A version of Kubernetes that OpenSDN runs on: 1.33 and newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubernetesVersion {
    minor: u16,
}

/// Why a text is no [`KubernetesVersion`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// Not of the form `1.33`.
    #[error("`{0}` is no version of Kubernetes: write it as 1.{NEWEST}")]
    Malformed(String),
    /// Older than what is supported.
    #[error("Kubernetes {0} is not supported: 1.{OLDEST} is the oldest that is")]
    TooOld(String),
    /// Newer than what is known here.
    #[error("Kubernetes {0} is not known: 1.{NEWEST} is the newest that is")]
    TooNew(String),
}

impl KubernetesVersion {
    /// The newest version that is known.
    pub const NEWEST: Self = Self { minor: NEWEST };

    /// The `33` of `1.33`.
    #[must_use]
    pub const fn minor(self) -> u16 {
        self.minor
    }

    pub(crate) const fn at_least(self, minor: u16) -> bool {
        self.minor >= minor
    }
}

impl FromStr for KubernetesVersion {
    type Err = VersionError;

    /// Reads `1.33`, `v1.33` and `1.33.2`; what is behind the minor version does not matter.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || VersionError::Malformed(text.to_owned());
        let bare = text.strip_prefix('v').unwrap_or(text);
        let rest = bare.strip_prefix("1.").ok_or_else(malformed)?;
        let (minor, patch) = rest.split_once('.').unwrap_or((rest, "0"));
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let patch = patch.split(['-', '+']).next().unwrap_or_default();
        if !digits(minor) || !digits(patch) {
            return Err(malformed());
        }
        match minor.parse().map_err(|_| malformed())? {
            ..OLDEST => Err(VersionError::TooOld(text.to_owned())),
            minor @ OLDEST..=NEWEST => Ok(Self { minor }),
            _ => Err(VersionError::TooNew(text.to_owned())),
        }
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "1.{}", self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::{KubernetesVersion, VersionError};

    #[test]
    fn versions_are_read_as_people_write_them() {
        for text in ["1.34", "v1.34", "1.34.2", "v1.34.2-gke.1"] {
            assert_eq!(text.parse(), Ok(KubernetesVersion { minor: 34 }), "{text}");
        }
        assert_eq!(KubernetesVersion { minor: 34 }.to_string(), "1.34");
    }

    #[test]
    fn versions_that_cannot_be_judged_are_refused() {
        let error = |text: &str| text.parse::<KubernetesVersion>().unwrap_err();
        assert_eq!(error("1.32"), VersionError::TooOld("1.32".to_owned()));
        assert_eq!(error("1.99"), VersionError::TooNew("1.99".to_owned()));
        for text in ["", "1", "34", "1.x", "2.0", "1.34.", "1.-3"] {
            assert_eq!(error(text), VersionError::Malformed(text.to_owned()));
        }
    }
}
