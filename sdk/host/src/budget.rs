//! How much processor time an evaluation may use. Wall-clock time would stop innocent policies
//! on a busy node and in a throttled container.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

use crate::clock::TICK;

/// What one evaluation has used and may use. To ask costs a system call, so until the first tick,
/// before which nearly every evaluation ends, nothing is measured.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: Duration,
    /// Nanoseconds used, not counting the present turn; 0 before the first tick.
    used: AtomicU64,
    /// The thread's time when the present turn began.
    turn: AtomicU64,
}

impl Budget {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, used: AtomicU64::new(0), turn: AtomicU64::new(0) }
    }

    /// A tick finds it running: whether it has used up what it may.
    pub(crate) fn is_used_up(&self) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        if used == 0 {
            // The first tick that interrupts is the second that passes: one has passed whole, and
            // an unknown part of the other. No policy is stopped before its time.
            self.used.store(nanoseconds(TICK), Ordering::Relaxed);
            self.turn.store(thread_time(), Ordering::Relaxed);
            return TICK >= self.limit;
        }
        let turn = thread_time().saturating_sub(self.turn.load(Ordering::Relaxed));
        Duration::from_nanos(used + turn) >= self.limit
    }

    /// Drives an evaluation, turn by turn: between two of them the thread works for others.
    pub(crate) async fn over<F: Future>(&self, evaluation: F) -> F::Output {
        let mut evaluation = pin!(evaluation);
        poll_fn(|context| {
            if self.used.load(Ordering::Relaxed) > 0 {
                self.turn.store(thread_time(), Ordering::Relaxed);
            }
            let polled = evaluation.as_mut().poll(context);
            if polled.is_pending() && self.used.load(Ordering::Relaxed) > 0 {
                let turn = thread_time().saturating_sub(self.turn.load(Ordering::Relaxed));
                self.used.fetch_add(turn, Ordering::Relaxed);
            }
            polled
        })
        .await
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds that this thread has run.
fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds * 1_000_000_000 + nanoseconds
}

#[cfg(test)]
mod tests {
    use std::{hint::black_box, thread, time::Instant};

    use tokio::task::yield_now;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(30);

    #[tokio::test]
    async fn time_in_which_the_machine_runs_others_does_not_count() {
        let budget = Budget::new(LIMIT);
        let outcome = budget
            .over(async {
                assert!(!budget.is_used_up());
                // The thread is idle, as one that gets no processor.
                thread::sleep(2 * LIMIT);
                assert!(!budget.is_used_up());
                yield_now().await;
                thread::sleep(2 * LIMIT);
                budget.is_used_up()
            })
            .await;
        assert!(!outcome);
    }

    #[tokio::test]
    async fn work_counts_over_all_turns_and_only_its_own() {
        let budget = Budget::new(LIMIT);
        let work = |time: Duration| {
            let started = thread_time();
            while thread_time() < started + nanoseconds(time) {
                black_box(Instant::now());
            }
        };
        let evaluation = budget.over(async {
            assert!(!budget.is_used_up());
            work(LIMIT / 3);
            yield_now().await;
            assert!(!budget.is_used_up());
            work(LIMIT);
            budget.is_used_up()
        });
        let others = async { work(2 * LIMIT) };
        let (is_used_up, ()) = tokio::join!(evaluation, others);
        assert!(is_used_up);
    }
}
