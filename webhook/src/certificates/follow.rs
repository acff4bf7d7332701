//! The bundle of the CA's Secret, for a process that gives it to API servers, and neither makes nor rotates
//! the CA. It keeps no key.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use opensdn_pki::{SecretState, parse};
use opensdn_runtime::readiness::ReadinessCheck;
use opensdn_runtime::watch::{Event, watch as start_watch};
use tokio::sync::watch;

use super::{Bundle, watch_spec};

/// Follows the bundle; `waiting` says why there is none. Where the Secret is deleted or damaged later, the
/// last one stays: the replicas restore that.
pub fn follow_secret(
    client: Client,
    namespace: &str,
    name: &str,
    waiting: ReadinessCheck,
) -> Bundle {
    let mut events = start_watch(client, watch_spec(namespace, name));
    let (sender, bundle) = watch::channel(None);
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            let is_waiting = sender.borrow().is_none();
            match event {
                Event::Disconnected { why, .. } if is_waiting => {
                    waiting.fail(format!("no CA yet: {why}"));
                }
                Event::InitApply(object) | Event::Apply(object) => {
                    let Some(bundle) = read(object) else { continue };
                    waiting.pass();
                    sender.send_if_modified(|before: &mut Option<Arc<str>>| {
                        let changed = before.as_deref() != Some(&*bundle);
                        *before = Some(bundle);
                        changed
                    });
                }
                _ => {}
            }
        }
    });
    bundle
}

fn read(object: serde_json::Value) -> Option<Arc<str>> {
    let secret: Secret = serde_json::from_value(object).ok()?;
    match parse(&secret) {
        SecretState::Complete { authorities, .. } => Some(authorities.bundle().into()),
        SecretState::Damaged { .. } | SecretState::Missing => None,
    }
}
