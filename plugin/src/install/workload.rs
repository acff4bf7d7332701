//! How far a Deployment or a DaemonSet is, with its pods: what waits read each time.

use kube::api::{ApiResource, GroupVersionKind};

use super::object::ObjectKey;
use super::requests::Requests;
use super::waits::{self, State};
use crate::exit::Failure;
use crate::snapshot::match_labels;

/// Of one that was applied.
///
/// # Errors
/// The cluster does not answer, or not this user.
pub(crate) async fn workload(requests: &Requests, key: &ObjectKey) -> Result<State, Failure> {
    let Some(stored) = requests.get(key).await? else {
        return Ok(State::Hopeless("it was deleted meanwhile".to_owned()));
    };
    let labels = match_labels(&stored);
    let list = async |group: &str, kind: &str| {
        if labels.is_empty() {
            return Vec::new();
        }
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        // Who may not read them is not given a reason; the workload still says when it is ready.
        requests.list(&resource, key.namespace.as_deref(), &labels).await.unwrap_or_default()
    };
    if key.kind == "DaemonSet" {
        return Ok(waits::daemon_set(&stored, &list("", "Pod").await));
    }
    let (sets, pods) = (list("apps", "ReplicaSet").await, list("", "Pod").await);
    Ok(waits::deployment(&stored, &sets, &pods))
}
