//! Since when something is so: a node is gone, or a removal fails.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

type Key = (String, String);

/// When each was found so first, by the UID of the object that it is about and what is so.
#[derive(Default)]
pub(super) struct Since(Mutex<BTreeMap<Key, Instant>>);

impl Since {
    /// For how long it has been so, as it is now.
    pub(super) fn time(&self, uid: &str, what: &str, now: Instant) -> Duration {
        now.duration_since(*self.lock().entry(key(uid, what)).or_insert(now))
    }

    /// It is not so.
    pub(super) fn forget(&self, uid: &str, what: &str) {
        self.lock().remove(&key(uid, what));
    }

    pub(super) fn forget_all_of(&self, uid: &str) {
        self.lock().retain(|(of, _), _| of != uid);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Instant>> {
        // A map of times cannot be left half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(uid: &str, what: &str) -> Key {
    (uid.to_owned(), what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_gone_since_it_was_found_so_first_and_not_any_more_when_it_is_back() {
        let (since, start) = (Since::default(), Instant::now());
        let minute = Duration::from_secs(60);
        assert_eq!(since.time("u", "bgp-router a", start), Duration::ZERO);
        assert_eq!(since.time("u", "bgp-router a", start + minute), minute);
        assert_eq!(since.time("u", "bgp-router b", start + minute), Duration::ZERO);
        since.forget("u", "bgp-router a");
        assert_eq!(since.time("u", "bgp-router a", start + minute * 2), Duration::ZERO);
        since.forget_all_of("u");
        assert_eq!(since.time("u", "bgp-router b", start + minute * 3), Duration::ZERO);
    }
}
