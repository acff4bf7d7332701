//! Of a service with a pod on each node, which is replaced while an Upgrade looks at the first, or waits for nodes to be
//! drained: no DaemonSet has a partition.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::build::Valid;
use crate::canary::{Drain, Pace};
use crate::kind::{Kind, Workload};
use crate::object::{list, text};
use crate::pod::Pod;
use crate::reconcile::fetch::Fetched;

/// The pod that is to go, so that its DaemonSet makes one with the new images. None, if there is one, or one is away.
pub(super) fn to_be_replaced<'a>(fetched: &'a Fetched, valid: &Valid) -> Option<&'a Pod> {
    let Pace { canary, at_once, drain } = &valid.pace;
    let is_held = *canary || *drain != Drain::NotAwaited;
    if !is_held || *drain == Drain::OnHold || valid.workload != Workload::DaemonSet {
        return None;
    }
    let keeper = fetched.owned.get(&(Kind::DaemonSet, valid.instance.daemon_set()))?;
    let has_new = |pod: &Pod| {
        valid.images.iter().all(|(name, image)| {
            pod.images.get(*name).is_none_or(|running| *running == image.image)
        })
    };
    if !knows(keeper, valid) {
        return None;
    }
    let count = |field: &str| {
        let number = keeper.data.pointer(&format!("/status/{field}")).and_then(Value::as_u64);
        usize::try_from(number.unwrap_or_default()).unwrap_or_default()
    };
    let is_drained = |pod: &Pod| match drain {
        Drain::For(upgrade) => {
            let mut here = fetched.nodes.iter().filter(|node| node.name == pod.node);
            here.any(|node| node.drained_for.as_ref() == Some(upgrade))
        }
        Drain::NotAwaited | Drain::OnHold => true,
    };
    // Another change of the template is rolled out as it is without an Upgrade.
    let may_go = |pod: &&Pod| {
        is_outdated(keeper, pod).unwrap_or(!has_new(pod)) && (has_new(pod) || is_drained(pod))
    };
    // One that is not ready says nothing of the images, and on a node that is lost it would never end.
    let ready: Vec<&Pod> = fetched.pods.iter().filter(|pod| pod.is_ready).collect();
    let (wanted, available) = (count("desiredNumberScheduled"), count("numberAvailable"));
    if *canary {
        // Also where admission has given it other images than its template: else that pod would go again and again.
        let is_there = count("updatedNumberScheduled") > 0 || fetched.pods.iter().any(has_new);
        // A DaemonSet replaces at once all that have not been ready for a while, and the others follow this one.
        if is_there || fetched.pods.len() != wanted || ready.len() != available {
            return None;
        }
    } else {
        // It serves nothing, and its template may be what keeps it.
        let is_down = |pod: &&Pod| !pod.is_ready && !pod.is_going && may_go(pod);
        if let Some(pod) = fetched.pods.iter().find(is_down) {
            return Some(pod);
        }
        let away = wanted.saturating_sub(available.min(ready.len()));
        if away >= usize::try_from(*at_once).unwrap_or(1) {
            return None;
        }
    }
    // What else is on a node of the control plane loses its network for a moment, too.
    let is_controller = |pod: &Pod| {
        fetched.nodes.iter().any(|node| node.name == pod.node && node.is_of_control_plane())
    };
    ready.into_iter().filter(may_go).min_by_key(|pod| (is_controller(pod), pod.node.clone()))
}

/// Whether it is of an earlier template, by the number that the API server gives to each and the controller to its pods. Not
/// by images: admission may give a pod others.
fn is_outdated(keeper: &DynamicObject, pod: &Pod) -> Option<bool> {
    let last = keeper.annotations().get("deprecated.daemonset.template.generation")?;
    Some(pod.generation.as_ref()? != last)
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
