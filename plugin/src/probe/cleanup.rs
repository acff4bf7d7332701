//! Removes the namespaces of all earlier runs, whatever their age: one that is at work ends by it.

use kube::Client;
use tokio::time::Instant;

use super::objects::is_of_a_run;
use super::requests::Requests;
use super::run::{REMOVAL, remove_until};
use crate::snapshot::{Read, name};
use crate::ui::Ui;

/// What became of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Removed {
    /// The namespace.
    pub(crate) namespace: String,
    /// Why it is still there, if it is.
    pub(crate) left: Option<String>,
}

/// Removes them one after the other.
///
/// # Errors
/// Namespaces may not be listed.
pub(crate) async fn cleanup(client: &Client, ui: &mut Ui) -> Result<Vec<Removed>, String> {
    let requests = Requests::new(client);
    let namespaces = match requests.namespaces().await {
        Read::Known(namespaces) => namespaces,
        Read::Absent => Vec::new(),
        Read::Unknown(why) => return Err(why),
    };
    let end = Instant::now() + REMOVAL;
    let mut removed = Vec::new();
    for one in namespaces.iter().filter(|one| is_of_a_run(one)) {
        let namespace = name(one).to_owned();
        ui.progress(&format!("removing namespace {namespace}"));
        // All within the time that one has: each is asked for at least once.
        let left = remove_until(&requests, &namespace, end).await;
        removed.push(Removed { namespace, left });
    }
    Ok(removed)
}
