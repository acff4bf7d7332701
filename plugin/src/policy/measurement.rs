//! Numbers of a policy: quantiles of many runs, how much they waver, and whether a change is more
//! than that. Pure: the runs themselves are made by `policy bench`.

use std::time::Duration;

use opensdn_policy_host::Cost;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::microseconds;

/// Parts in which the runs are looked at one by one, to see how much they waver.
const BATCHES: usize = 10;

/// One step on one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Measurement {
    /// The request: a file.
    pub(crate) request: String,
    /// `mutate` or `validate`.
    pub(crate) step: String,
    /// Runs.
    pub(crate) samples: usize,
    /// Until the fresh instance is ready.
    pub(crate) instantiate: Quantiles,
    /// The whole evaluation, the instance and lookups included.
    pub(crate) evaluate: Quantiles,
    /// How much the median wavers from one tenth of the runs to another, in percent.
    pub(crate) noise_percent: f64,
    /// Instructions: the same on every machine.
    pub(crate) fuel: Option<u64>,
    /// Linear memory at its largest.
    pub(crate) memory_bytes: usize,
}

/// Half, and all but one in a hundred, of the runs took at most so long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Quantiles {
    pub(crate) p50_microseconds: f64,
    pub(crate) p99_microseconds: f64,
}

/// A measurement against an earlier one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    pub(crate) request: String,
    pub(crate) step: String,
    /// Change of the median time.
    pub(crate) time_percent: f64,
    /// What the time may change by without meaning anything: the noise of both, and the tolerance.
    pub(crate) threshold_percent: f64,
    /// What the times say.
    pub(crate) time: Trend,
    /// Change of the fuel; absent where it was not counted.
    pub(crate) fuel_percent: Option<f64>,
    /// What the fuel says.
    pub(crate) fuel: Trend,
}

/// Whether something has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Trend {
    /// It takes less.
    Better,
    /// It takes as much, within the noise.
    Same,
    /// It takes more.
    Worse,
}

impl Trend {
    fn of(percent: f64, threshold: f64) -> Self {
        if percent > threshold {
            Self::Worse
        } else if percent < -threshold {
            Self::Better
        } else {
            Self::Same
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Same => "same",
            Self::Worse => "WORSE",
        }
    }
}

impl Measurement {
    /// Of the runs in the order in which they were made; nothing without a run.
    pub(crate) fn of(request: &str, step: &str, costs: &[Cost], fuel: Option<u64>) -> Option<Self> {
        let times: Vec<Duration> = costs.iter().map(|cost| cost.total).collect();
        let evaluate = Quantiles::of(&times)?;
        let instantiate: Vec<Duration> = costs.iter().map(|cost| cost.instantiate).collect();
        Some(Self {
            request: request.to_owned(),
            step: step.to_owned(),
            samples: costs.len(),
            instantiate: Quantiles::of(&instantiate)?,
            evaluate,
            noise_percent: noise(&times, evaluate.p50_microseconds),
            fuel,
            memory_bytes: costs.iter().map(|cost| cost.memory).max()?,
        })
    }

    /// What has changed since `earlier`.
    pub(crate) fn since(&self, earlier: &Self, tolerance: f64) -> Change {
        let time_percent =
            percent(self.evaluate.p50_microseconds, earlier.evaluate.p50_microseconds);
        let threshold_percent = self.noise_percent + earlier.noise_percent + tolerance;
        let fuel_percent = match (self.fuel, earlier.fuel) {
            (Some(now), Some(then)) => Some(percent(float(now), float(then))),
            _ => None,
        };
        Change {
            request: self.request.clone(),
            step: self.step.clone(),
            time_percent: rounded(time_percent),
            threshold_percent: rounded(threshold_percent),
            time: Trend::of(time_percent, threshold_percent),
            fuel_percent: fuel_percent.map(rounded),
            fuel: fuel_percent.map_or(Trend::Same, |percent| Trend::of(percent, tolerance)),
        }
    }
}

impl Quantiles {
    fn of(times: &[Duration]) -> Option<Self> {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let at = |hundredth: usize| {
            let place = (sorted.len() * hundredth).div_ceil(100).saturating_sub(1);
            sorted.get(place).copied().map(microseconds)
        };
        Some(Self { p50_microseconds: at(50)?, p99_microseconds: at(99)? })
    }
}

/// The spread of the medians of the batches, without the lowest and the highest.
fn noise(times: &[Duration], median: f64) -> f64 {
    let size = times.len().div_ceil(BATCHES).max(1);
    let mut medians: Vec<f64> = times
        .chunks(size)
        .filter_map(Quantiles::of)
        .map(|quantiles| quantiles.p50_microseconds)
        .collect();
    medians.sort_by(f64::total_cmp);
    let inner = medians.get(1..medians.len().saturating_sub(1)).unwrap_or_default();
    match (inner.first(), inner.last()) {
        (Some(low), Some(high)) if median > 0.0 => rounded((high - low) / median * 100.0),
        _ => 0.0,
    }
}

fn percent(now: f64, then: f64) -> f64 {
    if then > 0.0 { (now - then) / then * 100.0 } else { 0.0 }
}

fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[allow(clippy::cast_precision_loss, reason = "a part of a percent does not matter")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use opensdn_policy_host::Cost;

    use super::{Measurement, Trend};

    fn measured(microseconds: impl Iterator<Item = u64>, fuel: u64) -> Measurement {
        let cost = |time| Cost {
            instantiate: Duration::from_micros(1),
            total: Duration::from_micros(time),
            fuel: None,
            memory: 7,
        };
        let costs: Vec<Cost> = microseconds.map(cost).collect();
        Measurement::of("a.yaml", "validate", &costs, Some(fuel)).unwrap()
    }

    #[test]
    fn quantiles_are_of_the_sorted_runs() {
        let measured = measured((1..=100).rev(), 1);
        assert!((measured.evaluate.p50_microseconds - 50.0).abs() < 1e-9);
        assert!((measured.evaluate.p99_microseconds - 99.0).abs() < 1e-9);
        assert_eq!((measured.samples, measured.memory_bytes), (100, 7));
        assert!(Measurement::of("a", "validate", &[], None).is_none());
    }

    #[test]
    fn a_change_counts_only_beyond_the_noise() {
        let steady = |time: u64| measured(std::iter::repeat_n(time, 100), 1000);
        assert_eq!(steady(120).since(&steady(100), 5.0).time, Trend::Worse);
        assert_eq!(steady(103).since(&steady(100), 5.0).time, Trend::Same);
        assert_eq!(steady(80).since(&steady(100), 5.0).time, Trend::Better);
        // From one tenth of the runs to the next it wavers between 80 and 120.
        let wavering =
            measured((0..100).map(|number| if number / 10 % 2 == 0 { 80 } else { 120 }), 1000);
        assert!(wavering.noise_percent > 30.0, "{}", wavering.noise_percent);
        assert_eq!(steady(120).since(&wavering, 5.0).time, Trend::Same);
    }

    #[test]
    fn fuel_has_no_noise() {
        let with = |fuel| measured(std::iter::repeat_n(100, 100), fuel);
        assert_eq!(with(1060).since(&with(1000), 5.0).fuel, Trend::Worse);
        assert_eq!(with(1040).since(&with(1000), 5.0).fuel, Trend::Same);
        assert_eq!(with(900).since(&with(1000), 5.0).fuel_percent, Some(-10.0));
    }
}
