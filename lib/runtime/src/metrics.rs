//! What the metrics of every process have in common: prefix, buckets, label values, and the
//! OpenMetrics text. Deliberately not here: any metric (`counts.rs` has those of every process).

use std::fmt;
use std::hash::Hash;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::{EncodeGaugeValue, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

// For `label_values!` in crates that do not name prometheus-client themselves.
#[doc(hidden)]
pub use prometheus_client::encoding as __encoding;

/// A gauge of seconds.
pub type SecondsGauge = Gauge<f64, AtomicU64>;

/// A gauge that is exported while its value is known. A plain one would say 0, which for a time is 1970 and for
/// a number that another knows better is wrong.
#[derive(Clone, Debug)]
pub struct KnownGauge<N>(Arc<Mutex<Option<N>>>);

impl<N> Default for KnownGauge<N> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<N> KnownGauge<N> {
    /// From now on it is exported.
    pub fn set(&self, value: N) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    /// From now on it is not.
    pub fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl<N: EncodeGaugeValue + Copy> EncodeMetric for KnownGauge<N> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let value = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        value.map_or(Ok(()), |value| encoder.encode_gauge(&value))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

/// Histograms by label.
pub type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Upper bounds in seconds: from one evaluation of a small policy (25 µs) to the longest timeout of
/// a caller (10 s).
pub const BUCKETS: [f64; 18] = [
    25e-6, 50e-6, 100e-6, 200e-6, 400e-6, 800e-6, 1.6e-3, 3e-3, 6e-3, 12e-3, 25e-3, 50e-3, 100e-3,
    250e-3, 500e-3, 1.0, 3.0, 10.0,
];

/// Gives enums their label values, apart from the names in code, which may change.
///
/// ```
/// #[derive(Clone, Debug, PartialEq, Eq, Hash)]
/// enum Mode { Enforce, Warn }
/// opensdn_runtime::label_values! { Mode { Enforce = "enforce", Warn = "warn" } }
/// ```
#[macro_export]
macro_rules! label_values {
    ($($label:ident { $($variant:ident = $value:literal),* $(,)? })*) => {
        $(impl $crate::metrics::__encoding::EncodeLabelValue for $label {
            fn encode(
                &self,
                encoder: &mut $crate::metrics::__encoding::LabelValueEncoder<'_>,
            ) -> Result<(), std::fmt::Error> {
                std::fmt::Write::write_str(encoder, match self { $(Self::$variant => $value),* })
            }
        })*
    };
}

/// A registry whose metrics all begin with `prefix` and an underscore.
pub fn registry(prefix: &'static str) -> Registry {
    Registry::with_prefix(prefix)
}

/// A row of [`register`]'s table: name, help, unit, metric.
pub type Row = (&'static str, &'static str, Option<Unit>, Box<dyn Metric>);

/// Registers a table of metrics. The registry appends the unit, and `_total` to a counter.
pub fn register<const N: usize>(registry: &mut Registry, table: [Row; N]) {
    for (name, help, unit, metric) in table {
        match unit {
            Some(unit) => registry.register_with_unit(name, help, unit, Registered(metric)),
            None => registry.register(name, help, Registered(metric)),
        }
    }
}

/// A metric of any type, so that metrics of several types fit into one table.
#[derive(Debug)]
struct Registered(Box<dyn Metric>);

impl EncodeMetric for Registered {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        self.0.metric_type()
    }

    /// A family without a sample is in the text, too: what can be counted is seen before it is.
    fn is_empty(&self) -> bool {
        false
    }
}

/// A histogram of seconds.
pub fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

/// Histograms of seconds, by label.
pub fn histograms<L: Clone + Hash + Eq>() -> Histograms<L> {
    Family::new_with_constructor(histogram)
}

/// All metrics of the registry in the OpenMetrics text format.
///
/// # Errors
/// A metric refuses to be written, which none of ours does.
pub fn encode(registry: &Registry) -> Result<String, fmt::Error> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry)?;
    Ok(text)
}
