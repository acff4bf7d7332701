//! What is known of the webhook configurations.

use opensdn_runtime::metrics::register;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// Handles of the configurations' controller; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ConfigurationMetrics {
    present: Family<KindLabel, Gauge>,
    restored: Family<KindLabel, Counter>,
    tampered: Family<KindLabel, Counter>,
}

impl ConfigurationMetrics {
    /// 1 while the configuration of that kind exists, else 0.
    pub fn present(&self, kind: &'static str) -> Gauge {
        self.present.get_or_create_owned(&KindLabel { kind })
    }

    /// How often this replica restored one that had been deleted.
    pub fn restored(&self, kind: &'static str) -> Counter {
        self.restored.get_or_create_owned(&KindLabel { kind })
    }

    /// How often this replica put one right that others had changed.
    pub fn tampered(&self, kind: &'static str) -> Counter {
        self.tampered.get_or_create_owned(&KindLabel { kind })
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        register(
            registry,
            [
                (
                    "configuration_present",
                    "1 while the webhook configuration exists",
                    None,
                    Box::new(self.present.clone()),
                ),
                (
                    "configuration_restored",
                    "Webhook configurations that were deleted and restored",
                    None,
                    Box::new(self.restored.clone()),
                ),
                (
                    "configuration_tampered",
                    "Webhook configurations that others had changed and that were put right",
                    None,
                    Box::new(self.tampered.clone()),
                ),
            ],
        );
    }
}
