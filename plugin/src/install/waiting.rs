//! Waiting for states of objects: says what for, ends at once where there is no hope, and at a deadline. What a state is
//! (`waits.rs`) is not known here.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::object::ObjectKey;
use super::waits::State;
use crate::exit::{Exit, Failure};
use crate::ui::Ui;

/// How long until objects are read again.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// So many objects are named that are waited for.
const SHOWN: usize = 5;

/// Until when is waited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
    timeout: Duration,
}

impl Deadline {
    /// From now on.
    pub(crate) fn after(timeout: Duration) -> Self {
        Self { at: Instant::now() + timeout, timeout }
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.at
    }

    /// Waits until each of the objects is ready.
    ///
    /// # Errors
    /// One of them will never be, the time is over, or the cluster does not answer.
    pub(crate) async fn wait_for(
        &self,
        what: &str,
        keys: Vec<ObjectKey>,
        ui: &mut Ui,
        state: impl AsyncFn(&ObjectKey) -> Result<State, Failure>,
    ) -> Result<(), Failure> {
        let total = keys.len();
        let (mut left, mut said) = (keys, String::new());
        loop {
            let mut waiting = Vec::new();
            for key in left {
                match state(&key).await {
                    Ok(State::Ready) => {}
                    Ok(State::Waiting(why)) => waiting.push((key, why)),
                    Ok(State::Hopeless(why)) => return Err(hopeless(&key, &why)),
                    // It answered before, and does again: an API server that is restarted ends no wait.
                    Err(failure) if is_hiccup(&failure) => {
                        let why = failure.causes.first().unwrap_or(&failure.message).clone();
                        waiting.push((key, why));
                    }
                    Err(failure) => return Err(failure),
                }
            }
            let Some((key, why)) = waiting.first() else { return Ok(()) };
            if self.is_over() {
                return Err(self.late(what, &waiting));
            }
            let text =
                format!("waiting for {what}: {} of {total}; {key}: {why}", total - waiting.len());
            if text != said {
                ui.progress(&text);
                said = text;
            }
            left = waiting.into_iter().map(|(key, _)| key).collect();
            sleep(POLL_INTERVAL).await;
        }
    }

    fn late(&self, what: &str, waiting: &[(ObjectKey, String)]) -> Failure {
        let message =
            format!("{what}: {} not ready after {} s", waiting.len(), self.timeout.as_secs());
        let hint = "it may still become ready; the same command continues to wait, longer with --timeout 30m";
        let mut failure = Failure::new(Exit::TimedOut, "timed-out", message, hint);
        failure.causes =
            waiting.iter().take(SHOWN).map(|(key, why)| format!("{key}: {why}")).collect();
        failure
    }
}

/// Whether the cluster may answer the same question in a moment.
fn is_hiccup(failure: &Failure) -> bool {
    failure.exit == Exit::Unreachable && !["unauthenticated", "forbidden"].contains(&failure.code)
}

fn hopeless(key: &ObjectKey, why: &str) -> Failure {
    let hint = if why.contains("not-ready") {
        "where the network of the pods is to be OpenSDN's own: install with --wait=false, apply your Manager, then install again"
    } else if why.contains("Unschedulable") {
        "add nodes, or fewer replicas: --profile single-node; then the same command again"
    } else if why.contains("image") {
        "is the registry right (--set registry=...), the tag, and imagePullSecrets? then the same command again"
    } else {
        "look at its pods: kubectl describe pods; then the same command again"
    };
    let mut failure =
        Failure::new(Exit::Findings, "not-ready", format!("{key} does not become ready"), hint);
    failure.causes = vec![why.to_owned()];
    failure
}
