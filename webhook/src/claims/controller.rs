//! Reconciles claims with the objects that are stored, on the leader only. Orphans are released,
//! objects that were there before get their claims, oldest first, and where two objects claim one
//! key it is reported on the one that was created later.
//!
//! Nothing is ever released because of a cache: the holder is read live, and the delete carries UID
//! and resourceVersion, so that a claim that was taken again meanwhile stays. Every request that
//! relies on a claim writes it, unless the stored object makes it already. That this replica has not
//! loaded a policy is no reason to release its claims, and neither is that it runs a version of it
//! which makes others, until all replicas do.
//!
//! Deliberately not here: taking claims for a request (`take.rs`).

mod conflicts;
mod session;

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Client;
use opensdn_policy_host::stored::Subjects;
use opensdn_policy_host::{Mode, PolicySet};
use opensdn_runtime::discovery::{Discovery, Resolution, Resource};
use opensdn_runtime::leader::Leadership;
use tokio::sync::watch;

use super::Claims;
use super::policies::ClaimingPolicies;
use super::report::Reporter;
use crate::evaluate::Evaluator;
use crate::metrics::BackgroundMetrics;
use crate::policies::ClaimsProgress;
use session::Session;

/// Whether every live replica runs the policy of that name as its AdmissionPolicy is now.
pub type RolledOut = dyn Fn(&str) -> bool + Send + Sync;

/// Reconciles the claims.
pub struct ClaimController {
    client: Client,
    claims: Claims,
    evaluator: Evaluator,
    discovery: Discovery,
    reporter: Reporter,
    metrics: BackgroundMetrics,
    rolled_out: Arc<RolledOut>,
    progress: watch::Sender<ClaimsProgress>,
}

/// What one session works by; when it changes, the next session starts.
struct Plan {
    set: Arc<PolicySet>,
    /// The number of that set.
    number: u64,
    policies: ClaimingPolicies,
    /// The kinds that they are about, as far as those are served.
    resources: Vec<Resource>,
}

impl ClaimController {
    /// `replica` is the name of this one, for Events.
    #[must_use]
    pub fn new(
        client: Client,
        claims: Claims,
        evaluator: Evaluator,
        discovery: Discovery,
        replica: &str,
        metrics: BackgroundMetrics,
    ) -> Self {
        let reporter = Reporter::new(client.clone(), replica);
        let rolled_out = Arc::new(|_: &str| true);
        let progress = watch::Sender::new(ClaimsProgress::default());
        Self { client, claims, evaluator, discovery, reporter, metrics, rolled_out, progress }
    }

    /// Waits with the release of what a policy no longer claims until all replicas run it.
    #[must_use]
    pub fn waiting_for(mut self, rolled_out: Arc<RolledOut>) -> Self {
        self.rolled_out = rolled_out;
        self
    }

    /// Says of which active set all claims of what is stored have been made, and why none can be.
    #[must_use]
    pub fn reporting_to(mut self, progress: watch::Sender<ClaimsProgress>) -> Self {
        self.progress = progress;
        self
    }

    /// Works whenever this replica holds the Lease, until dropped.
    pub async fn run(self, mut leadership: Leadership) {
        loop {
            if !leadership.is_held() {
                leadership.changed().await;
                continue;
            }
            tracing::info!("started the claim controller");
            tokio::select! {
                () = self.lead() => {}
                () = leadership.changed() => {}
            }
            // Others have led meanwhile when this one does again: what it has found then is old.
            self.progress.send_replace(ClaimsProgress::default());
        }
    }

    async fn lead(&self) {
        let mut policies = self.evaluator.changed();
        let mut served = self.discovery.changed();
        loop {
            // Before both are read, so that no change meanwhile is missed.
            policies.mark_unchanged();
            served.mark_unchanged();
            let plan = self.plan(*policies.borrow());
            let resources = plan.as_ref().map(|plan| plan.resources.clone());
            let work = async {
                match plan {
                    Some(plan) => Session::new(self, &plan).run().await,
                    None => std::future::pending().await,
                }
            };
            let other_plan = async {
                loop {
                    tokio::select! {
                        _ = policies.changed() => return,
                        _ = served.changed() => {}
                    }
                    if self.plan(0).map(|plan| plan.resources) != resources {
                        return;
                    }
                }
            };
            tokio::select! {
                () = work => {}
                () = other_plan => {}
            }
        }
    }

    /// `None` until both the policies in force and the served kinds are known.
    fn plan(&self, number: u64) -> Option<Plan> {
        let active = self.evaluator.active_set()?;
        let set = Arc::clone(&active.set);
        let snapshot = self.discovery.snapshot();
        snapshot.read_at?;
        let claiming = || {
            let claims = |binding: &&opensdn_policy_host::Binding| {
                binding.mode == Mode::Enforce && binding.policy.metadata().claims
            };
            set.bindings().filter(claims)
        };
        let policies = ClaimingPolicies::new(&set, &active.enforcing);
        let subjects = Subjects::of(claiming(), &|group| snapshot.kinds_of(group));
        for (policy, why) in &subjects.not_listed {
            tracing::warn!(
                policy,
                why,
                "failed to list the objects of a policy; their claims are not reconciled"
            );
        }
        let kinds: BTreeSet<(String, String)> = subjects.kinds;
        let served = |(group, kind): (String, String)| match snapshot.find(&group, &kind) {
            Resolution::Served(resource) => Some(resource),
            // When that changes, there is another plan.
            Resolution::Absent | Resolution::Unknown(_) => None,
        };
        let resources = kinds.into_iter().filter_map(served).collect();
        Some(Plan { set, number, policies, resources })
    }
}
