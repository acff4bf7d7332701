//! Leader election by a Lease: which replica does what only one may do. What the leader does is in
//! the modules that ask.
//!
//! No clock is compared with another machine's (`leader/lease.rs`). Every write carries the
//! resourceVersion that was read, so of two that take an expired Lease one loses.

mod args;
pub mod lease;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::call::{Call, CallError, Verb};
use crate::error_chain;
use crate::readiness::Readiness;
use crate::shutdown::{Drain, Phase};
pub use args::{ElectionArgs, TimingError};
use lease::{Action, Observed};

/// How long a Lease holds without being renewed.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// A holder that could not renew for so long stops acting as one, before another may take over.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// How often the holder renews.
pub const RENEW_PERIOD: Duration = Duration::from_secs(5);
/// How often the others check whether the Lease is free.
pub const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// One call must end long before the deadline, so that it can be repeated.
const CALL_TIMEOUT: Duration = Duration::from_secs(4);
/// So often at most who does not lead says that it cannot read the Lease.
const FAILING_INTERVAL: Duration = Duration::from_secs(60);

/// Which Lease is competed for, and how.
#[derive(Clone, Debug)]
pub struct Election {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub lease: String,
    /// Name of this replica, different from the others'.
    pub identity: String,
    /// When it is renewed and lost.
    pub timing: Timing,
    /// What becomes of a replica that lost it.
    pub on_loss: OnLoss,
}

/// The durations of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the constants of the same names say it")]
pub struct Timing {
    pub lease_duration: Duration,
    pub renew_deadline: Duration,
    pub renew_period: Duration,
    pub retry_period: Duration,
}

/// What becomes of a replica that held the Lease and lost it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLoss {
    /// It works on without it and competes again: for a server whose replicas all serve.
    Continue,
    /// It never competes again, and [`Leadership::ended`] says so: for a controller, whose process
    /// ends, because no one can say which of its writes are still under way.
    End,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease_duration: LEASE_DURATION,
            renew_deadline: RENEW_DEADLINE,
            renew_period: RENEW_PERIOD,
            retry_period: RETRY_PERIOD,
        }
    }
}

impl Election {
    /// With the default durations; a replica that loses the Lease continues.
    pub fn new(
        namespace: impl Into<String>,
        lease: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            lease: lease.into(),
            identity: identity.into(),
            timing: Timing::default(),
            on_loss: OnLoss::Continue,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Follower,
    Leader,
    /// Lost, and not competed for again.
    Ended,
}

/// Whether this replica is the one that acts for all; cheap to clone.
#[derive(Clone, Debug)]
pub struct Leadership {
    state: watch::Receiver<State>,
    /// Whether the work is over that nobody else may do meanwhile.
    done: Arc<watch::Sender<bool>>,
    until: Until,
}

/// Until when the Lease holds without being renewed.
type Until = Arc<Mutex<Option<Instant>>>;

impl Leadership {
    /// As [`Self::start`], once `readiness` has said for the first time that nothing is missing: who cannot do
    /// the work yet would keep those who can from doing it.
    #[must_use]
    pub fn start_when_ready(
        client: Client,
        election: Election,
        readiness: Readiness,
        mut drain: Drain,
    ) -> Self {
        let (candidate, leadership) = Candidate::new(client, election);
        tokio::spawn(async move {
            let mut changes = readiness.changes();
            while !readiness.missing().is_empty() {
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    () = drain.reached(Phase::Draining) => return,
                }
            }
            candidate.run(drain).await;
        });
        leadership
    }

    /// Competes for the Lease until the process drains; then it is released, so that another replica
    /// need not wait for it to expire: at once, or with [`OnLoss::End`] when [`Self::finish`] says that the work
    /// is over.
    #[must_use]
    pub fn start(client: Client, election: Election, drain: Drain) -> Self {
        let (candidate, leadership) = Candidate::new(client, election);
        tokio::spawn(candidate.run(drain));
        leadership
    }

