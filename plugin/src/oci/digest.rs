//! Digests: the only names of content that cannot lie.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 64 digits.
    pub(crate) fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sha256:{}", self.hex())
    }
}

impl FromStr for Digest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "a digest must be sha256: and 64 hexadecimal digits in lower case";
        let hex = text.strip_prefix("sha256:").ok_or(FORM)?;
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if hex.len() != 64 || !hex.bytes().all(is_hex) {
            return Err(FORM);
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = hex
                .get(at..at + 2)
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                .ok_or(FORM)?;
        }
        Ok(Self(bytes))
    }
}

/// What is read piece by piece, and what it has to be.
#[derive(Clone)]
pub(crate) struct Check {
    hasher: Sha256,
    read: u64,
    digest: Digest,
    size: u64,
}

impl Check {
    pub(crate) fn new(digest: Digest, size: u64) -> Self {
        Self { hasher: Sha256::new(), read: 0, digest, size }
    }

    /// Takes the next piece. The last one only if all of them are what they should be: who sends them on has not sent that
    /// one yet.
    ///
    /// # Errors
    /// It is longer than was said, or something else.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<(), String> {
        self.read += piece.len() as u64;
        if self.read > self.size {
            return Err(format!("{} is longer than its {} bytes", self.digest, self.size));
        }
        self.hasher.update(piece);
        if self.read == self.size { self.whole() } else { Ok(()) }
    }

    /// Whether that was it.
    ///
    /// # Errors
    /// It was something else, in words.
    pub(crate) fn finish(self) -> Result<(), String> {
        let Self { read, digest, size, .. } = &self;
        if read != size {
            return Err(format!("{digest} has {read} bytes instead of {size}"));
        }
        self.whole()
    }

    fn whole(&self) -> Result<(), String> {
        let (digest, found) = (self.digest, Digest(self.hasher.clone().finalize().into()));
        if found == digest { Ok(()) } else { Err(format!("instead of {digest} there is {found}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_another_is_too_long_or_too_short_is_found_out() {
        let digest = Digest::of(b"hello");
        let check = |pieces: &[&str], size| {
            let mut check = Check::new(digest, size);
            pieces.iter().try_for_each(|piece| check.take(piece.as_bytes()))?;
            check.finish()
        };
        assert_eq!(check(&["hel", "lo"], 5), Ok(()));
        for (pieces, size) in
            [(&["hellO"][..], 5), (&["hell"], 5), (&["hello", "!"], 5), (&["hello"], 6)]
        {
            assert!(check(pieces, size).is_err(), "{pieces:?} {size}");
        }
    }

    #[test]
    fn only_a_whole_sha256_in_lower_case_is_a_digest() {
        let good = Digest::of(b"").to_string();
        assert_eq!(good.parse::<Digest>().map(|digest| digest.to_string()), Ok(good.clone()));
        let short = good.get(..70).unwrap().to_owned();
        for bad in [
            "",
            "sha256:",
            &short,
            &good.to_uppercase(),
            &good.replace("256", "512"),
            "sha256:../../x",
        ] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
