//! What the operator counts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
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
    leader: Gauge,
    ready: Family<ServiceLabels, Gauge>,
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

impl Metrics {
    /// New ones, and the registry that shows them.
    #[must_use]
    pub fn new() -> (Self, Registry) {
        let metrics = Self {
            passes: Family::default(),
            seconds: histograms(),
            skipped: Family::default(),
            leader: Gauge::default(),
            ready: Family::default(),
            certificates: Family::default(),
            known: Arc::default(),
        };
        let mut all = registry("opensdn");
        register(
            &mut all,
            [
                ("reconcile", "Passes over an object", None, Box::new(metrics.passes.clone())),
                (
                    "reconcile_duration",
                    "How long a pass took",
                    Some(Unit::Seconds),
                    Box::new(metrics.seconds.clone()),
                ),
                (
                    "api_writes_skipped",
                    "Objects that were as they shall be, so that no call was made",
                    None,
                    Box::new(metrics.skipped.clone()),
                ),
                ("leader", "1 while this process leads", None, Box::new(metrics.leader.clone())),
                (
                    "service_ready",
                    "1 while a service of a Manager is as its object says",
                    None,
                    Box::new(metrics.ready.clone()),
                ),
                (
                    "certificate_expiry_timestamp",
                    "When the first certificate of a Secret expires, since 1970",
                    Some(Unit::Seconds),
                    Box::new(metrics.certificates.clone()),
                ),
            ],
        );
        opensdn_runtime::counts::register_all(&mut all);
        (metrics, all)
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

    /// Which services of a Manager are ready, by kind and name. Of those that it does not name any more nothing is said.
    pub fn services(&self, manager: &DynamicObject, services: BTreeMap<String, bool>) {
        let namespace = manager.namespace().unwrap_or_default();
        let manager = format!("{namespace}/{}", manager.name_any());
        let labels = |service: &str| {
            let (manager, service) = (manager.clone(), service.to_owned());
            ServiceLabels { manager, service }
        };
        for (service, is_ready) in &services {
            self.ready.get_or_create_owned(&labels(service)).set(i64::from(*is_ready));
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
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_that_is_gone_has_no_series_any_more() {
        let (metrics, registry) = Metrics::new();
        let manager = json!({"metadata": {"namespace": "tf", "name": "m"}});
        let manager: DynamicObject = serde_json::from_value(manager).unwrap();
        let ready = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), true)).collect();
        let series = || {
            let text = opensdn_runtime::metrics::encode(&registry).unwrap();
            text.lines().filter(|line| line.starts_with("opensdn_service_ready{")).count()
        };
        metrics.services(&manager, ready(&["a", "b"]));
        assert_eq!(series(), 2);
        metrics.services(&manager, ready(&["b"]));
        assert_eq!(series(), 1);
        metrics.services(&manager, BTreeMap::new());
        assert_eq!(series(), 0);
    }
}
