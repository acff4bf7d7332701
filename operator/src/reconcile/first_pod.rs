//! Of a service with a pod on each node, which is replaced first while an Upgrade looks at it: no DaemonSet has a partition.

use kube::api::DynamicObject;
use serde_json::Value;

use crate::build::Valid;
use crate::kind::{Kind, Workload};
use crate::object::{list, text};
use crate::pod::Pod;
use crate::reconcile::fetch::Fetched;

/// The pod that is to go, so that its DaemonSet makes one with the new images. None, if there is one, or one is away.
pub(super) fn to_be_replaced<'a>(fetched: &'a Fetched, valid: &Valid) -> Option<&'a Pod> {
    if !valid.canary || valid.workload != Workload::DaemonSet {
        return None;
    }
    let keeper = fetched.owned.get(&(Kind::DaemonSet, valid.instance.daemon_set()))?;
    let has_new = |pod: &Pod| {
        valid.images.iter().all(|(name, image)| {
            pod.images.get(*name).is_none_or(|running| *running == image.image)
        })
    };
    if !knows(keeper, valid) || fetched.pods.iter().any(has_new) {
        return None;
    }
    let count = |field: &str| {
        let number = keeper.data.pointer(&format!("/status/{field}")).and_then(Value::as_u64);
        usize::try_from(number.unwrap_or_default()).unwrap_or_default()
    };
    let pods = &fetched.pods;
    if pods.len() != count("desiredNumberScheduled") || pods.iter().any(|pod| pod.is_going) {
        return None;
    }
    // One that is not ready anyway is missed least.
    let broken = pods.iter().find(|pod| !pod.is_ready);
    // A DaemonSet replaces at once all that have not been ready for a while, and the others follow this one.
    let are_settled = count("numberAvailable") == pods.len();
    let first = pods.iter().min_by(|one, other| one.node.cmp(&other.node));
    broken.or_else(|| first.filter(|_| are_settled))
}

/// Whether the controller of DaemonSets has seen the new images: else it would make the pod from the earlier ones again.
fn knows(keeper: &DynamicObject, valid: &Valid) -> bool {
    let seen = keeper.data.pointer("/status/observedGeneration").and_then(Value::as_i64);
    let init = list(&keeper.data, "/spec/template/spec/initContainers");
    let mut containers = list(&keeper.data, "/spec/template/spec/containers").chain(init);
    let is_new = |container: &Value| {
        let image = valid.images.get(text(container, "/name"));
        image.is_none_or(|image| image.image == text(container, "/image"))
    };
    seen.is_some() && seen == keeper.metadata.generation && containers.all(is_new)
}
