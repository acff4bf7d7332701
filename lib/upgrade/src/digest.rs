//! Short names for what is long: for telling apart, not for keeping secrets.

use sha2::{Digest as _, Sha256};

/// So many bytes of the SHA-256 of a text, in hexadecimal.
#[must_use]
pub fn digest(text: &str, bytes: usize) -> String {
    Sha256::digest(text.as_bytes()).iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}
