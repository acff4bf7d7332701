//! The two webhook configurations, `opensdn-webhook`: written by the replica that leads, in one
//! apply each, whenever the policies, the served kinds or the CA bundle change, and restored when
//! they are changed or deleted. Their entries are ours alone: what others add there, a condition that
//! is never true for one, is removed by an update, since an apply leaves it. What they should say is
//! in `configuration/rules.rs`.
//!
//! The API server calls no webhook about webhook configurations, so no user can be kept from
//! deleting or changing ours; it is noticed (metric, event, log) and undone within a second. To uninstall,
//! remove the webhook first and the configurations then; a webhook that drains restores nothing.
//!
//! Where there is none, and where somebody has changed one, it is written only if an API server says
//! that it reaches the webhook (`configuration/reach.rs`): no request waits for a webhook that cannot
//! answer, and who has switched a broken one off has it off until it is repaired.

pub mod args;
pub(crate) mod bundle;
mod object;
mod reach;
mod rules;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::events::{self, EventType};
use opensdn_pki::Published;
use opensdn_policy_host::Step;
use opensdn_runtime::apply::{Context, apply_as, replace_as};
use opensdn_runtime::call::CallError;
use opensdn_runtime::discovery::Discovery;
use opensdn_runtime::error_chain;
use opensdn_runtime::events::Events;
use opensdn_runtime::leader::Leadership;
use opensdn_runtime::readiness::Readiness;
use opensdn_runtime::shutdown::{Drain, Phase};
use opensdn_runtime::watch::{Event, SingleObject, WatchSpec, watch};
use serde_json::Value;
use time::OffsetDateTime;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::certificates::Bundle;
use crate::metrics::ConfigurationMetrics;
use crate::path_tokens::PathToken;
use crate::policies::Demand;
use object::{STEPS, WebhookEndpoint};
use reach::Reach;
use rules::{Part, Plan};

pub use object::Address;

/// What the configurations depend on.
pub(crate) struct Deps {
    pub(crate) client: Client,
    pub(crate) replica: String,
    pub(crate) address: Address,
    /// Callers show a certificate, which an API server that passes on a request does not have.
    pub(crate) has_client_auth: bool,
    pub(crate) namespace: String,
    pub(crate) user: Option<String>,
    pub(crate) discovery: Discovery,
    pub(crate) demand: watch::Receiver<Option<Arc<Demand>>>,
    pub(crate) bundle: Bundle,
    /// Where to say which bundle all configurations carry, and since when.
    pub(crate) published: watch::Sender<Option<Published>>,
    /// What is in the paths that API servers are told.
    pub(crate) path_token: watch::Receiver<PathToken>,
    /// Where to say which one all configurations carry.
    pub(crate) published_path: watch::Sender<Option<PathToken>>,
    pub(crate) leadership: Leadership,
    pub(crate) drain: Drain,
    pub(crate) readiness: Readiness,
    pub(crate) metrics: ConfigurationMetrics,
}

/// Starts to reconcile the configurations. Every replica watches them.
pub(crate) fn start(deps: Deps) {
    let own = rules::own();
    let Deps { address, namespace, user, .. } = &deps;
    let endpoint = WebhookEndpoint {
        address: address.clone(),
        namespace: namespace.clone(),
        user: user.clone(),
        token: deps.path_token.borrow().clone(),
    };
    let observed = STEPS.map(|_| Observed::Unknown);
    let accepted = [None, None];
    let reach = None;
    let watched = <[SingleObject; 2]>::default();
    let controller =
        ConfigurationController { deps, endpoint, own, observed, watched, accepted, reach };
    tokio::spawn(controller.run());
}

/// Why a configuration was not written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("convert the configuration")]
    Json(#[from] serde_json::Error),
}

/// A configuration as the API server has it.
#[derive(Debug)]
enum Observed {
    /// It has not been read yet.
    Unknown,
    /// There is none and, as far as this process knows, never was.
    Absent,
    /// There is none any more.
    Deleted,
    /// This one.
    Present(Value),
}

