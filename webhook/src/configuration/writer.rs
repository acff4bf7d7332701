//! Writes the webhook configurations, where this process leads: what they should say, when that may be
//! written, and what is reported where another client changed them.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::events::{self, EventType};
use opensdn_policy_host::Step;
use opensdn_runtime::apply::{Context, apply_as, replace_as};
use opensdn_runtime::call::CallError;
use opensdn_runtime::discovery::{Discovery, Snapshot};
use opensdn_runtime::error_chain;
use opensdn_runtime::events::Events;
use opensdn_runtime::leader::Leadership;
use opensdn_runtime::readiness::Readiness;
use opensdn_runtime::shutdown::{Drain, Phase};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::object::{self, Address, MANAGER, WebhookEndpoint};
use super::observed::{Cause, Configuration};
use super::reach::{Reachability, Serving};
use super::restraint::{AT_ONCE, Repair};
use super::rules::{self, Part, Plan};
use crate::certificates::Bundle;
use crate::metrics::ConfigurationMetrics;
use crate::path_tokens::PathToken;
use crate::policies::Demand;

const GROUP: &str = "admissionregistration.k8s.io";
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a write that failed is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// What the configurations depend on.
pub(crate) struct WriterDeps {
    pub(crate) client: Client,
    pub(crate) replica: String,
    pub(crate) address: Address,
    /// Callers show a certificate, which an API server that passes on a request does not have.
    pub(crate) has_client_auth: bool,
    pub(crate) namespace: String,
    pub(crate) user: Option<String>,
    /// Where reviews are answered.
    pub(crate) serving: Serving,
    pub(crate) discovery: Discovery,
    pub(crate) demand: watch::Receiver<Option<Arc<Demand>>>,
    pub(crate) bundle: Bundle,
    /// What is in the paths that API servers use.
    pub(crate) path_token: watch::Receiver<PathToken>,
    pub(crate) leadership: Leadership,
    pub(crate) drain: Drain,
    pub(crate) readiness: Readiness,
    pub(crate) metrics: ConfigurationMetrics,
}

/// Why a configuration was not written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("convert the configuration")]
    Json(#[from] serde_json::Error),
}

/// How a configuration was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// By an apply.
    Applied,
    /// As a whole, because there was something of others in it.
    Replaced,
}

pub(super) struct Writer {
    deps: WriterDeps,
    endpoint: WebhookEndpoint,
    own: Vec<String>,
    reachability: Reachability,
    /// One for the life of the process: it counts up what is repeated.
    events: Events,
    kinds: watch::Receiver<Arc<Snapshot>>,
    checks: watch::Receiver<()>,
    timer: Interval,
}

impl Writer {
    pub(super) fn new(mut deps: WriterDeps) -> Self {
        let WriterDeps { address, namespace, user, .. } = &deps;
        let endpoint = WebhookEndpoint {
            address: address.clone(),
            namespace: namespace.clone(),
            user: user.clone(),
            token: deps.path_token.borrow().clone(),
        };
        let serving = std::mem::replace(&mut deps.serving, Serving::Here);
        let has_client_auth = deps.has_client_auth;
        let reachability = Reachability::new(
            deps.client.clone(),
            endpoint.address.clone(),
            has_client_auth,
            serving,
        );
        let events = Events::new(deps.client.clone(), MANAGER, &deps.replica);
        let (kinds, checks) = (deps.discovery.changed(), deps.readiness.changes());
        let mut timer = interval(RETRY_DELAY);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { deps, endpoint, own: rules::own(), reachability, events, kinds, checks, timer }
    }

    /// Returns when something may have to be written, or written again.
    pub(super) async fn changed(&mut self) {
        tokio::select! {
            () = change(&mut self.deps.demand) => {}
            () = change(&mut self.kinds) => {}
            () = change(&mut self.checks) => {}
            () = change(&mut self.deps.bundle) => {}
            () = change(&mut self.deps.path_token) => {}
            () = self.deps.leadership.changed() => {}
            _ = self.timer.tick() => {}
        }
    }

