//! The current path token of the Secret, for a process that gives it to API servers, and neither makes nor
//! replaces one.

use kube::Client;
use opensdn_runtime::readiness::ReadinessCheck;
use opensdn_runtime::watch::{Event, watch as start_watch};
use tokio::sync::watch;

use super::PathToken;
use super::controller::watch_spec;
use super::secret::Stored;

/// Waits until there is a token, and follows it from then on; `waiting` says why there is none. Where the
/// Secret is deleted or damaged later, the last one stays: so it does for those who accept it.
pub async fn follow_secret(
    client: Client,
    namespace: &str,
    name: &str,
    waiting: &ReadinessCheck,
) -> watch::Receiver<PathToken> {
    let mut events = start_watch(client, watch_spec(namespace, name));
    let first = loop {
        match events.recv().await {
            Some(Event::Disconnected { why, .. }) => {
                waiting.fail(format!("no path token yet: {why}"));
            }
            Some(event) => {
                if let Some(token) = current(event) {
                    break token;
                }
            }
            // The runtime ends.
            None => std::future::pending().await,
        }
    };
    waiting.pass();
    let (sender, receiver) = watch::channel(first);
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            let Some(token) = current(event) else { continue };
            sender.send_if_modified(|before| {
                let changed = *before != token;
                *before = token;
                changed
            });
        }
    });
    receiver
}

fn current(event: Event) -> Option<PathToken> {
    let (Event::InitApply(object) | Event::Apply(object)) = event else { return None };
    let secret = serde_json::from_value(object).ok()?;
    Some(Stored::read(&secret)?.current)
}
