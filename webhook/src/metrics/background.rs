//! What the background work counts: who leads, and the claim controller. Only the leader does that work, so
//! only its numbers move. What the audit counts is in `audit.rs`.

use opensdn_runtime::leader::Leadership;
use opensdn_runtime::metrics::register;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScopeLabel {
    scope: String,
}

/// Handles of the background work; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct BackgroundMetrics {
    released: Family<ReasonLabel, Counter>,
    conflicts: Family<ScopeLabel, Gauge>,
    leader: Gauge,
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
            ],
        );
    }
}
