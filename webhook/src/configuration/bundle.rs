//! The CA bundle that an administrator gives in a file.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::certificates::Bundle;

/// A mounted Secret changes without an event that is the same everywhere.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The content of the file, as it changes. Where it is no bundle the last one stays: the API server
/// would refuse the whole configuration.
pub(crate) fn follow_file(path: PathBuf) -> Bundle {
    let (sender, receiver) = watch::channel(None);
    tokio::spawn(async move {
        let mut timer = interval(POLL_INTERVAL);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut has_warned = false;
        while !sender.is_closed() {
            timer.tick().await;
            let content = tokio::fs::read_to_string(&path).await;
            match content.ok().filter(|text| text.contains("BEGIN CERTIFICATE")) {
                Some(text) => {
                    has_warned = false;
                    sender.send_if_modified(|before: &mut Option<Arc<str>>| {
                        let changed = before.as_deref() != Some(text.as_str());
                        if changed {
                            *before = Some(text.into());
                        }
                        changed
                    });
                }
                None if !has_warned => {
                    has_warned = true;
                    let path = path.display();
                    tracing::error!(%path, "failed to read a certificate from the CA bundle; keeping the last one");
                }
                None => {}
            }
        }
    });
    receiver
}
