//! Writes the status of AdmissionPolicies: this replica's entry always, the sum where it leads.
//! What is written is decided in `status.rs`, what was written already known in `reporter/sent.rs`.

mod sent;
mod transition;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use kube::runtime::events::Event;
use kube::{Client, CustomResourceExt as _, ResourceExt as _};
use opensdn_crds::admission_policy::{AdmissionPolicy, ReplicaStatus};
use opensdn_deploy::names::webhook::NAME;
use opensdn_runtime::apply::{Context, apply_status_as, patch_status};
use opensdn_runtime::call::CallError;
use opensdn_runtime::error_chain;
use opensdn_runtime::events::Events;
use opensdn_runtime::leader::Leadership;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::watch;
use tokio::time::{Instant, interval};

use super::status::{self, LeaderView, ModuleFacts};
use super::uniqueness::{ClaimsProgress, Uniqueness};
use crate::replicas::Replicas;
use sent::{Outcome, Sent, Watched};
use transition::Told;

/// One policy: as the API server has it, and what this replica makes of it.
#[derive(Clone, Debug)]
pub(crate) struct Reported {
    pub(crate) object: AdmissionPolicy,
    pub(crate) replica: ReplicaStatus,
    /// Digest of the module that this replica runs, and what it says of itself.
    pub(crate) module: Option<(String, ModuleFacts)>,
    /// Whether that module enforces that something is unique.
    pub(crate) claims: bool,
}

/// All policies by name.
pub(crate) type Snapshot = Arc<BTreeMap<String, Reported>>;

/// What the reporter needs.
pub(crate) struct Reporter {
    pub(crate) client: Client,
    pub(crate) events: Events,
    pub(crate) replica: String,
    pub(crate) leadership: Leadership,
    pub(crate) replicas: Replicas,
    pub(crate) snapshots: watch::Receiver<Snapshot>,
    /// How far the claims of what is stored are.
    pub(crate) claims: watch::Receiver<ClaimsProgress>,
    /// The number of the set that is active now.
    pub(crate) active: watch::Receiver<u64>,
    /// Why the AdmissionPolicies cannot be read; none while they can.
    pub(crate) outdated: watch::Receiver<Option<String>>,
}

const CALL_TIMEOUT: Duration = Duration::from_secs(5);
impl Reporter {
    /// Writes until the snapshots end.
    pub(crate) async fn run(mut self) {
        let (mut sent, mut told) = (Sent::default(), Told::default());
        let mut again = interval(Duration::from_secs(2));
        loop {
            tokio::select! {
                biased;
                // First, so that nothing is said by what an earlier time as the leader has left.
                () = self.leadership.changed() => told.lead_ended(),
                alive = self.snapshots.changed() => if alive.is_err() { return },
                () = self.replicas.changed() => {}
                claims = self.claims.changed() => if claims.is_err() { return },
                alive = self.outdated.changed() => if alive.is_err() { return },
                _ = again.tick() => {}
            }
            let snapshot = Arc::clone(&self.snapshots.borrow_and_update());
            let is_lost = self.outdated.borrow_and_update().is_some();
            let watched = if is_lost { Watched::Lost } else { Watched::Yes };
            sent.forget(|name| snapshot.contains_key(name), watched, Instant::now());
            told.forget(|name| snapshot.contains_key(name));
            for (name, reported) in snapshot.iter() {
                self.own(name, reported, &mut sent).await;
                if self.leadership.is_held() {
                    self.sum(name, reported, &mut sent, &mut told).await;
                }
            }
        }
    }

    async fn own(&self, name: &str, reported: &Reported, sent: &mut Sent) {
        let before = status::entry(&reported.object, &self.replica);
        if before.is_some_and(|before| status::says_the_same(before, &reported.replica)) {
            return;
        }
        let value = json!(reported.replica);
        if !sent.is_new(name, "own", &value) {
            return;
        }
        let entry = ReplicaStatus { updated_at: Some(now()), ..reported.replica.clone() };
        let manager = format!("{NAME}/{}", self.replica);
        let outcome = self.apply(name, &manager, &json!({"replicas": [entry]})).await;
        sent.note(name, "own", value, outcome);
    }

