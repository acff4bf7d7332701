//! How the process stops without losing a call: the phases, who announces them, and what starts
//! them (SIGTERM, SIGINT). What each part does in a phase is that part's own business.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

/// Where the process is on its way out. The order is the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing has asked for a stop.
    Serving,
    /// Not ready any more, but still accepting: the API server keeps using its open connections
    /// until it has learned of the endpoint's removal, so answers only ask it to close them.
    Draining,
    /// No new connection is accepted; idle ones are closed, requests in flight are finished.
    Closing,
}

/// Announces phases to every holder of a [`Drain`].
#[derive(Debug)]
pub struct Shutdown {
    sender: watch::Sender<Phase>,
}

/// The listening side of a [`Shutdown`]; cheap to clone.
#[derive(Clone, Debug)]
pub struct Drain {
    receiver: watch::Receiver<Phase>,
}

/// A connected pair, in phase [`Phase::Serving`].
pub fn channel() -> (Shutdown, Drain) {
    let (sender, receiver) = watch::channel(Phase::Serving);
    (Shutdown { sender }, Drain { receiver })
}

impl Shutdown {
    /// Waits for `stop`, drains until it is `enough` (only then is that future polled), closes.
    pub async fn run(self, stop: impl Future<Output = ()>, enough: impl Future<Output = ()>) {
        stop.await;
        tracing::info!("stopping: draining connections");
        self.announce(Phase::Draining);
        enough.await;
        tracing::info!("stopping: finishing requests in flight");
        self.announce(Phase::Closing);
    }

    /// Enters `phase`; a phase is never left backwards.
    pub fn announce(&self, phase: Phase) {
        self.sender.send_if_modified(|current| {
            let later = phase > *current;
            if later {
                *current = phase;
            }
            later
        });
    }
}

impl Drain {
    /// The phase now.
    pub fn phase(&self) -> Phase {
        *self.receiver.borrow()
    }

    /// Returns when `phase` or a later one has been reached. A [`Shutdown`] that is gone announces
    /// nothing any more: that counts as [`Phase::Closing`].
    pub async fn reached(&mut self, phase: Phase) {
        // The error is the case described above.
        let _ = self.receiver.wait_for(|current| *current >= phase).await;
    }
}

/// SIGTERM and SIGINT, caught from the moment this is made.
#[derive(Debug)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    /// Installs the handlers. As PID 1 of a container a signal without handler is ignored.
    ///
    /// # Errors
    /// The system refuses.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next of the two.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Runs the shutdown: the first signal drains, `drain_time` later or at the second signal it
    /// closes. Returns when it has.
    pub async fn drive(mut self, shutdown: Shutdown, drain_time: Duration) {
        let (first, stop) = oneshot::channel();
        let (second, hurry) = oneshot::channel();
        tokio::spawn(async move {
            self.next().await;
            // Only a shutdown that is over already does not listen.
            let _ = first.send(());
            self.next().await;
            let _ = second.send(());
            // The handlers stay: a third signal must not end the process in mid-answer.
            loop {
                self.next().await;
            }
        });
        let stop = async {
            let _ = stop.await;
        };
        let enough = async {
            tokio::select! {
                () = sleep(drain_time) => {}
                _ = hurry => {}
            }
        };
        shutdown.run(stop, enough).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn drains_until_it_is_enough_and_then_closes() {
        let (shutdown, mut drain) = channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (last, enough) = tokio::sync::oneshot::channel::<()>();
        let received = |receiver: tokio::sync::oneshot::Receiver<()>| async {
            let _ = receiver.await;
        };
        let task = tokio::spawn(shutdown.run(received(stopped), received(enough)));
        assert_eq!(drain.phase(), Phase::Serving);
        stop.send(()).unwrap();
        drain.reached(Phase::Draining).await;
        assert_eq!(drain.phase(), Phase::Draining);
        last.send(()).unwrap();
        drain.reached(Phase::Closing).await;
        task.await.unwrap();
    }

    #[tokio::test]
    async fn a_shutdown_that_died_counts_as_closing() {
        let (shutdown, mut drain) = channel();
        drop(shutdown);
        drain.reached(Phase::Closing).await;
    }

    #[test]
    fn a_phase_is_never_left_backwards() {
        let (shutdown, drain) = channel();
        shutdown.announce(Phase::Closing);
        shutdown.announce(Phase::Draining);
        assert_eq!(drain.phase(), Phase::Closing);
    }
}
