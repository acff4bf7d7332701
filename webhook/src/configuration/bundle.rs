//! The CA bundle that an administrator gives in a file.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::certificates::Bundle;
use crate::poll_file;

/// The content of the file, as it changes. Where it is no bundle the last one stays: the API server
/// would refuse the whole configuration.
pub(crate) fn follow_file(path: PathBuf) -> Bundle {
    let (sender, receiver) = watch::channel(None);
    tokio::spawn(async move {
        let take = |content: io::Result<String>| {
            let text = content.ok().filter(|text| text.contains("BEGIN CERTIFICATE")).ok_or(())?;
            sender.send_if_modified(|before: &mut Option<Arc<str>>| {
                let changed = before.as_deref() != Some(text.as_str());
                if changed {
                    *before = Some(text.into());
                }
                changed
            });
            Ok(())
        };
        let failed = |(): &()| {
            let path = path.display();
            tracing::error!(%path, "failed to read a certificate from the CA bundle; keeping the last one");
        };
        tokio::select! {
            () = sender.closed() => {}
            () = poll_file::poll(&path, take, failed) => {}
        }
    });
    receiver
}
