//! The two webhook configurations, `opensdn-webhook`: written by the replica that leads, in one
//! apply each, whenever the policies, the served kinds or the CA bundle change, and restored when
//! somebody changes or deletes them. What they should say is in `configuration/rules.rs`.
//!
//! The API server calls no webhook about webhook configurations, so nobody can be kept from
//! deleting ours; it is noticed (metric, event, log) and undone within a second. To uninstall,
//! remove the webhook first and the configurations then; a webhook that drains restores nothing.
//!
//! Where there has been none, as at the first start, it is made by a replica that is ready, so that
//! no request waits for a webhook that cannot answer yet.

mod object;
mod rules;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::runtime::events::{EventType, Recorder, Reporter};
use opensdn_pki::Published;
use opensdn_policy_host::Step;
use opensdn_runtime::discovery::Discovery;
use opensdn_runtime::error_chain;
use opensdn_runtime::leader::Leadership;
use opensdn_runtime::readiness::Readiness;
use opensdn_runtime::shutdown::{Drain, Phase};
use opensdn_runtime::watch::{Event, WatchSpec, watch};
use serde_json::Value;
use time::OffsetDateTime;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::certificates::Bundle;
use crate::metrics::ConfigurationMetrics;
use crate::policies::Demand;
use object::{STEPS, Setting};
use rules::{Part, Plan};

pub use object::Address;

/// What the configurations depend on.
pub(crate) struct Needs {
    pub(crate) client: Client,
    pub(crate) replica: String,
    pub(crate) address: Address,
    pub(crate) namespace: String,
    pub(crate) user: Option<String>,
    pub(crate) kinds: Discovery,
    pub(crate) demand: watch::Receiver<Option<Arc<Demand>>>,
    pub(crate) bundle: Bundle,
    /// Where to say which bundle all configurations carry, and since when.
    pub(crate) published: watch::Sender<Option<Published>>,
    pub(crate) leadership: Leadership,
    pub(crate) drain: Drain,
    pub(crate) readiness: Readiness,
    pub(crate) metrics: ConfigurationMetrics,
}

