//! The objects of a live cluster that a policy's lookups are about, read once. Nothing is ever
//! written. Deliberately not here: which cluster it is (`clients.rs`), and how it is asked
//! (`live.rs`).

use std::collections::BTreeSet;

use kube::Client;
use opensdn_policy_host::Index;
use serde_json::Value;

use crate::clients::unanswered;
use crate::exit::Failure;
use crate::live::Live;

/// All objects of the kinds that the indexes are about.
///
/// # Errors
/// The cluster does not answer, or not to this user.
pub(crate) async fn objects(client: Client, indexes: &[Index]) -> Result<Vec<Value>, Failure> {
    let kinds: BTreeSet<(&str, &str)> =
        indexes.iter().map(|index| (index.group.as_str(), index.kind.as_str())).collect();
    let live = Live::new(client);
    let mut objects = Vec::new();
    for (group, kind) in kinds {
        // A kind that the cluster does not serve has no objects: the webhook says so too.
        let Some(listed) = live.objects(group, kind, None).await? else { continue };
        objects.extend(listed.map_err(|error| unanswered(&format!("list {kind}"), &error))?);
    }
    Ok(objects)
}
