//! How large answers may be, for callers whose memory is limited: whoever is asked decides how much it answers.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

tokio::task_local! {
    static LIMITS: Limits;
}

/// The most of each answer. Where a client or a call has a lower bound of its own, that holds.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of the text.
    pub bytes: u64,
    /// Values, keys included; long texts count as several. Each takes some hundred bytes of memory.
    pub values: usize,
    exceeded: Arc<AtomicBool>,
}

impl Limits {
    /// These.
    #[must_use]
    pub fn new(bytes: u64, values: usize) -> Self {
        Self { bytes, values, exceeded: Arc::default() }
    }

    /// Whether an answer was larger.
    #[must_use]
    pub fn were_exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Acquire)
    }

    /// Does this work with them, as far as it is done by this task.
    pub async fn within<T>(&self, work: impl Future<Output = T>) -> T {
        LIMITS.scope(self.clone(), work).await
    }
}

/// Whether an answer was larger than the limits of this task; false where it has none.
#[must_use]
pub fn are_exceeded() -> bool {
    LIMITS.try_with(Limits::were_exceeded).unwrap_or_default()
}

/// The lower of these and those of the task.
pub(crate) fn lower(bytes: u64, values: usize) -> (u64, usize) {
    LIMITS
        .try_with(|limits| (limits.bytes.min(bytes), limits.values.min(values)))
        .unwrap_or((bytes, values))
}

/// An answer was larger.
pub(crate) fn exceed() {
    // Who has set none does not ask.
    let _ = LIMITS.try_with(|limits| limits.exceeded.store(true, Ordering::Release));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_lower_bound_holds_and_only_for_the_work() {
        assert_eq!(lower(10, 20), (10, 20));
        let limits = Limits::new(5, 100);
        assert_eq!(limits.within(async { lower(10, 20) }).await, (5, 20));
        assert!(!limits.were_exceeded());
        limits.within(async { exceed() }).await;
        assert!(limits.were_exceeded());
        exceed();
        assert!(!Limits::new(1, 1).were_exceeded());
    }
}
