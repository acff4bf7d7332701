//! Chance, so that programs that wait for the same do not come back at the same moment. Not for secrets.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// A number by chance.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// From half of it to all of it.
pub(crate) fn jittered(longest: Duration) -> Duration {
    let part = (random() % 1024) as u32;
    longest / 2 + longest / 2 * part / 1024
}
