//! The clock by whose ticks the time limit of evaluations holds. It ticks while something is evaluated, and a moment longer:
//! to wake up five hundred times a second for nothing costs every node more than its evaluations do.

use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

/// How often a running evaluation is interrupted: it then yields to others or, past its deadline,
/// ends.
pub const TICK: Duration = Duration::from_millis(2);

/// So many ticks in which nothing is evaluated, and it stops: under load it is never woken.
const IDLE_TICKS: u32 = 500;

/// So long it sleeps at most, to see whether its engine is still there.
const SLEEP: Duration = Duration::from_secs(1);

/// The clock of one engine.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    running: AtomicUsize,
    is_stopped: AtomicBool,
    thread: OnceLock<Thread>,
}

/// One evaluation runs as long as this is there.
#[derive(Debug)]
pub(crate) struct Running<'c>(&'c Clock);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Clock {
    /// Starts it. `tick` answers whether there is still something to tick for; with the first no the clock ends.
    pub(crate) fn start(tick: impl FnMut() -> bool + Send + 'static) -> io::Result<Arc<Self>> {
        Self::that_sleeps(SLEEP, tick)
    }

    fn that_sleeps(
        at_most: Duration,
        mut tick: impl FnMut() -> bool + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let clock = Arc::new(Self::default());
        let own = Arc::clone(&clock);
        let started = thread::Builder::new()
            .name("policy-clock".to_owned())
            .spawn(move || own.run(at_most, &mut tick))?;
        // It was not set before.
        let _ = clock.thread.set(started.thread().clone());
        Ok(clock)
    }

    /// Has it tick until what is answered is dropped.
    pub(crate) fn run_for(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::SeqCst);
        if self.is_stopped.swap(false, Ordering::SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
        Running(self)
    }

    fn run(&self, at_most: Duration, tick: &mut impl FnMut() -> bool) {
        let mut idle = 0;
        while tick() {
            idle = if self.running.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
            if idle < IDLE_TICKS {
                thread::sleep(TICK);
                continue;
            }
            self.is_stopped.store(true, Ordering::SeqCst);
            // One that came before this was said does not wake it.
            if self.running.load(Ordering::SeqCst) == 0 {
                thread::park_timeout(at_most);
            }
            if !self.is_stopped.swap(false, Ordering::SeqCst) {
                idle = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn counted(at_most: Duration) -> (Arc<Clock>, Arc<AtomicUsize>) {
        let ticks = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&ticks);
        let clock = Clock::that_sleeps(at_most, move || {
            own.fetch_add(1, Ordering::SeqCst);
            // The test holds the other.
            Arc::strong_count(&own) > 1
        });
        (clock.unwrap(), ticks)
    }

    fn until(what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
            thread::sleep(TICK);
        }
    }

    #[test]
    fn it_stops_when_nothing_is_evaluated_and_ticks_again_with_the_next_evaluation() {
        // By itself it does not wake up while this test runs.
        let (clock, ticks) = counted(Duration::from_secs(3600));
        until("it stops", || clock.is_stopped.load(Ordering::SeqCst));
        let (before, running) = (ticks.load(Ordering::SeqCst), clock.run_for());
        until("it ticks", || ticks.load(Ordering::SeqCst) >= before + 3);
        drop(running);
        until("it stops again", || clock.is_stopped.load(Ordering::SeqCst));
        let before = ticks.load(Ordering::SeqCst);
        let running: Vec<_> = (0..3).map(|_| clock.run_for()).collect();
        until("it ticks", || ticks.load(Ordering::SeqCst) >= before + 3);
        drop(running);
    }

    #[test]
    fn it_ticks_while_anything_is_evaluated_however_long_that_takes() {
        let (clock, ticks) = counted(SLEEP);
        let _running = clock.run_for();
        drop(clock.run_for());
        let most = usize::try_from(IDLE_TICKS).unwrap();
        until("it ticks on", || ticks.load(Ordering::SeqCst) > 2 * most);
        assert!(!clock.is_stopped.load(Ordering::SeqCst));
    }

    #[test]
    fn it_ends_with_what_it_ticks_for() {
        let (clock, ticks) = counted(SLEEP);
        drop(ticks);
        until("its thread lets go of it", || Arc::strong_count(&clock) == 1);
    }
}