/// How a configuration was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// By an apply.
    Applied,
    /// As a whole, because there was something of others in it.
    Replaced,
}

struct ConfigurationController {
    deps: Deps,
    endpoint: WebhookEndpoint,
    own: Vec<String>,
    /// In the order of [`STEPS`].
    observed: [Observed; 2],
    /// Their watches.
    watched: [SingleObject; 2],
    /// What they should have said when they last said so, while this replica leads.
    accepted: [Option<Value>; 2],
    /// Whether API servers reach us, and when one was asked.
    reach: Option<(Instant, Reach)>,
}

impl Observed {
    /// There is none, says the watch.
    fn remove(&mut self, step: Step) {
        match self {
            Self::Unknown => *self = Self::Absent,
            Self::Absent | Self::Deleted => {}
            Self::Present(_) => {
                tracing::error!(
                    kind = object::kind(step),
                    "lost the webhook configuration: it was deleted, and requests pass without a \
                     review until it is restored"
                );
                *self = Self::Deleted;
            }
        }
    }

    fn object(&self) -> Option<&Value> {
        match self {
            Self::Present(object) => Some(object),
            Self::Unknown | Self::Absent | Self::Deleted => None,
        }
    }

    fn is_newer_than(&self, object: &Value) -> bool {
        let version = |object: &Value| -> Option<u64> {
            object.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()
        };
        self.object().is_some_and(|observed| version(object) < version(observed))
    }
}

/// Why a configuration is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// What it should say is another.
    Change,
    /// There never was one, as far as this process knows.
    Absent,
    /// It was deleted.
    Deleted,
    /// Somebody changed it.
    Tampered,
}

const GROUP: &str = "admissionregistration.k8s.io";
/// Field manager of the configurations.
const MANAGER: &str = "opensdn-webhook";
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a write that failed is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(2);

