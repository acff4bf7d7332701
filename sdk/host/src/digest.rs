//! The digest by which a policy is pinned.

use std::{
    fmt,
    io::{self, Read},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};

use crate::text::quoted;

/// SHA-256 of a policy's bytes, written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// A text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest; expected `sha256:` and 64 hexadecimal digits")]
pub struct DigestError(String);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of all that can be read, which is never held as a whole.
    pub(crate) fn of_stream(mut stream: impl Read) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        let mut piece = vec![0; 64 << 10];
        loop {
            let length = stream.read(&mut piece)?;
            if length == 0 {
                return Ok(Self(hasher.finalize().into()));
            }
            hasher.update(piece.get(..length).unwrap_or_default());
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sha256:{}", hexadecimal(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let refused = || DigestError(quoted(text).into_owned());
        let digits = text.strip_prefix("sha256:").ok_or_else(refused)?;
        if digits.len() != 64
            || !digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        {
            return Err(refused());
        }
        let mut bytes = [0_u8; 32];
        for (number, byte) in bytes.iter_mut().enumerate() {
            let pair = digits.get(number * 2..number * 2 + 2).ok_or_else(refused)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| refused())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn reads_what_it_writes_and_nothing_else() {
        let digest = Digest::of(b"policy");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for bad in
            ["", "sha256:", "sha256:12", &format!("sha512:{}", "0".repeat(64)), &"x".repeat(71)]
        {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
        assert!(format!("sha256:{}", "+0".repeat(32)).parse::<Digest>().is_err());
    }
}
