//! What is known of the webhook configurations.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// Handles of the configurations' keeper; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ConfigurationMetrics {
    present: Family<KindLabel, Gauge>,
    restored: Family<KindLabel, Counter>,
}

impl ConfigurationMetrics {
    /// 1 while the configuration of that kind exists, else 0.
    pub fn present(&self, kind: &'static str) -> Gauge {
        self.present.get_or_create_owned(&KindLabel { kind })
    }

    /// How often this replica restored one that somebody had deleted.
    pub fn restored(&self, kind: &'static str) -> Counter {
        self.restored.get_or_create_owned(&KindLabel { kind })
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "configuration_present",
            "1 while the webhook configuration exists",
            self.present.clone(),
        );
        registry.register(
            "configuration_restored",
            "Webhook configurations that were deleted and restored",
            self.restored.clone(),
        );
    }
}
