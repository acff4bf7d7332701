//! What the operator counts.

use std::time::Duration;

use opensdn_runtime::metrics::{Histograms, histograms, register, registry};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};

use crate::cache::Kind;

/// Counters of the whole process; cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    passes: Family<PassLabels, Counter>,
    seconds: Histograms<ControllerLabels>,
    skipped: Family<KindLabels, Counter>,
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

impl Metrics {
    /// New ones, and the registry that shows them.
    #[must_use]
    pub fn new() -> (Self, Registry) {
        let metrics =
            Self { passes: Family::default(), seconds: histograms(), skipped: Family::default() };
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

    /// An object was as it shall be.
    pub(crate) fn skipped(&self, kind: Kind) {
        self.skipped.get_or_create_owned(&KindLabels { kind: kind.name() }).inc();
    }
}
