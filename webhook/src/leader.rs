//! Leases: which replica does what only one may do ([`Leadership`]), and which replicas are alive
//! ([`Replicas`]). What the leader does is in the modules that ask.
//!
//! No clock is compared with another machine's: a Lease has expired when it has not *changed* for
//! its duration by our own clock. Every write carries the resourceVersion that was read, so of two
//! that take an expired Lease one loses.

mod record;
mod replicas;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::chain;
use crate::shutdown::{Drain, Phase};
use record::{Action, Observed};

pub use replicas::Replicas;

/// How long a Lease holds without being renewed.
pub const DURATION: Duration = Duration::from_secs(15);
/// How often it is renewed.
pub const RENEWAL: Duration = Duration::from_secs(5);
/// How often those that do not hold it look whether it is free.
const LOOK: Duration = Duration::from_secs(2);
/// A holder that could not renew for so long stops acting as one, before another may begin.
const GIVE_UP: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(4);

/// Whether this replica is the one that acts for all; cheap to clone.
#[derive(Clone, Debug)]
pub struct Leadership {
    held: watch::Receiver<bool>,
}

impl Leadership {
    /// Begins to compete for the Lease `name`, until the process drains; then it is released, so
    /// that another replica need not wait for it to expire.
    #[must_use]
    pub fn start(client: Client, namespace: &str, name: &str, replica: &str, drain: Drain) -> Self {
        let (sender, held) = watch::channel(false);
        let contest = Contest {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            replica: replica.to_owned(),
            observed: None,
            renewed: None,
            sender,
        };
        tokio::spawn(contest.run(drain));
        Self { held }
    }

    /// Whether it is held now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        *self.held.borrow()
    }

    /// Returns when it has been won or lost since the last call; never, once the process ends.
    pub async fn changed(&mut self) {
        if self.held.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Why a step of the contest failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("read or write the Lease; `get`, `create` and `update` on leases have to be granted")]
    Call(#[source] kube::Error),
    #[error("the API server does not answer")]
    Silent,
}

struct Contest {
    api: Api<Lease>,
    name: String,
    replica: String,
    observed: Option<Observed>,
    /// When the last renewal that succeeded was begun.
    renewed: Option<Instant>,
    sender: watch::Sender<bool>,
}

impl Contest {
    async fn run(mut self, mut drain: Drain) {
        loop {
            tokio::select! {
                () = drain.reached(Phase::Draining) => break,
                () = self.round() => {}
            }
            let pause = if self.holds() { RENEWAL } else { LOOK };
            tokio::select! {
                () = drain.reached(Phase::Draining) => break,
                () = sleep(pause) => {}
            }
        }
        self.release().await;
    }

    async fn round(&mut self) {
        match self.step().await {
            Ok(()) => {}
            Err(Failure::Call(kube::Error::Api(status))) if status.code == 409 => {
                tracing::debug!("another replica wrote the Lease first");
            }
            Err(failure) => {
                tracing::warn!(lease = self.name, error = chain(&failure), "Lease not renewed");
            }
        }
        let overdue = self.renewed.is_none_or(|renewed| renewed.elapsed() >= GIVE_UP);
        if self.holds() && overdue {
            tracing::warn!(lease = self.name, "the Lease could not be renewed in time");
            self.set(false);
        }
    }

    async fn step(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        let lease = bounded(self.api.get_opt(&self.name)).await?;
        let (action, observed) =
            record::decide(lease.as_ref(), self.observed.take(), &self.replica, begun);
        self.observed = observed;
        let written = match action {
            Action::Wait => {
                self.set(false);
                return Ok(());
            }
            Action::Create => {
                let lease = record::fresh(&self.name, &self.replica, DURATION);
                bounded(self.api.create(&PostParams::default(), &lease)).await?
            }
            Action::Take(lease) | Action::Renew(lease) => {
                bounded(self.api.replace(&self.name, &PostParams::default(), &lease)).await?
            }
        };
        self.observed = Some(Observed::new(&written, begun));
        self.renewed = Some(begun);
        self.set(true);
        Ok(())
    }

    /// Leaves the Lease without a holder, if it is ours.
    async fn release(&mut self) {
        let held = self.holds();
        self.set(false);
        if !held {
            return;
        }
        let result = async {
            let lease = bounded(self.api.get_opt(&self.name)).await?;
            if let Some(lease) = lease.and_then(|lease| record::released(lease, &self.replica)) {
                bounded(self.api.replace(&self.name, &PostParams::default(), &lease)).await?;
            }
            Ok::<_, Failure>(())
        };
        // It then expires by itself.
        if let Err(failure) = result.await {
            tracing::info!(lease = self.name, error = chain(&failure), "Lease not released");
        }
    }

    fn holds(&self) -> bool {
        *self.sender.borrow()
    }

    fn set(&self, held: bool) {
        self.sender.send_if_modified(|before| {
            let changed = *before != held;
            *before = held;
            changed
        });
    }
}

async fn bounded<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    timeout(PATIENCE, call).await.map_err(|_| Failure::Silent)?.map_err(Failure::Call)
}
