//! What the audit of stored objects counts. A replica that does not lead knows nothing of it and exports none of it.

use std::time::{SystemTime, UNIX_EPOCH};

use opensdn_runtime::metrics::{KnownGauge, register};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FindingLabels {
    policy: String,
    severity: &'static str,
}

/// Handles of the audit; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct AuditMetrics {
    findings: Family<FindingLabels, Gauge>,
    /// Objects that the last audit evaluated.
    pub objects: KnownGauge<i64>,
    /// Kinds and policies that it could not check.
    pub unchecked: KnownGauge<i64>,
    /// Reports on objects that it could not write or delete.
    pub unwritten: KnownGauge<i64>,
    end: KnownGauge<f64>,
}

impl AuditMetrics {
    /// What the last audit found: policy, severity, number. What is not named is forgotten.
    pub fn found<'a>(&self, findings: impl IntoIterator<Item = (&'a str, &'static str, i64)>) {
        self.findings.clear();
        for (policy, severity, number) in findings {
            let labels = FindingLabels { policy: policy.to_owned(), severity };
            self.findings.get_or_create_owned(&labels).set(number);
        }
    }

    /// An audit has ended now, and what it found is written.
    pub fn ended(&self) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.end.set(since.as_secs_f64());
    }

    /// This process does not lead any more: another knows better.
    pub fn forget(&self) {
        self.findings.clear();
        for gauge in [&self.objects, &self.unchecked, &self.unwritten] {
            gauge.forget();
        }
        self.end.forget();
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        register(
            registry,
            [
                (
                    "audit_findings",
                    "Findings of the last audit of stored objects",
                    None,
                    Box::new(self.findings.clone()),
                ),
                (
                    "audit_objects",
                    "Objects that the last audit evaluated",
                    None,
                    Box::new(self.objects.clone()),
                ),
                (
                    "audit_unchecked",
                    "Kinds and policies that the last audit could not check",
                    None,
                    Box::new(self.unchecked.clone()),
                ),
                (
                    "audit_unwritten_reports",
                    "Reports on objects that the last audit could not write or delete",
                    None,
                    Box::new(self.unwritten.clone()),
                ),
                (
                    "audit_end_timestamp",
                    "When the last audit ended, since 1970",
                    Some(Unit::Seconds),
                    Box::new(self.end.clone()),
                ),
            ],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_lead_any_more_exports_nothing_of_the_audit() {
        let metrics = AuditMetrics::default();
        let mut registry = opensdn_runtime::metrics::registry("t");
        metrics.register(&mut registry);
        let samples = || {
            let text = opensdn_runtime::metrics::encode(&registry).unwrap();
            text.lines().filter(|line| !line.starts_with('#')).count()
        };
        assert_eq!(samples(), 0, "a standby");
        metrics.objects.set(3);
        metrics.unchecked.set(0);
        metrics.unwritten.set(0);
        metrics.found([("even-quorum", "deny", 1)]);
        assert_eq!(samples(), 4, "before the first audit has ended");
        metrics.ended();
        assert_eq!(samples(), 5);
        metrics.forget();
        assert_eq!(samples(), 0);
    }
}
