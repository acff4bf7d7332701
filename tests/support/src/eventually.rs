//! Waiting for something that other processes bring about.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// So long something may take on a loaded machine before a test calls it missing.
pub const TIMEOUT: Duration = Duration::from_secs(240);
/// Until then the poll interval is short.
const OFTEN_FOR: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(30);
const LATER_INTERVAL: Duration = Duration::from_millis(250);

/// Waits until it is so.
///
/// # Panics
/// It is not so within [`TIMEOUT`].
pub async fn eventually<F: Future<Output = bool>>(what: &str, is: impl FnMut() -> F) {
    eventually_within(TIMEOUT, what, is).await;
}

/// Waits until it is so, for as long as this.
///
/// # Panics
/// It is not so within that time.
pub async fn eventually_within<F: Future<Output = bool>>(
    limit: Duration,
    what: &str,
    mut is: impl FnMut() -> F,
) {
    let begun = Instant::now();
    let so = async {
        while !is().await {
            // What takes long is not asked for so often: the asking is a load, too.
            sleep(if begun.elapsed() < OFTEN_FOR { POLL_INTERVAL } else { LATER_INTERVAL }).await;
        }
    };
    assert!(timeout(limit, so).await.is_ok(), "not within {limit:?}: {what}");
}
