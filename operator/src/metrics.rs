//! What the operator counts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_runtime::metrics::{Histograms, SecondsGauge, histograms, register, registry};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use time::OffsetDateTime;

use crate::kind::Kind;

/// Counters of the whole process; cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    passes: Family<PassLabels, Counter>,
    seconds: Histograms<ControllerLabels>,
    skipped: Family<KindLabels, Counter>,
    depths: Family<ControllerLabels, Gauge>,
    leader: Gauge,
    ready: Family<ServiceLabels, Gauge>,
    paused: Family<ServiceLabels, Gauge>,
    margins: Family<ServiceLabels, Gauge>,
    /// Under which labels there is a margin of an object, by its UID: its Manager may be another one later.
    shown: Arc<Mutex<HashMap<String, ServiceLabels>>>,
    certificates: Family<SecretLabels, SecondsGauge>,
    /// The services of each Manager of which there are series.
    known: Arc<Mutex<HashMap<String, BTreeSet<String>>>>,
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The object is as it shall be, or waits for something.
    Success,
    /// A call failed; it is tried again.
    Error,
}

opensdn_runtime::label_values! { Outcome { Success = "success", Error = "error" } }

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PassLabels {
    controller: &'static str,
    result: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SecretLabels {
    namespace: String,
    secret: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServiceLabels {
    manager: String,
    service: String,
}

impl ServiceLabels {
    /// Of an object of a service, and of the Manager that there is of it.
    fn of(object: &DynamicObject, manager: Option<&DynamicObject>, kind: &str) -> Self {
        let namespace = object.namespace().unwrap_or_default();
        let manager = manager.map(|manager| format!("{namespace}/{}", manager.name_any()));
        Self { manager: manager.unwrap_or_default(), service: service(kind, &object.name_any()) }
    }
}

/// A service in labels.
pub(crate) fn service(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}

/// What is counted of a service of a Manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceIs {
    /// As its object says.
    pub ready: bool,
    /// Left as it is.
    pub paused: bool,
}

impl Metrics {
    /// New ones, and the registry that shows them.
    #[must_use]
    pub fn new() -> (Self, Registry) {
        let metrics = Self {
            passes: Family::default(),
            seconds: histograms(),
            skipped: Family::default(),
            depths: Family::default(),
            leader: Gauge::default(),
            ready: Family::default(),
            paused: Family::default(),
            margins: Family::default(),
            shown: Arc::default(),
            certificates: Family::default(),
            known: Arc::default(),
        };
        let mut all = registry("opensdn");
        metrics.register_all(&mut all);
        opensdn_runtime::counts::register_all(&mut all);
        (metrics, all)
    }

    fn register_all(&self, all: &mut Registry) {
        let seconds = Some(Unit::Seconds);
        register(
            all,
            [
                ("reconcile", "Passes over an object", None, Box::new(self.passes.clone())),
                (
                    "reconcile_duration",
                    "How long a pass took",
                    seconds.clone(),
                    Box::new(self.seconds.clone()),
                ),
                (
                    "api_writes_skipped",
                    "Objects that were as they shall be, so that no call was made",
                    None,
                    Box::new(self.skipped.clone()),
                ),
                (
                    "workqueue_depth",
                    "Objects that changed and wait for a pass",
                    None,
                    Box::new(self.depths.clone()),
                ),
                ("leader", "1 while this process leads", None, Box::new(self.leader.clone())),
                (
                    "service_ready",
                    "1 while a service of a Manager is as its object says",
                    None,
                    Box::new(self.ready.clone()),
                ),
                (
                    "paused",
                    "1 while nothing of a service of a Manager is written, as a user wants it",
                    None,
                    Box::new(self.paused.clone()),
                ),
                (
                    "quorum_margin",
                    "How many more members of a service may fail before it, or most copies of what it stores, has no quorum; below 0 that is so",
                    None,
                    Box::new(self.margins.clone()),
                ),
                (
                    "certificate_expiry_timestamp",
                    "When the first certificate of a Secret expires, since 1970",
                    seconds,
                    Box::new(self.certificates.clone()),
                ),
            ],
        );
    }

    /// How many objects wait for a pass of that controller.
    pub(crate) fn depth(&self, controller: &'static str) -> Gauge {
        self.depths.get_or_create_owned(&ControllerLabels { controller })
    }

    /// How many more members of the service of that object may fail; nothing, where that is not known or has no meaning.
    pub fn margin(
        &self,
        object: &DynamicObject,
        manager: Option<&DynamicObject>,
        kind: &str,
        margin: Option<i32>,
    ) {
        let labels = margin.map(|_| ServiceLabels::of(object, manager, kind));
        let mut shown = self.shown();
        let uid = object.uid().unwrap_or_default();
        let before = match &labels {
            Some(labels) => shown.insert(uid, labels.clone()),
            None => shown.remove(&uid),
        };
        // Another object has the name by now, and with it the series.
        let is_left = |before: &ServiceLabels| !shown.values().any(|other| other == before);
        if let Some(before) = before.filter(is_left) {
            self.margins.remove(&before);
        }
        if let (Some(labels), Some(margin)) = (labels, margin) {
            self.margins.get_or_create_owned(&labels).set(i64::from(margin));
        }
    }

    fn shown(&self) -> MutexGuard<'_, HashMap<String, ServiceLabels>> {
        // A map of labels cannot be left half changed.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pass has ended.
    pub fn pass(&self, controller: &'static str, result: Outcome, took: Duration) {
        self.passes.get_or_create_owned(&PassLabels { controller, result }).inc();
        let labels = ControllerLabels { controller };
        self.seconds.get_or_create_owned(&labels).observe(took.as_secs_f64());
    }

    /// This process leads.
    pub fn leads(&self) {
        self.leader.set(1);
    }

    /// How the services of a Manager are, by kind and name. Of those that it does not name any more nothing is said.
    pub fn services(&self, manager: &DynamicObject, services: BTreeMap<String, ServiceIs>) {
        let namespace = manager.namespace().unwrap_or_default();
        let manager = format!("{namespace}/{}", manager.name_any());
        let labels = |service: &str| {
            let (manager, service) = (manager.clone(), service.to_owned());
            ServiceLabels { manager, service }
        };
        for (service, is) in &services {
            let labels = labels(service);
            self.ready.get_or_create_owned(&labels).set(i64::from(is.ready));
            self.paused.get_or_create_owned(&labels).set(i64::from(is.paused));
        }
        let now: BTreeSet<String> = services.into_keys().collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = if now.is_empty() {
            known.remove(&manager)
        } else {
            known.insert(manager.clone(), now.clone())
        };
        for gone in before.unwrap_or_default().difference(&now) {
            self.ready.remove(&labels(gone));
            self.paused.remove(&labels(gone));
        }
    }

    /// When the first certificate of a Secret expires; nothing, where the Secret is gone.
    #[allow(clippy::cast_precision_loss, reason = "seconds since 1970")]
    pub fn certificates(&self, namespace: &str, secret: &str, expiry: Option<OffsetDateTime>) {
        let labels = SecretLabels { namespace: namespace.to_owned(), secret: secret.to_owned() };
        match expiry {
            Some(expiry) => {
                self.certificates.get_or_create_owned(&labels).set(expiry.unix_timestamp() as f64);
            }
            None => drop(self.certificates.remove(&labels)),
        }
    }

    /// An object was as it shall be.
    pub(crate) fn skipped(&self, kind: Kind) {
        self.skipped.get_or_create_owned(&KindLabels { kind: kind.name() }).inc();
    }
}

#[cfg(test)]
mod tests;
