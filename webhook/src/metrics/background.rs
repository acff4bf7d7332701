//! What the background work counts: who leads, the claim controller and the audit. Only the leader does
//! that work, so only its numbers move.

use opensdn_runtime::leader::Leadership;
use opensdn_runtime::metrics::{SecondsGauge, register};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScopeLabel {
    scope: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FindingLabels {
    policy: String,
    severity: &'static str,
}

/// Handles of the background work; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct BackgroundMetrics {
    released: Family<ReasonLabel, Counter>,
    conflicts: Family<ScopeLabel, Gauge>,
    findings: Family<FindingLabels, Gauge>,
    leader: Gauge,
    /// Objects that the last audit evaluated.
    pub audited_objects: Gauge,
    /// Kinds and policies that the last audit could not check.
    pub audit_unchecked: Gauge,
    /// Reports on objects that the last audit could not write or delete.
    pub audit_unwritten: Gauge,
    /// When the last audit ended, in seconds since 1970.
    pub audit_ended: SecondsGauge,
}

impl BackgroundMetrics {
    /// Says whether this process leads, for as long as it is polled.
    pub async fn follow(self, mut leadership: Leadership) {
        loop {
            self.leader.set(i64::from(leadership.is_held()));
            leadership.changed().await;
        }
    }

    /// Claims released for a reason, which is a fixed label.
    pub fn released(&self, reason: &'static str) -> Counter {
        self.released.get_or_create_owned(&ReasonLabel { reason })
    }

    /// Keys of a scope that more than one stored object claims.
    pub fn conflicts(&self, scope: &str) -> Gauge {
        self.conflicts.get_or_create_owned(&ScopeLabel { scope: scope.to_owned() })
    }

    /// This replica does not know about conflicts any more.
    pub fn forget_conflicts(&self) {
        self.conflicts.clear();
    }

    /// What the last audit found: policy, severity, number. What is not named is forgotten.
    pub fn found<'a>(&self, findings: impl IntoIterator<Item = (&'a str, &'static str, i64)>) {
        self.findings.clear();
        for (policy, severity, number) in findings {
            let labels = FindingLabels { policy: policy.to_owned(), severity };
            self.findings.get_or_create_owned(&labels).set(number);
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        register(
            registry,
            [
                ("leader", "1 while this process leads", None, Box::new(self.leader.clone())),
                (
                    "claims_released",
                    "Uniqueness claims released",
                    None,
                    Box::new(self.released.clone()),
                ),
                (
                    "unique_conflicts",
                    "Keys that more than one stored object claims",
                    None,
                    Box::new(self.conflicts.clone()),
                ),
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
                    Box::new(self.audited_objects.clone()),
                ),
                (
                    "audit_unchecked",
                    "Kinds and policies that the last audit could not check",
                    None,
                    Box::new(self.audit_unchecked.clone()),
                ),
                (
                    "audit_unwritten_reports",
                    "Reports on objects that the last audit could not write or delete",
                    None,
                    Box::new(self.audit_unwritten.clone()),
                ),
                (
                    "audit_end_timestamp",
                    "When the last audit ended, since 1970",
                    Some(Unit::Seconds),
                    Box::new(self.audit_ended.clone()),
                ),
            ],
        );
    }
}
