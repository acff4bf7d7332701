//! What `-vv` shows: every request, to a cluster as kube traces it, to others as our own client does: method, address,
//! outcome. Headers and bodies, and with them tokens, are not in the traces.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Writes each request to standard error from now on.
pub(super) fn requests() {
    // What reads answers is beside it, and quotes one that it cannot read.
    let requests = Targets::new()
        .with_target("kube_client::client::builder", LevelFilter::DEBUG)
        .with_target("opensdn_http_client", LevelFilter::DEBUG);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .with_target(false);
    // A second one in a process is refused; the first shows the same.
    let _ = tracing_subscriber::registry().with(requests).with(lines).try_init();
}
