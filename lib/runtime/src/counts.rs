//! What every process of ours counts of its way to the API server: calls that failed, and watches that
//! are disconnected. There is one of each in a process, as there is one API server.

use std::sync::LazyLock;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::register;

static COUNTS: LazyLock<Counts> = LazyLock::new(Counts::default);

#[derive(Debug, Default)]
struct Counts {
    failed_calls: Family<CallLabels, Counter>,
    disconnected_watches: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    operation: String,
    reason: &'static str,
}

/// Has all of them shown by this registry.
pub fn register_all(registry: &mut Registry) {
    register(
        registry,
        [
            (
                "api_calls_failed",
                "Calls of the API server that failed, watches not among them",
                None,
                Box::new(COUNTS.failed_calls.clone()),
            ),
            (
                "watches_disconnected",
                "Watches that the API server does not answer now",
                None,
                Box::new(COUNTS.disconnected_watches.clone()),
            ),
        ],
    );
}

/// Counts a call that failed, unless that was an answer: there is none of that name, or another writer
/// was faster.
pub(crate) fn call_failed(operation: String, reason: &'static str) {
    if !["not_found", "conflict"].contains(&reason) {
        COUNTS.failed_calls.get_or_create_owned(&CallLabels { operation, reason }).inc();
    }
}

/// A watch that is disconnected, for as long as this is there.
#[derive(Debug)]
pub(crate) struct DisconnectedWatch(());

impl DisconnectedWatch {
    pub(crate) fn new() -> Self {
        COUNTS.disconnected_watches.inc();
        Self(())
    }
}

impl Drop for DisconnectedWatch {
    fn drop(&mut self) {
        COUNTS.disconnected_watches.dec();
    }
}
