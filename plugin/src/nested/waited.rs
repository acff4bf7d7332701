//! Says that something is still waited for: a Config API that does not answer is asked for a minute, and the lock of a
//! run that was killed is waited for for two.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::ui::Ui;

const EVERY: Duration = Duration::from_secs(10);

/// Does it, and says every ten seconds what it waits for.
pub(crate) async fn waited<T>(ui: &mut Ui, what: &str, work: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let mut work = pin!(work);
    loop {
        match timeout(EVERY, work.as_mut()).await {
            Ok(done) => return done,
            Err(_) => ui.progress(&format!("{what} ({} s)", begun.elapsed().as_secs())),
        }
    }
}