impl ConfigurationController {
    async fn run(mut self) {
        let [mut mutating, mut validating] = STEPS.map(|step| self.watch(step));
        let mut kinds = self.deps.discovery.changed();
        let mut readiness = self.deps.readiness.changes();
        let mut timer = interval(RETRY_DELAY);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.deps.drain.reached(Phase::Draining) => return,
                change = mutating.recv() => self.observe(0, change),
                change = validating.recv() => self.observe(1, change),
                () = change(&mut self.deps.demand) => {}
                () = change(&mut kinds) => {}
                () = change(&mut readiness) => {}
                () = change(&mut self.deps.bundle) => {}
                () = change(&mut self.deps.path_token) => {}
                () = self.deps.leadership.changed() => {}
                _ = timer.tick() => {}
            }
            self.publish();
            self.reconcile().await;
            self.publish();
        }
    }

    fn watch(&self, step: Step) -> mpsc::Receiver<Event> {
        let target = WatchSpec {
            path: format!("/apis/admissionregistration.k8s.io/v1/{}", object::plural(step)),
            name: Some(object::NAME.to_owned()),
            metadata_only: false,
            heartbeat: Duration::from_secs(10),
        };
        watch(self.deps.client.clone(), target)
    }

    fn observe(&mut self, number: usize, change: Option<Event>) {
        let (observed, watched) = (self.observed.get_mut(number), self.watched.get_mut(number));
        let (Some(observed), Some(watched), Some(step)) = (observed, watched, STEPS.get(number))
        else {
            return;
        };
        let is_known =
            matches!(&change, Some(Event::Apply(object)) if observed.is_newer_than(object));
        match change.and_then(|change| watched.read(change)) {
            // What this replica has written since is newer than what the watch still has to tell.
            Some(Some(_)) if is_known => {}
            Some(Some(object)) => *observed = Observed::Present(object),
            Some(None) => observed.remove(*step),
            None => {}
        }
        let present = matches!(observed, Observed::Present(_));
        self.deps.metrics.present(object::kind(*step)).set(i64::from(present));
    }

    /// Says which bundle and which path all configurations carry.
    fn publish(&self) {
        let objects: Vec<&Value> = self.observed.iter().filter_map(Observed::object).collect();
        let token = object::path_token(&objects);
        self.deps.published_path.send_if_modified(|before| {
            let changed = *before != token;
            *before = token;
            changed
        });
        let bundle = object::bundle(&objects);
        self.deps.published.send_if_modified(|before| {
            if before.as_ref().map(|before| &before.bundle) == bundle.as_ref() {
                return false;
            }
            let since = OffsetDateTime::now_utc();
            *before = bundle.map(|bundle| Published { bundle, since });
            true
        });
    }

    /// Makes both as they should be, if that is ours to do and everything needed is known.
    async fn reconcile(&mut self) {
        let bundle = self.deps.bundle.borrow().clone();
        let demand = self.deps.demand.borrow().clone();
        let (Some(bundle), Some(demand)) = (bundle, demand) else { return };
        if !self.deps.leadership.is_held() || self.deps.drain.phase() != Phase::Serving {
            // Meanwhile another replica decides what they say.
            self.accepted = [None, None];
            return;
        }
        self.endpoint.token = self.deps.path_token.borrow_and_update().clone();
        let table = self.deps.discovery.snapshot();
        for (number, step) in STEPS.into_iter().enumerate() {
            let Some(observed) = self.observed.get(number) else { continue };
            match observed {
                Observed::Unknown => continue,
                Observed::Absent if !self.deps.readiness.missing().is_empty() => continue,
                Observed::Absent | Observed::Deleted | Observed::Present(_) => {}
            }
            let mut plan = rules::plan(step, &demand.bindings, &table, &self.own);
            // A rule must not go before its policy has: a replica of which we do not know may
            // have it in force, or the kind may be unknown for a moment only.
            if !demand.complete || table.read_at.is_none() {
                let accepted = self.accepted.get(number).and_then(Option::as_ref);
                if let Some(known) = accepted.or(observed.object()) {
                    retain_rules(&mut plan, step, known);
                }
            }
            let desired = object::desired(step, &plan, &self.endpoint, &bundle);
            let cause = self.cause(number, observed);
            let is_right = observed.object().is_some_and(|object| object::is_as(object, &desired));
            if is_right {
                self.accept(number, desired);
            } else if (cause == Cause::Change && self.has_accepted(number))
                || self.is_reached().await
            {
                self.apply(number, step, desired, cause).await;
            }
        }
    }

    /// Whether an API server reaches the webhook, as far as can be known.
    async fn is_reached(&mut self) -> bool {
        if let Some((asked, reach)) = &self.reach
            && asked.elapsed() < RETRY_DELAY
        {
            return reach.may_write();
        }
        let reach = match self.deps.has_client_auth {
            true => Reach::Unknown,
            false => reach::ask(&self.deps.client, &self.endpoint.address).await,
        };
        let before = self.reach.as_ref().is_none_or(|(_, reach)| reach.may_write());
        if let Reach::NotReached(error) = &reach
            && before
        {
            tracing::warn!(
                error,
                "failed to reach the webhook through its Service: its configurations are not \
                 written, and nothing is reviewed, until the API server gets an answer"
            );
        }
        let may_write = reach.may_write();
        self.reach = Some((Instant::now(), reach));
        may_write
    }

    /// Why it is not as it should be. Whoever changes our policies does not change what was accepted;
    /// whoever changes the configuration does.
    fn cause(&self, number: usize, observed: &Observed) -> Cause {
        match (observed, self.accepted.get(number)) {
            (Observed::Deleted, _) => Cause::Deleted,
            (Observed::Absent, _) => Cause::Absent,
            (Observed::Present(object), Some(Some(accepted)))
                if !object::is_as(object, accepted) =>
            {
                Cause::Tampered
            }
            _ => Cause::Change,
        }
    }

    /// Whether this replica knows what it said. One that leads only since a moment does not know whether it
    /// was changed by the one before it or by somebody else.
    fn has_accepted(&self, number: usize) -> bool {
        self.accepted.get(number).is_some_and(Option::is_some)
    }

    fn accept(&mut self, number: usize, desired: Value) {
        if let Some(accepted) = self.accepted.get_mut(number) {
            *accepted = Some(desired);
        }
    }

    async fn apply(&mut self, number: usize, step: Step, desired: Value, cause: Cause) {
        let kind = object::kind(step);
        match self.write(step, &desired).await {
            Ok((object, written)) => {
                tracing::info!(kind, "webhook configuration updated");
                let cause = if written == Written::Replaced { Cause::Tampered } else { cause };
                if let Some(observed) = self.observed.get_mut(number) {
                    *observed = Observed::Present(object);
                    self.deps.metrics.present(kind).set(1);
                }
                self.accept(number, desired);
                match cause {
                    Cause::Change | Cause::Absent => return,
                    Cause::Deleted => self.deps.metrics.restored(kind).inc(),
                    Cause::Tampered => {
                        tracing::error!(
                            kind,
                            "lost what the webhook configuration said: somebody changed it, and \
                             requests may have passed without a review; it is put right"
                        );
                        self.deps.metrics.tampered(kind).inc()
                    }
                };
                self.publish_restored(kind, cause).await;
            }
            Err(error) => {
                let error = self.endpoint.token.masked_in(&error_chain(&error));
                tracing::error!(kind, error, "failed to write the webhook configuration");
            }
        }
    }

    async fn write(&self, step: Step, desired: &Value) -> Result<(Value, Written), Error> {
        let gvk = GroupVersionKind::gvk(GROUP, "v1", object::kind(step));
        let resource = ApiResource::from_gvk_with_plural(&gvk, object::plural(step));
        let object: DynamicObject = serde_json::from_value(desired.clone())?;
        let ctx = Context::new(self.deps.client.clone(), MANAGER).timeout(CALL_TIMEOUT);
        let stored = serde_json::to_value(apply_as(&ctx, &resource, &object).await?)?;
        if object::is_as(&stored, desired) {
            return Ok((stored, Written::Applied));
        }
        let object: DynamicObject = serde_json::from_value(object::put_right(&stored, desired))?;
        let replaced = serde_json::to_value(replace_as(&ctx, &resource, &object).await?)?;
        Ok((replaced, Written::Replaced))
    }

    /// Leaves an event at the configuration.
    async fn publish_restored(&self, kind: &str, cause: Cause) {
        let (reason, note) = match cause {
            Cause::Tampered => (
                "ConfigurationTampered",
                "it was changed by somebody else than the webhook and has been put right; \
                 meanwhile requests may not have been reviewed. What is judged, AdmissionPolicies \
                 say; the audit log says who changed it",
            ),
            Cause::Change | Cause::Absent | Cause::Deleted => (
                "ConfigurationDeleted",
                "it was deleted and has been restored; meanwhile requests were not reviewed. To \
                 uninstall, remove the webhook's Deployment first",
            ),
        };
        let event = events::Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(note.to_owned()),
            action: "Restore".to_owned(),
            secondary: None,
        };
        let about = ObjectReference {
            api_version: Some(format!("{GROUP}/v1")),
            kind: Some(kind.to_owned()),
            name: Some(object::NAME.to_owned()),
            ..ObjectReference::default()
        };
        let events = Events::new(self.deps.client.clone(), MANAGER, &self.deps.replica);
        if let Err(error) = events.publish(&event, &about).await {
            tracing::warn!(error = error_chain(&error), "failed to publish an event");
        }
    }
}

/// Returns when there is another value; never, where the sender is gone.
async fn change<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Adds to the plan what the configuration covers.
fn retain_rules(plan: &mut Plan, step: Step, object: &Value) {
    for (name, entry) in object::entries(object) {
        if let (Some(part), Some(rules)) = (Part::of(name, step), entry.get("rules")) {
            plan.entry(part).or_default().add_rules(rules);
        }
    }
}
