//! Changes of global-vrouter-config as they happen: by the stream of events of the Config API where it offers one, else
//! by asking for its version again and again. What a change means, and what is done about it, is for the caller.

mod events;
mod run;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::client::{ConfigApi, Error};

use run::Run;

/// No interval is shorter, whatever a caller wants, so that no server is asked without a pause.
const SHORTEST: Duration = Duration::from_millis(1);

/// After what time something is done.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Without a stream the version is asked for after each of these, or after half of it.
    pub poll: Duration,
    /// Without a stream it is tried again after this.
    pub retry: Duration,
    /// A stream that has sent nothing for so long is given up; a server says every minute that it is there.
    pub silence: Duration,
    /// Beside a stream the version is asked for after this: a server learns of changes by messages, which may be lost.
    pub resync: Duration,
    /// The first wait before a stream that has ended is opened again; the longest is `poll`.
    pub pause: Duration,
    /// Changes that come within this after the first are reported with it.
    pub gather: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(30),
            retry: Duration::from_secs(300),
            silence: Duration::from_secs(150),
            resync: Duration::from_secs(600),
            pause: Duration::from_secs(1),
            gather: Duration::from_millis(200),
        }
    }
}

/// What is reported.
#[derive(Debug)]
pub enum Change {
    /// The object may have changed: read it. Also the first time, and the first time after it could not be read.
    Changed,
    /// It cannot be read now. This is reported again after each attempt.
    Unreachable(Error),
}

/// What has been noted and not been reported.
type Noted = Arc<Mutex<Option<Change>>>;

/// Watches global-vrouter-config while [`Watch::changed`] is awaited; it does nothing in between.
pub struct Watch {
    run: Pin<Box<dyn Future<Output = Infallible> + Send>>,
    noted: Noted,
    gather: Duration,
    /// When what is noted is to be reported.
    due: Option<Instant>,
}

impl Watch {
    /// Nothing is asked yet.
    #[must_use]
    pub fn new(api: Arc<ConfigApi>, timing: Timing) -> Self {
        let noted = Noted::default();
        let timing = Timing {
            poll: timing.poll.max(SHORTEST),
            retry: timing.retry.max(SHORTEST),
            silence: timing.silence.max(SHORTEST),
            resync: timing.resync.max(SHORTEST),
            pause: timing.pause.max(SHORTEST),
            gather: timing.gather,
        };
        let run = Run::new(api, timing, noted.clone()).run();
        Self { run: Box::pin(run), noted, gather: timing.gather, due: None }
    }

    /// The next change; several that have come meanwhile are one. A future that is dropped loses nothing: what it had
    /// started, the next one continues.
    pub async fn changed(&mut self) -> Change {
        loop {
            self.first().await;
            // Noted in the watch and not here, so that a caller with short deadlines gets it, too.
            let due = *self.due.get_or_insert_with(|| Instant::now() + self.gather);
            let _ = timeout_at(due, self.run.as_mut()).await;
            self.due = None;
            if let Some(change) = take(&self.noted) {
                return change;
            }
        }
    }

    /// Waits until something is noted.
    async fn first(&mut self) {
        poll_fn(|context| {
            if locked(&self.noted).is_some() {
                return Poll::Ready(());
            }
            if let Poll::Ready(never) = self.run.as_mut().poll(context) {
                match never {}
            }
            if locked(&self.noted).is_some() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

fn locked(noted: &Noted) -> MutexGuard<'_, Option<Change>> {
    noted.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(noted: &Noted) -> Option<Change> {
    locked(noted).take()
}

#[cfg(test)]
mod tests;