/// Begins to keep the configurations. Every replica watches them.
pub(crate) fn start(needs: Needs) {
    let own = rules::own();
    let Needs { address, namespace, user, .. } = &needs;
    let setting =
        Setting { address: address.clone(), namespace: namespace.clone(), user: user.clone() };
    let observed = STEPS.map(|_| Observed::Unknown);
    tokio::spawn(Keeper { needs, setting, own, observed }.run());
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

struct Keeper {
    needs: Needs,
    setting: Setting,
    own: Vec<String>,
    /// In the order of [`STEPS`].
    observed: [Observed; 2],
}

const PATIENCE: Duration = Duration::from_secs(5);
/// How often is tried again what did not succeed.
const AGAIN: Duration = Duration::from_secs(2);

impl Keeper {
    async fn run(mut self) {
        let [mut mutating, mut validating] = STEPS.map(|step| self.watch(step));
        let mut kinds = self.needs.kinds.changed();
        let mut readiness = self.needs.readiness.changes();
        let mut timer = interval(AGAIN);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.needs.drain.reached(Phase::Draining) => return,
                change = mutating.recv() => self.observe(0, change),
                change = validating.recv() => self.observe(1, change),
                () = change(&mut self.needs.demand) => {}
                () = change(&mut kinds) => {}
                () = change(&mut readiness) => {}
                () = change(&mut self.needs.bundle) => {}
                () = self.needs.leadership.changed() => {}
                _ = timer.tick() => {}
            }
            self.publish();
            self.keep().await;
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
        watch(self.needs.client.clone(), target)
    }

    fn observe(&mut self, number: usize, change: Option<Event>) {
        let (Some(observed), Some(step)) = (self.observed.get_mut(number), STEPS.get(number))
        else {
            return;
        };
        match change {
            Some(Event::InitApply(object) | Event::Apply(object)) => {
                *observed = Observed::Present(object);
            }
            Some(Event::Delete(_)) => {
                tracing::error!(
                    kind = object::kind(*step),
                    "the webhook configuration was deleted: requests are not judged until it is \
                     restored"
                );
                *observed = Observed::Deleted;
            }
            Some(Event::InitDone) if matches!(observed, Observed::Unknown) => {
                *observed = Observed::Absent;
            }
            _ => {}
        }
        let present = matches!(observed, Observed::Present(_));
        self.needs.metrics.present(object::kind(*step)).set(i64::from(present));
    }

    /// Says which bundle all configurations carry.
    fn publish(&self) {
        let objects: Vec<&Value> = self
            .observed
            .iter()
            .filter_map(|observed| match observed {
                Observed::Present(object) => Some(object),
                _ => None,
            })
            .collect();
        let bundle = object::bundle(&objects);
        self.needs.published.send_if_modified(|before| {
            if before.as_ref().map(|before| &before.bundle) == bundle.as_ref() {
                return false;
            }
            let since = OffsetDateTime::now_utc();
            *before = bundle.map(|bundle| Published { bundle, since });
            true
        });
    }

    /// Makes both as they should be, if that is ours to do and everything needed is known.
    async fn keep(&mut self) {
        let bundle = self.needs.bundle.borrow().clone();
        let demand = self.needs.demand.borrow().clone();
        let (Some(bundle), Some(demand)) = (bundle, demand) else { return };
        if !self.needs.leadership.is_held() || self.needs.drain.phase() != Phase::Serving {
            return;
        }
        let table = self.needs.kinds.snapshot();
        for (number, step) in STEPS.into_iter().enumerate() {
            let Some(observed) = self.observed.get(number) else { continue };
            match observed {
                Observed::Unknown => continue,
                Observed::Absent if !self.needs.readiness.missing().is_empty() => continue,
                Observed::Absent | Observed::Deleted | Observed::Present(_) => {}
            }
            let mut plan = rules::plan(step, &demand.bindings, &table, &self.own);
            // A rule must not go before its policy has: a replica of which we do not know may
            // have it in force, or the kind may be unknown for a moment only.
            if !demand.complete || table.read_at.is_none() {
                keep_rules(&mut plan, step, observed);
            }
            let desired = object::desired(step, &plan, &self.setting, &bundle);
            match observed {
                Observed::Present(object) if object::is_as(object, &desired) => {}
                observed => {
                    let deleted = matches!(observed, Observed::Deleted);
                    self.apply(number, step, &desired, deleted).await;
                }
            }
        }
    }

    async fn apply(&mut self, number: usize, step: Step, desired: &Value, deleted: bool) {
        let kind = object::kind(step);
        let gvk = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, object::plural(step));
        let api: Api<DynamicObject> = Api::all_with(self.needs.client.clone(), &resource);
        let params = PatchParams::apply("opensdn-webhook").force();
        let patch = Patch::Apply(desired);
        match timeout(PATIENCE, api.patch(object::NAME, &params, &patch)).await {
            Ok(Ok(object)) => {
                tracing::info!(kind, "the webhook configuration is written");
                if let (Ok(object), Some(place)) =
                    (serde_json::to_value(object), self.observed.get_mut(number))
                {
                    *place = Observed::Present(object);
                    self.needs.metrics.present(kind).set(1);
                }
                if deleted {
                    self.needs.metrics.restored(kind).inc();
                    self.tell(kind).await;
                }
            }
            Ok(Err(error)) => {
                tracing::error!(
                    kind,
                    error = error_chain(&error),
                    "a webhook configuration is not written"
                );
            }
            Err(_) => tracing::error!(kind, "a webhook configuration is not written: no answer"),
        }
    }

    /// Leaves an event at the configuration.
    async fn tell(&self, kind: &str) {
        let reporter = Reporter {
            controller: "opensdn-webhook".to_owned(),
            instance: Some(self.needs.replica.clone()),
        };
        let event = kube::runtime::events::Event {
            type_: EventType::Warning,
            reason: "ConfigurationDeleted".to_owned(),
            note: Some(
                "it was deleted and has been restored; meanwhile requests were not judged. To \
                 uninstall, remove the webhook's Deployment first"
                    .to_owned(),
            ),
            action: "Restore".to_owned(),
            secondary: None,
        };
        let reference = ObjectReference {
            api_version: Some("admissionregistration.k8s.io/v1".to_owned()),
            kind: Some(kind.to_owned()),
            name: Some(object::NAME.to_owned()),
            ..ObjectReference::default()
        };
        let recorder = Recorder::new(self.needs.client.clone(), reporter);
        match timeout(PATIENCE, recorder.publish(&event, &reference)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = error_chain(&error), "an event is not written")
            }
            Err(_) => tracing::warn!("an event is not written: no answer"),
        }
    }
}

/// Returns when there is another value; never, where nobody will give one.
async fn change<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Adds to the plan what the configuration covers now.
fn keep_rules(plan: &mut Plan, step: Step, observed: &Observed) {
    let Observed::Present(object) = observed else { return };
    for part in Part::ALL {
        if let Some(rules) =
            object::find(object, &part.name(step)).and_then(|entry| entry.get("rules"))
        {
            plan.entry(part).or_default().add_rules(rules);
        }
    }
}