    async fn sum(&self, name: &str, reported: &Reported, sent: &mut Sent, told: &mut Told) {
        let alive = self.replicas.alive();
        // Until the live replicas are known nothing can be reported for all.
        if alive.is_empty() {
            return;
        }
        let facts = |digest: &str| {
            let own = reported.module.as_ref().filter(|(own, _)| own == digest);
            own.map(|(_, facts)| facts.clone())
        };
        let outdated = self.outdated.borrow().clone();
        let uniqueness = self.uniqueness(name, reported, &alive);
        let view =
            LeaderView { alive: &alive, uniqueness: &uniqueness, outdated: outdated.as_deref() };
        if let Some(status) = status::aggregate(&reported.object, &view, facts, &now()) {
            let value = untimed(&status);
            if sent.is_new(name, "sum", &value) {
                let outcome = self.apply(name, NAME, &status).await;
                if outcome == Outcome::Stored
                    && let Some(event) = told.event(&reported.object, &status)
                {
                    self.publish(&reported.object, event).await;
                }
                sent.note(name, "sum", value, outcome);
            }
        }
        if let Some(patch) = status::prune(&reported.object, &alive)
            && sent.is_new(name, "prune", &patch)
            && let Ok(operations) = serde_json::from_value(patch.clone())
        {
            let outcome = self.prune(&reported.object, operations).await;
            sent.note(name, "prune", patch, outcome);
        }
    }

    /// Whether what is stored has been claimed by the policy as it is now.
    fn uniqueness(&self, name: &str, reported: &Reported, alive: &BTreeSet<String>) -> Uniqueness {
        let active = reported.replica.ready.then(|| *self.active.borrow());
        match reported.claims {
            false if reported.module.is_none() => {
                let reason = reported.replica.reason.as_deref().unwrap_or_default();
                if status::is_progress(reason) { Uniqueness::NotKnown } else { Uniqueness::NotRun }
            }
            false => Uniqueness::NotClaimed,
            true => {
                let is_rolled_out = status::is_rolled_out(&reported.object, alive);
                Uniqueness::of_claiming(&self.claims.borrow(), name, active, is_rolled_out)
            }
        }
    }

    async fn apply(&self, name: &str, manager: &str, status: &Value) -> Outcome {
        let kind = AdmissionPolicy::api_resource();
        let object = DynamicObject::new(name, &kind).data(json!({"status": status}));
        let ctx = Context::new(self.client.clone(), manager).timeout(CALL_TIMEOUT);
        outcome(name, apply_status_as(&ctx, &kind, &object).await)
    }

    async fn publish(&self, object: &AdmissionPolicy, event: Event) {
        // The condition says the same.
        if let Err(error) = self.events.publish(event, &transition::about(object)).await {
            let (policy, error) = (object.name_any(), error_chain(&error));
            tracing::warn!(policy, error, "failed to publish an Event");
        }
    }

    async fn prune(&self, object: &AdmissionPolicy, patch: json_patch::Patch) -> Outcome {
        let ctx = Context::new(self.client.clone(), NAME).timeout(CALL_TIMEOUT);
        outcome(&object.name_any(), patch_status(&ctx, object, patch).await)
    }
}

/// What became of the write; a failure is logged.
fn outcome(policy: &str, result: Result<(), CallError>) -> Outcome {
    let Err(error) = result else { return Outcome::Stored };
    let code = error.status().map(|status| status.code);
    let error = error_chain(&error);
    // Deleted or changed meanwhile: the watch reports it, and the status is computed again.
    if code.is_some_and(|code| [404, 409, 422].contains(&code)) {
        tracing::debug!(policy, error, "failed to write status");
    } else {
        tracing::warn!(policy, error, "failed to write status");
    }
    Outcome::Failed
}

/// The status without the times in it.
fn untimed(status: &Value) -> Value {
    let mut status = status.clone();
    for condition in
        status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten()
    {
        if let Some(condition) = condition.as_object_mut() {
            condition.remove("lastTransitionTime");
        }
    }
    status
}

fn now() -> String {
    // Formatting a date of this age cannot fail.
    OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default()
}
