//! Whose turn it is to compile. One compiler runs at a time, for all of them share what the container
//! has; yet a built-in module waits for no other: what is being compiled then gives way, and has its
//! turn again. That is bounded: each built-in module is compiled once, and is then known.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit, watch};

/// Whose module it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    BuiltIn,
    /// A ConfigMap, a folder: whatever is no part of this program.
    Outside,
}

/// Whether a module that is being loaded waits for its turn, for people.
#[derive(Debug, Default)]
pub(crate) struct Waiting(AtomicBool);

impl Waiting {
    /// Whether it waits now.
    pub(crate) fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// It waits until this is over.
    pub(crate) async fn during<T>(&self, wait: impl Future<Output = T>) -> T {
        self.0.store(true, Ordering::Relaxed);
        let output = wait.await;
        self.0.store(false, Ordering::Relaxed);
        output
    }
}

/// The turns of all modules.
pub(super) struct Turns {
    compiler: Semaphore,
    /// Built-in modules that wait or are being compiled.
    built_in: watch::Sender<usize>,
}

/// The turn of one module, until it is dropped.
pub(super) struct Turn<'t> {
    _permit: Option<SemaphorePermit<'t>>,
    /// Where it gives way.
    built_in: Option<watch::Receiver<usize>>,
}

/// A built-in module that wants its turn, until this is dropped.
pub(super) struct Announced<'t>(Option<&'t watch::Sender<usize>>);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        if let Some(built_in) = self.0 {
            built_in.send_modify(|count| *count = count.saturating_sub(1));
        }
    }
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { compiler: Semaphore::new(1), built_in: watch::Sender::new(0) }
    }

    /// To be held from before the first turn until the module needs none any more.
    pub(super) fn announce(&self, origin: Origin) -> Announced<'_> {
        let built_in = (origin == Origin::BuiltIn).then_some(&self.built_in);
        if let Some(built_in) = built_in {
            built_in.send_modify(|count| *count += 1);
        }
        Announced(built_in)
    }

    /// Waits for the turn of a module.
    pub(super) async fn take(&self, origin: Origin) -> Turn<'_> {
        // The semaphore is never closed; a permit more or less is no reason to fail.
        if origin == Origin::BuiltIn {
            return Turn { _permit: self.compiler.acquire().await.ok(), built_in: None };
        }
        let mut built_in = self.built_in.subscribe();
        loop {
            until(&mut built_in, |count| count == 0).await;
            let permit = self.compiler.acquire().await.ok();
            // One may have come while this waited, and waits for this now.
            if *built_in.borrow_and_update() == 0 {
                return Turn { _permit: permit, built_in: Some(built_in) };
            }
        }
    }
}

impl Turn<'_> {
    /// Returns when the turn has to be given to a built-in module.
    pub(super) async fn is_over(&mut self) {
        match &mut self.built_in {
            Some(built_in) => until(built_in, |count| count > 0).await,
            None => std::future::pending().await,
        }
    }
}

async fn until(built_in: &mut watch::Receiver<usize>, is_so: impl Fn(usize) -> bool) {
    // The sender is there as long as there are turns, so it does not fail.
    drop(built_in.wait_for(|count| is_so(*count)).await);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_module_shows_that_it_waits_while_it_has_no_turn() {
        let (turns, waiting) = (Turns::new(), Waiting::default());
        let first = waiting.during(turns.take(Origin::Outside)).await;
        assert!(!waiting.is_so());
        let mut second = Box::pin(waiting.during(turns.take(Origin::Outside)));
        assert!(timeout(Duration::from_millis(1), &mut second).await.is_err());
        assert!(waiting.is_so());
        drop(first);
        let _second = second.await;
        assert!(!waiting.is_so());
    }
}