    /// Whether it is held now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        *self.state.borrow() == State::Leader
    }

    /// Whether it is held by the clock, which runs on while a process is stopped: one that continues may not have noticed yet that
    /// it has lost the Lease. To be asked right before each write that only who leads may make.
    #[must_use]
    pub fn may_write(&self) -> bool {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_held() && until.is_some_and(|until| Instant::now() < until)
    }

    /// Returns when it has been won or lost since the last call; never, once the process ends.
    pub async fn changed(&mut self) {
        if self.state.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The work is over that only who leads may do: another replica may start it.
    pub fn finish(&self) {
        self.done.send_replace(true);
    }

    /// Returns when the Lease is not competed for any more: it is released, or cannot be.
    pub async fn finished(&self) {
        let mut state = self.state.clone();
        while state.changed().await.is_ok() {}
    }

    /// Returns when the Lease was lost under [`OnLoss::End`]; else never.
    pub async fn ended(&self) {
        let mut state = self.state.clone();
        if state.wait_for(|state| *state == State::Ended).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

struct Candidate {
    api: Api<Lease>,
    election: Election,
    observed: Option<Observed>,
    /// Whom the log says to hold it.
    holder: Option<String>,
    /// When the log last said that it cannot be renewed, if it has not been since.
    failing: Option<Instant>,
    /// When the last renewal that succeeded was started.
    renewed: Option<Instant>,
    until: Until,
    sender: watch::Sender<State>,
    done: watch::Receiver<bool>,
}

impl Candidate {
    fn new(client: Client, election: Election) -> (Self, Leadership) {
        let (sender, state) = watch::channel(State::Follower);
        let (done, is_done) = watch::channel(false);
        let until = Until::default();
        let candidate = Self {
            api: Api::namespaced(client, &election.namespace),
            election,
            observed: None,
            holder: None,
            failing: None,
            renewed: None,
            until: until.clone(),
            sender,
            done: is_done,
        };
        (candidate, Leadership { state, done: Arc::new(done), until })
    }

    async fn run(mut self, mut drain: Drain) {
        self.compete(drain.reached(Phase::Draining)).await;
        if self.leads() && self.election.on_loss == OnLoss::End {
            let mut done = self.done.clone();
            // It is renewed until then: the writes of who leads next would cross with those under way. An error means that
            // no `Leadership` is left by which any work is done.
            self.compete(async move { drop(done.wait_for(|done| *done).await) }).await;
        }
        if *self.sender.borrow() != State::Ended {
            self.release().await;
        }
    }

    /// Until it is to stop, or the Lease was lost and is not competed for again.
    async fn compete(&mut self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        loop {
            let renewed = tokio::select! {
                () = &mut stop => return,
                renewed = self.try_acquire_or_renew() => renewed,
            };
            if *self.sender.borrow() == State::Ended {
                return;
            }
            let timing = self.election.timing;
            let pause = if renewed { timing.renew_period } else { timing.retry_period };
            let next = Instant::now() + pause;
            let next = self.deadline().map_or(next, |deadline| deadline.min(next));
            tokio::select! {
                () = &mut stop => return,
                () = sleep_until(next) => {}
            }
        }
    }

    /// When a leader that has not renewed the Lease stops acting as one; none while it does not lead.
    fn deadline(&self) -> Option<Instant> {
        let renewed = self.renewed.filter(|_| self.leads())?;
        Some(renewed + self.election.timing.renew_deadline)
    }

    /// Whether the Lease is held and was renewed. Gives up at the deadline, also while a call hangs:
    /// another replica may lead soon after.
    async fn try_acquire_or_renew(&mut self) -> bool {
        let Some(deadline) = self.deadline() else { return self.try_once().await };
        if let Ok(renewed) = timeout_at(deadline, self.try_once()).await {
            return renewed;
        }
        self.lose("it was not renewed in time");
        false
    }

    async fn try_once(&mut self) -> bool {
        let lease = self.election.lease.clone();
        match self.step().await {
            Ok(()) => {
                self.failing = None;
                return self.leads();
            }
            Err(error) if error.is_conflict() => {
                tracing::debug!(lease, "another replica wrote the Lease first");
            }
            Err(error) => {
                // Who does not lead loses nothing, and tries for as long as an outage lasts.
                if self.leads() || self.failing.is_none_or(|at| at.elapsed() >= FAILING_INTERVAL) {
                    self.failing = Some(Instant::now());
                    tracing::warn!(lease, error = error_chain(&error), "failed to renew the Lease");
                }
            }
        }
        false
    }

    /// Says once of each holder that this replica waits for it.
    fn wait_for(&mut self, holder: Option<&str>) {
        if self.holder.as_deref() == holder {
            return;
        }
        self.holder = holder.map(str::to_owned);
        let lease = &self.election.lease;
        tracing::info!(lease, holder, "waiting for the Lease, which another replica holds");
    }

    async fn step(&mut self) -> Result<(), CallError> {
        let started = Instant::now();
        let duration = self.election.timing.lease_duration;
        let found = self.call(Verb::Get).run(self.api.get_opt(&self.election.lease)).await?;
        let (action, observed) = lease::decide(
            found.as_ref(),
            self.observed.take(),
            &self.election.identity,
            duration,
            started,
        );
        self.observed = observed;
        let written = match action {
            Action::Wait => {
                if self.leads() {
                    self.lose("another replica holds it");
                }
                self.wait_for(found.as_ref().and_then(lease::holder));
                return Ok(());
            }
            Action::Create => {
                let Election { lease, identity, .. } = &self.election;
                let lease = lease::new_lease(lease, identity, duration);
                let params = PostParams::default();
                self.call(Verb::Create).run(self.api.create(&params, &lease)).await?
            }
            Action::Take(lease) | Action::Renew(lease) => self.replace(&lease).await?,
        };
        self.observed = Some(Observed::new(&written, started));
        self.holder = None;
        self.renewed = Some(started);
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(started + self.election.timing.renew_deadline);
        self.set(State::Leader);
        Ok(())
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, CallError> {
        let (name, params) = (&self.election.lease, PostParams::default());
        self.call(Verb::Update).run(self.api.replace(name, &params, lease)).await
    }

    fn call(&self, verb: Verb) -> Call {
        Call::of::<Lease>(verb).name(&self.election.lease).timeout(CALL_TIMEOUT)
    }

    fn lose(&mut self, why: &str) {
        tracing::warn!(lease = self.election.lease, why, "lost the Lease");
        self.set(match self.election.on_loss {
            OnLoss::Continue => State::Follower,
            OnLoss::End => State::Ended,
        });
    }

    /// Leaves the Lease without a holder, if it is ours.
    async fn release(&mut self) {
        let held = self.leads();
        self.set(State::Follower);
        if !held {
            return;
        }
        let result = async {
            let lease = self.call(Verb::Get).run(self.api.get_opt(&self.election.lease)).await?;
            let identity = &self.election.identity;
            if let Some(lease) = lease.and_then(|lease| lease::released(lease, identity)) {
                self.replace(&lease).await?;
            }
            Ok::<_, CallError>(())
        };
        // It then expires by itself.
        if let Err(error) = result.await {
            let lease = &self.election.lease;
            tracing::info!(lease, error = error_chain(&error), "failed to release the Lease");
        }
    }

    fn leads(&self) -> bool {
        *self.sender.borrow() == State::Leader
    }

    fn set(&self, state: State) {
        self.sender.send_if_modified(|before| {
            let changed = *before != state;
            *before = state;
            changed
        });
    }
}