    /// Makes both as they should be, if that is ours to do and everything needed is known.
    pub(super) async fn reconcile(&mut self, configurations: &mut [Configuration; 2]) {
        let bundle = self.deps.bundle.borrow().clone();
        let demand = self.deps.demand.borrow().clone();
        let (Some(bundle), Some(demand)) = (bundle, demand) else { return };
        if !self.deps.leadership.is_held() || self.deps.drain.phase() != Phase::Serving {
            configurations.iter_mut().for_each(Configuration::leave_to_others);
            return;
        }
        self.endpoint.token = self.deps.path_token.borrow_and_update().clone();
        let table = self.deps.discovery.snapshot();
        for configuration in configurations.iter_mut().filter(|one| one.is_known()) {
            let plan = self.plan(configuration, &demand, &table);
            let desired = object::desired(configuration.step, &plan, &self.endpoint, &bundle);
            let Some(cause) = configuration.cause(&desired) else {
                configuration.accept(desired);
                continue;
            };
            if self.may_write(configuration, cause).await {
                self.apply(configuration, desired, cause).await;
            }
        }
    }

    /// What the configuration has to cover. A rule must not go before its policy has: a replica of which
    /// we do not know may have it in force, or the kind may be unknown for a moment only.
    fn plan(&self, configuration: &Configuration, demand: &Demand, table: &Snapshot) -> Plan {
        let step = configuration.step;
        let mut plan = rules::plan(step, &demand.judged(), table, &self.own);
        if (!demand.complete || table.read_at.is_none())
            && let Some(known) = configuration.known()
        {
            retain_rules(&mut plan, step, known);
        }
        plan
    }

    /// Whether it may be written now. What only follows our own policies, and is known to have been right
    /// before, does not wait for an answer of the webhook.
    async fn may_write(&mut self, configuration: &Configuration, cause: Cause) -> bool {
        let is_repair = matches!(cause, Cause::Deleted | Cause::Tampered);
        if is_repair && configuration.restraint.check(Instant::now()) != Repair::Now {
            return false;
        }
        match cause {
            Cause::Change if configuration.has_accepted() => true,
            Cause::Absent if !self.deps.readiness.missing().is_empty() => false,
            Cause::Change | Cause::Absent | Cause::Deleted | Cause::Tampered => {
                self.reachability.may_write().await
            }
        }
    }

    async fn apply(&self, configuration: &mut Configuration, desired: Value, cause: Cause) {
        let kind = object::kind(configuration.step);
        match self.write(configuration.step, &desired).await {
            Ok((stored, written)) => {
                tracing::info!(kind, "webhook configuration updated");
                configuration.written(stored, desired);
                let is_replaced = written == Written::Replaced;
                let cause = if is_replaced { Cause::Tampered } else { cause };
                if matches!(cause, Cause::Deleted | Cause::Tampered) {
                    restrain(configuration, kind);
                    self.report(kind, cause).await;
                }
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

    /// Counts what others have done to it, and leaves an event at the configuration.
    async fn report(&self, kind: &'static str, cause: Cause) {
        match cause {
            Cause::Change | Cause::Absent => return,
            Cause::Deleted => self.deps.metrics.restored(kind).inc(),
            Cause::Tampered => {
                tracing::error!(
                    kind,
                    "lost what the webhook configuration said: another client changed it, and requests \
                     may have passed without a review; it is put right"
                );
                self.deps.metrics.tampered(kind).inc()
            }
        };
        let about = ObjectReference {
            api_version: Some(format!("{GROUP}/v1")),
            kind: Some(kind.to_owned()),
            name: Some(object::NAME.to_owned()),
            ..ObjectReference::default()
        };
        if let Err(error) = self.events.publish(event(cause), &about).await {
            tracing::warn!(error = error_chain(&error), "failed to publish an event");
        }
    }
}

/// Counts a repair, and says once when those that follow have to wait.
fn restrain(configuration: &mut Configuration, kind: &'static str) {
    if configuration.restraint.repaired(Instant::now()) == AT_ONCE {
        tracing::warn!(
            kind,
            "failed to keep the webhook configuration as it should be: another writer changes it again and \
             again; it is put right ever later from now on, up to once a minute"
        );
    }
}

fn event(cause: Cause) -> events::Event {
    let (reason, note) = match cause {
        Cause::Tampered => (
            "ConfigurationTampered",
            "another client changed it; restored. Meanwhile requests may not have been reviewed. \
             AdmissionPolicies say what is judged; the API server's audit log says who changed it",
        ),
        Cause::Change | Cause::Absent | Cause::Deleted => (
            "ConfigurationDeleted",
            "it was deleted and has been restored; meanwhile requests were not reviewed. To \
             uninstall, remove the webhook's Deployments first",
        ),
    };
    events::Event {
        type_: EventType::Warning,
        reason: reason.to_owned(),
        note: Some(note.to_owned()),
        action: "Restore".to_owned(),
        secondary: None,
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
