//! How many evaluations run at once, and for whom a slot is kept free. Kinds of any group share
//! most slots; a part is kept for those whose requests are refused when none becomes free, so that
//! a busy policy about Pods cannot have a change of a network refused.

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// One slot in so many is kept.
const KEPT: u32 = 4;

/// The slots of an engine.
#[derive(Debug)]
pub(crate) struct Slots {
    shared: Semaphore,
    kept: Semaphore,
}

/// Which slots an evaluation may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotClass {
    /// Only those that all share.
    Shared,
    /// Those that are kept, too.
    Kept,
}

impl Slots {
    /// So many in all; where there are fewer than four, none is kept.
    pub(crate) fn new(concurrent: u32) -> Self {
        let kept = concurrent / KEPT;
        let semaphore = |slots: u32| Semaphore::new(slots as usize);
        Self { shared: semaphore(concurrent - kept), kept: semaphore(kept) }
    }

    /// A slot, until it is dropped; `None` if none became free in time.
    pub(crate) async fn acquire(
        &self,
        class: SlotClass,
        deadline: Instant,
    ) -> Option<SemaphorePermit<'_>> {
        // What is shared goes first, so that what is kept is there when it is needed.
        if let Ok(slot) = self.shared.try_acquire() {
            return Some(slot);
        }
        let wait = async {
            match class {
                SlotClass::Shared => self.shared.acquire().await,
                SlotClass::Kept => tokio::select! {
                    biased;
                    slot = self.kept.acquire() => slot,
                    slot = self.shared.acquire() => slot,
                },
            }
        };
        timeout_at(deadline, wait).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is free at once.
    async fn take(slots: &Slots, class: SlotClass) -> Option<SemaphorePermit<'_>> {
        slots.acquire(class, Instant::now()).await
    }

    #[tokio::test]
    async fn when_all_shared_slots_are_taken_the_kept_ones_are_free() {
        let slots = Slots::new(8);
        let mut taken = Vec::new();
        while let Some(slot) = take(&slots, SlotClass::Shared).await {
            taken.push(slot);
        }
        assert_eq!(taken.len(), 6);
        let kept = [take(&slots, SlotClass::Kept).await, take(&slots, SlotClass::Kept).await];
        assert!(kept.iter().all(Option::is_some));
        assert!(take(&slots, SlotClass::Kept).await.is_none(), "the number is bounded");
        taken.pop();
        assert!(take(&slots, SlotClass::Kept).await.is_some(), "of either sort");
    }

    #[tokio::test]
    async fn every_engine_has_a_slot_for_everybody() {
        for concurrent in 1..8 {
            let now = Instant::now();
            assert!(Slots::new(concurrent).acquire(SlotClass::Shared, now).await.is_some());
        }
    }
}
