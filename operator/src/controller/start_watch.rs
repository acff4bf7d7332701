//! Watches of what controllers look at, and where a collection is.

use std::time::Duration;

use kube::Client;
use opensdn_runtime::readiness::{Readiness, ReadinessCheck};
use opensdn_runtime::watch::{Event, WatchSpec, watch};
use tokio::sync::mpsc::Receiver;

use crate::cache::label_selector;
use crate::kind::Kind;
use crate::names;

/// How often at least the API server has to say something in a watch.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(30);

/// A watch of one kind in one namespace, or in all, and whether it has listed all.
pub(super) fn start_watch(
    client: &Client,
    kind: Kind,
    scope: &str,
    readiness: &Readiness,
) -> (Receiver<Event>, ReadinessCheck) {
    let (api, plural) = kind.path();
    let path = collection(api, plural, scope);
    let name = (kind == Kind::GivenCa).then(|| names::GIVEN_CA_SECRET.to_owned());
    let title = name.as_deref().unwrap_or(plural);
    let check = readiness.add_check(format!("{title} {scope}"), "not listed yet");
    let label_selector = label_selector(kind);
    let spec = WatchSpec { path, name, label_selector, metadata_only: false, heartbeat: HEARTBEAT };
    (watch(client.clone(), spec), check)
}

/// Whether there is nothing to wait for: the kind is not served, or RBAC forbids to read it.
pub(super) fn is_closed(event: &Event) -> bool {
    match event {
        Event::Disconnected { absent, why } => *absent || why.contains("missing RBAC rule"),
        _ => false,
    }
}

pub(super) fn collection(api: &str, plural: &str, namespace: &str) -> String {
    if namespace.is_empty() {
        format!("{api}/{plural}")
    } else {
        format!("{api}/namespaces/{namespace}/{plural}")
    }
}
