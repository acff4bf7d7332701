//! Reconciles claims with the objects that are stored, on the leader only. Orphans are released,
//! objects that were there before get their claims, oldest first, and where two objects claim one
//! key it is reported on the one that was created later.
//!
//! Nothing is ever released because of a cache: the holder is read live, and the delete carries UID
//! and resourceVersion, so that a claim that was taken again meanwhile stays. Every request that
//! relies on a claim writes it, unless the stored object makes it already.
//!
//! Deliberately not here: taking claims for a request (`take.rs`).

mod conflicts;
mod session;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use kube::Client;
use opensdn_policy_host::{Mode, PolicySet};
use opensdn_runtime::discovery::{Discovery, Resolution, Resource};
use opensdn_runtime::leader::Leadership;

use super::Claims;
use super::report::Reporter;
use crate::evaluate::{Evaluator, Subjects};
use crate::metrics::BackgroundMetrics;
use session::Session;

/// Reconciles the claims.
pub struct ClaimController {
    client: Client,
    claims: Claims,
    evaluator: Evaluator,
    discovery: Discovery,
    reporter: Reporter,
    metrics: BackgroundMetrics,
}

/// What one session works by; when it changes, the next session starts.
struct Plan {
    set: Arc<PolicySet>,
    /// Names of the policies in force that claim.
    policies: HashSet<String>,
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
        Self { client, claims, evaluator, discovery, reporter, metrics }
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
        }
    }

    async fn lead(&self) {
        let mut policies = self.evaluator.changed();
        let mut served = self.discovery.changed();
        loop {
            // Before both are read, so that no change meanwhile is missed.
            policies.mark_unchanged();
            served.mark_unchanged();
            let plan = self.plan();
            let resources = plan.as_ref().map(|plan| plan.resources.clone());
            let work = async {
                match plan {
                    Some(plan) => Session::new(self, plan).run().await,
                    None => std::future::pending().await,
                }
            };
            let other_plan = async {
                loop {
                    tokio::select! {
                        _ = policies.changed() => return,
                        _ = served.changed() => {}
                    }
                    if self.plan().map(|plan| plan.resources) != resources {
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
    fn plan(&self) -> Option<Plan> {
        let set = self.evaluator.in_force()?;
        let snapshot = self.discovery.snapshot();
        snapshot.read_at?;
        let claiming = || {
            let claims = |binding: &&opensdn_policy_host::Binding| {
                binding.mode == Mode::Enforce && binding.policy.metadata().claims
            };
            set.bindings().filter(claims)
        };
        let policies = claiming().map(|binding| binding.name.clone()).collect();
        let subjects = Subjects::of(claiming(), &snapshot);
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
        Some(Plan { set, policies, resources })
    }
}
