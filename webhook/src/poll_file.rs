//! Files that change without an event that is the same everywhere, such as a mounted Secret: they are read
//! again and again. Deliberately not here: what they hold.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Gives `take` the text for as long as it is polled. Of failures in a row `failed` gets the first one.
pub(crate) async fn poll<E>(
    path: &Path,
    take: impl Fn(io::Result<String>) -> Result<(), E>,
    failed: impl Fn(&E),
) {
    let mut timer = interval(POLL_INTERVAL);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut has_failed = false;
    loop {
        timer.tick().await;
        match take(tokio::fs::read_to_string(path).await) {
            Ok(()) => has_failed = false,
            Err(error) => {
                if !std::mem::replace(&mut has_failed, true) {
                    failed(&error);
                }
            }
        }
    }
}
