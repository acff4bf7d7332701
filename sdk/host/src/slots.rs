//! How many evaluations run at once, and for whom a slot is kept free. Kinds of any group share
//! most slots; a part is kept for those whose requests are refused when none becomes free, so that
//! a busy policy about Pods cannot have a change of a network refused. A slot is the memory of an ordinary
//! evaluation: one that may take more takes several.

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// One slot in so many is kept.
const KEPT: u32 = 4;

/// The slots of an engine.
#[derive(Debug)]
pub(crate) struct Slots {
    shared: Semaphore,
    shared_slots: u32,
    kept: Semaphore,
    kept_slots: u32,
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
    /// So many in all. Of a single one none is kept, of two or three one is.
    pub(crate) fn new(concurrent: u32) -> Self {
        let kept_slots = if concurrent < 2 { 0 } else { (concurrent / KEPT).max(1) };
        let shared_slots = concurrent - kept_slots;
        let semaphore = |slots: u32| Semaphore::new(slots as usize);
        Self {
            shared: semaphore(shared_slots),
            shared_slots,
            kept: semaphore(kept_slots),
            kept_slots,
        }
    }

    /// So many slots, until they are dropped; `None` if they did not become free in time. What wants more than are
    /// shared has all of these, and runs beside none but those that have kept ones.
    pub(crate) async fn acquire(
        &self,
        class: SlotClass,
        slots: u32,
        deadline: Instant,
    ) -> Option<SemaphorePermit<'_>> {
        let (wanted, shared) = (slots.max(1), slots.clamp(1, self.shared_slots));
        // What is shared goes first, so that what is kept is there when it is needed.
        if let Ok(permit) = self.shared.try_acquire_many(shared) {
            return Some(permit);
        }
        let wait = async {
            match class {
                SlotClass::Kept if wanted <= self.kept_slots => tokio::select! {
                    biased;
                    permit = self.kept.acquire_many(wanted) => permit,
                    permit = self.shared.acquire_many(shared) => permit,
                },
                SlotClass::Kept | SlotClass::Shared => self.shared.acquire_many(shared).await,
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
        slots.acquire(class, 1, Instant::now()).await
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
    async fn every_engine_has_a_slot_for_everybody_and_from_two_on_one_that_is_kept() {
        for concurrent in 1..8 {
            let slots = Slots::new(concurrent);
            let mut taken = Vec::new();
            while let Some(slot) = take(&slots, SlotClass::Shared).await {
                taken.push(slot);
            }
            assert!(!taken.is_empty());
            let kept = take(&slots, SlotClass::Kept).await;
            assert_eq!(kept.is_some(), concurrent > 1, "of {concurrent}");
        }
    }

    #[tokio::test]
    async fn what_may_take_more_memory_takes_more_slots_and_what_takes_too_much_all_of_them() {
        let slots = Slots::new(8);
        let now = Instant::now();
        let four = slots.acquire(SlotClass::Shared, 4, now).await.unwrap();
        assert!(slots.acquire(SlotClass::Shared, 4, now).await.is_none(), "two are left");
        assert!(slots.acquire(SlotClass::Kept, 4, now).await.is_none(), "two are kept");
        let kept = slots.acquire(SlotClass::Kept, 2, now).await.unwrap();
        drop((four, kept));
        let all = slots.acquire(SlotClass::Shared, 16, now).await.unwrap();
        assert!(take(&slots, SlotClass::Shared).await.is_none());
        assert!(take(&slots, SlotClass::Kept).await.is_some());
        drop(all);
        assert!(take(&slots, SlotClass::Shared).await.is_some());
    }
}
