//! What every process of ours counts of its way to the API server: requests, calls that failed, and watches
//! that are disconnected or had to be started again. There is one of each in a process, as there is one API server.

use std::borrow::Cow;
use std::sync::LazyLock;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::register;
use crate::path::Target;

static COUNTS: LazyLock<Counts> = LazyLock::new(Counts::default);

#[derive(Debug, Default)]
struct Counts {
    requests: Family<RequestLabels, Counter>,
    failed_calls: Family<CallLabels, Counter>,
    disconnected_watches: Gauge,
    watch_restarts: Family<RestartLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    resource: String,
    code: Cow<'static, str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RestartLabels {
    resource: String,
    reason: &'static str,
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
                "api_requests",
                "Requests that were sent to the API server, each retry of its own (through a proxy: all tries as one), by its answer",
                None,
                Box::new(COUNTS.requests.clone()),
            ),
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
            (
                "watch_restarts",
                "Watches that were started again for another reason than that their time was over",
                None,
                Box::new(COUNTS.watch_restarts.clone()),
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

/// Counts a request that was answered with that status; `None`, if there was no answer.
pub(crate) fn requested(verb: &'static str, resource: String, status: Option<http::StatusCode>) {
    let code = status.map_or(Cow::Borrowed("none"), |status| status.as_str().to_owned().into());
    COUNTS.requests.get_or_create_owned(&RequestLabels { verb, resource, code }).inc();
}

/// Counts a watch of the collection at that path that is started again.
pub(crate) fn watch_restarted(path: &str, reason: &'static str) {
    let resource = Target::of(path).resource;
    COUNTS.watch_restarts.get_or_create_owned(&RestartLabels { resource, reason }).inc();
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
