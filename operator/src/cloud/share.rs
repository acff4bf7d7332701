//! How much of the operator the clouds of one namespace may take: who writes a NestedCluster chooses whose answers are read.
//! A namespace has a few passes at a time, so that servers that do not answer hold up those of their own namespace only;
//! and large answers are read in one pass at a time, since the memory is limited.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use opensdn_config_api::limits::Limits;
use tokio::sync::Semaphore;

use super::condition::Said;

/// So many passes of a namespace at a time, of the four that a kind has.
const MOST_OF_NAMESPACE: u32 = 2;
/// When one for which there was no room is tried again.
pub(super) const NO_ROOM: Duration = Duration::from_secs(2);
/// Bytes and values of an answer that any pass may read: the cloud of a few hundred machines.
const SMALL: (u64, usize) = (256 << 10, 5_000);
/// The same of the one pass that reads large ones. A list of that length has some 8 000 objects; what is kept of it is in
/// the worst case two and a half times as long, of two lists at a time.
const LARGE: (u64, usize) = (8 << 20, 100_000);

/// With which limits a pass is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// What is larger is left, and the pass is made again.
    Small,
    /// What is larger is unknown.
    Large,
}

/// What passes take at the moment.
pub(super) struct Share {
    large: Semaphore,
    running: Mutex<HashMap<String, u32>>,
}

impl Default for Share {
    fn default() -> Self {
        Self { large: Semaphore::new(1), running: Mutex::default() }
    }
}

/// A pass that is made; dropping it makes room.
pub(super) struct Room<'s> {
    share: &'s Share,
    namespace: String,
}

impl Share {
    /// Room for a pass of the namespace, if there is.
    pub(super) fn take(&self, namespace: &str) -> Option<Room<'_>> {
        let mut running = self.running();
        let count = running.entry(namespace.to_owned()).or_default();
        if *count >= MOST_OF_NAMESPACE {
            return None;
        }
        *count += 1;
        Some(Room { share: self, namespace: namespace.to_owned() })
    }

    /// Does the work with the small limits, and where an answer was larger once more with the large ones. None where another
    /// pass does that already.
    pub(super) async fn limited<'w, T>(
        &self,
        work: impl Fn(Attempt) -> BoxFuture<'w, T>,
    ) -> Option<T> {
        let small = Limits::new(SMALL.0, SMALL.1);
        let done = small.within(work(Attempt::Small)).await;
        if !small.were_exceeded() {
            return Some(done);
        }
        let _permit = self.large.try_acquire().ok()?;
        Some(Limits::new(LARGE.0, LARGE.1).within(work(Attempt::Large)).await)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        // A map of numbers cannot be left half changed.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let mut running = self.share.running();
        if let Some(count) = running.get_mut(&self.namespace) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                running.remove(&self.namespace);
            }
        }
    }
}

/// What is said where another pass reads large answers.
pub(super) fn busy() -> Said {
    let message = "the answers of this Config API are large, and those of another are being read; it is tried again";
    Said::waits("Busy", message.to_owned())
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_namespace_takes_no_room_of_another() {
        let share = Share::default();
        let held: Vec<_> = (0..MOST_OF_NAMESPACE).map(|_| share.take("a").unwrap()).collect();
        assert!(share.take("a").is_none() && share.take("b").is_some());
        drop(held);
        assert!(share.take("a").is_some());
        assert!(share.running().is_empty(), "nothing is kept of what ended");
    }

    #[tokio::test]
    async fn large_answers_are_read_in_one_pass_at_a_time() {
        let share = Share::default();
        let attempt = |attempt| futures::future::ready(attempt).boxed();
        assert_eq!(share.limited(attempt).await, Some(Attempt::Small));
        let permit = share.large.try_acquire().unwrap();
        assert_eq!(share.limited(attempt).await, Some(Attempt::Small));
        drop(permit);
    }
}
