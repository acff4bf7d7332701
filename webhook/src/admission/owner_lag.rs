//! A policy may exempt an object from claims that its owner makes, which it looks up. When an operator
//! writes the object just after its owner has changed, the lookup may not show the change yet, and the
//! object is then in conflict with its own owner. So that conflict, and no other, is judged again a few
//! times before it refuses the request.
//!
//! Any user can write an ownerReference, so what waits is bounded, in time and in number. To wait allows
//! nothing: what counts is what the policies say at last.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep};

/// How often a request is judged again.
const RETRIES: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_millis(300);
/// What has to be left of the review's time for judging it again.
const RESERVE: Duration = Duration::from_secs(1);
/// So many reviews may wait at once: few operators write at one time.
const WAITING: usize = 8;

/// Which reviews wait.
pub(super) struct OwnerLag {
    slots: Semaphore,
}

impl Default for OwnerLag {
    fn default() -> Self {
        Self { slots: Semaphore::new(WAITING) }
    }
}

impl OwnerLag {
    /// For one review of an object that the object of that UID controls.
    pub(super) fn begin(&self, owner: Option<String>) -> Retry<'_> {
        Retry { lag: self, owner, retries: 0, slot: None }
    }
}

/// What is left to try of one review.
pub(super) struct Retry<'l> {
    lag: &'l OwnerLag,
    owner: Option<String>,
    retries: u32,
    slot: Option<SemaphorePermit<'l>>,
}

impl Retry<'_> {
    /// Waits, if that may help, and says whether to judge again. `held_by` are the holders of the keys
    /// that the request did not get.
    pub(super) async fn wait(&mut self, held_by: &[Option<String>], deadline: Instant) -> bool {
        let may_wait = self.begin(held_by, deadline);
        if may_wait {
            sleep(RETRY_DELAY).await;
        }
        may_wait
    }

    /// Whether to wait once more.
    fn begin(&mut self, held_by: &[Option<String>], deadline: Instant) -> bool {
        let is_owner = |holder: &Option<String>| holder.is_some() && *holder == self.owner;
        let may_help = !held_by.is_empty() && held_by.iter().all(is_owner);
        let is_in_time = Instant::now() + RETRY_DELAY + RESERVE <= deadline;
        if !may_help || !is_in_time || self.retries == RETRIES {
            return false;
        }
        if self.slot.is_none() {
            self.slot = self.lag.slots.try_acquire().ok();
        }
        self.retries += 1;
        self.slot.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(uid: &str) -> Option<String> {
        Some(uid.to_owned())
    }

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    #[test]
    fn only_a_conflict_with_the_own_owner_is_waited_for() {
        let lag = OwnerLag::default();
        let cases = [
            (holder("o"), vec![holder("o"), holder("o")], true),
            (holder("o"), vec![holder("o"), holder("x")], false),
            (holder("o"), vec![None], false),
            (holder("o"), vec![], false),
            (None, vec![None], false),
            (None, vec![holder("o")], false),
        ];
        for (owner, held_by, expected) in cases {
            let waits = lag.begin(owner.clone()).begin(&held_by, far());
            assert_eq!(waits, expected, "{owner:?} {held_by:?}");
        }
    }

    #[test]
    fn no_review_waits_longer_than_a_second_or_up_to_its_deadline() {
        let lag = OwnerLag::default();
        let mut retry = lag.begin(holder("o"));
        let waits = (0..10).filter(|_| retry.begin(&[holder("o")], far())).count();
        assert_eq!(waits, 3);
        assert!(RETRY_DELAY * RETRIES < Duration::from_secs(1));
        let soon = Instant::now() + RETRY_DELAY;
        assert!(!lag.begin(holder("o")).begin(&[holder("o")], soon));
    }

    #[test]
    fn few_reviews_wait_at_once() {
        let lag = OwnerLag::default();
        let mut waiting = Vec::new();
        for _ in 0..WAITING {
            let mut retry = lag.begin(holder("o"));
            assert!(retry.begin(&[holder("o")], far()));
            waiting.push(retry);
        }
        assert!(!lag.begin(holder("o")).begin(&[holder("o")], far()));
        drop(waiting);
        assert!(lag.begin(holder("o")).begin(&[holder("o")], far()));
    }
}
