//! Waiting for something that other processes bring about.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// So long something may take on a loaded machine before a test calls it missing.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Until then something is asked for often.
const SOON: Duration = Duration::from_secs(1);
const OFTEN: Duration = Duration::from_millis(30);
const SELDOM: Duration = Duration::from_millis(250);

/// Waits until it is so.
///
/// # Panics
/// It is not so within [`PATIENCE`].
pub async fn eventually<F: Future<Output = bool>>(what: &str, is: impl FnMut() -> F) {
    eventually_within(PATIENCE, what, is).await;
}

/// Waits until it is so, for as long as this.
///
/// # Panics
/// It is not so within that time.
pub async fn eventually_within<F: Future<Output = bool>>(
    patience: Duration,
    what: &str,
    mut is: impl FnMut() -> F,
) {
    let begun = Instant::now();
    let so = async {
        while !is().await {
            // What takes long is not asked for so often: the asking is a load, too.
            sleep(if begun.elapsed() < SOON { OFTEN } else { SELDOM }).await;
        }
    };
    assert!(timeout(patience, so).await.is_ok(), "not within {patience:?}: {what}");
}
