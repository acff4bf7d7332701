//! Of a service with a pod on each node, which is replaced while an Upgrade looks at the first, waits for nodes to be drained,
//! or has several replaced at a time: no DaemonSet has a partition, and none looks at zones.

use std::collections::BTreeSet;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::build::Valid;
use crate::canary::{Drain, Pace};
use crate::kind::{Kind, Workload};
use crate::node::Node;
use crate::object::{list, number, text};
use crate::pod::Pod;
use crate::reconcile::fetch::Fetched;

/// The pod that is to go, so that its DaemonSet makes one with the new images. None, if there is one, or one is away.
pub(super) fn to_be_replaced<'a>(fetched: &'a Fetched, valid: &Valid) -> Option<&'a Pod> {
    let Pace { canary, at_once, drain, on_hold } = &valid.pace;
    if !valid.pace.is_of_operator() || *on_hold || valid.workload != Workload::DaemonSet {
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
    let is_drained = |pod: &Pod| match drain {
        Drain::For(upgrade) => {
            let mut here = fetched.nodes.iter().filter(|node| node.name == pod.node);
            here.any(|node| node.drained_for.as_ref() == Some(upgrade))
        }
        Drain::NotAwaited => true,
    };
    // Another change of the template is rolled out as it is without an Upgrade.
    let may_go = |pod: &&Pod| {
        is_outdated(keeper, pod).unwrap_or(!has_new(pod)) && (has_new(pod) || is_drained(pod))
    };
    // One that is not ready says nothing of the images, and on a node that is lost it would never end.
    let ready: Vec<&Pod> =
        fetched.pods.iter().filter(|pod| pod.is_ready && !pod.is_going).collect();
    let counts = Counts {
        wanted: count(keeper, "desiredNumberScheduled"),
        pods: fetched.pods.len(),
        ready: ready.len(),
        available: count(keeper, "numberAvailable"),
    };
    let mut turn = Turn::Any;
    let is_full = counts.away() >= usize::try_from(at_once.unwrap_or(1)).unwrap_or(1);
    if *canary {
        // Also where admission has given it other images than its template: else that pod would go again and again.
        let is_there =
            count(keeper, "updatedNumberScheduled") > 0 || fetched.pods.iter().any(has_new);
        if is_there || is_full || !counts.are_settled() {
            return None;
        }
    } else {
        // It serves nothing, and its template may be what keeps it.
        let is_down = |pod: &&Pod| !pod.is_ready && !pod.is_going && may_go(pod);
        if let Some(pod) = fetched.pods.iter().find(is_down) {
            return Some(pod);
        }
        if is_full {
            return None;
        }
        turn = turn_of(&fetched.pods, &fetched.nodes, counts.away());
    }
    // What else is on a node of the control plane loses its network for a moment, too.
    let is_controller = |pod: &Pod| {
        fetched.nodes.iter().any(|node| node.name == pod.node && node.is_of_control_plane())
    };
    let zone = |pod: &Pod| zone_of(&fetched.nodes, pod);
    let is_its_turn = |pod: &&Pod| match &turn {
        Turn::Any => true,
        Turn::Of(zones) => zones.contains(&zone(pod)),
    };
    let candidates = ready.into_iter().filter(may_go).filter(is_its_turn);
    candidates.min_by_key(|pod| (is_controller(pod), zone(pod), pod.node.clone()))
}

/// A number of the status of a DaemonSet.
fn count(keeper: &DynamicObject, field: &str) -> usize {
    let number = keeper.data.pointer(&format!("/status/{field}")).and_then(Value::as_u64);
    usize::try_from(number.unwrap_or_default()).unwrap_or_default()
}

/// How many pods a DaemonSet is to have, has, and has ready; of these so many have been for a while.
#[derive(Clone, Copy, Debug)]
struct Counts {
    wanted: usize,
    pods: usize,
    ready: usize,
    available: usize,
}

impl Counts {
    /// How many nodes are without theirs.
    fn away(self) -> usize {
        self.wanted.saturating_sub(self.available.min(self.ready))
    }

    /// Whether none is on its way: a DaemonSet replaces at once all that have not been ready for a while, so that these would
    /// follow the first with new images unseen. One that is not ready on its node, such as a lost one, is not on its way.
    fn are_settled(self) -> bool {
        self.pods == self.wanted && self.ready == self.available
    }
}

/// Whose turn it is.
#[derive(Debug, PartialEq, Eq)]
enum Turn<'a> {
    /// That of any.
    Any,
    /// That of pods in these zones.
    Of(BTreeSet<Option<&'a str>>),
}

/// While one is away the others of its zone have their turn, and those of no other: the next zone follows when all are back.
/// What is on a node that is lost comes back with that, and is not waited for.
fn turn_of<'a>(pods: &[Pod], nodes: &'a [Node], away: usize) -> Turn<'a> {
    let all: BTreeSet<_> = pods.iter().map(|pod| zone_of(nodes, pod)).collect();
    let is_lost = |pod: &Pod| nodes.iter().any(|node| node.is_lost && node.name == pod.node);
    let (lost, moving): (Vec<&Pod>, Vec<&Pod>) =
        pods.iter().filter(|pod| !pod.is_ready || pod.is_going).partition(|pod| is_lost(pod));
    if all.len() < 2 || away <= lost.len() {
        return Turn::Any;
    }
    // One that is not made yet, or has not been ready for long enough, is of no zone: none is replaced until it is.
    Turn::Of(moving.into_iter().map(|pod| zone_of(nodes, pod)).collect())
}

fn zone_of<'a>(nodes: &'a [Node], pod: &Pod) -> Option<&'a str> {
    nodes.iter().find(|node| node.name == pod.node)?.zone()
}

/// Whether it is of an earlier template, by the number that the API server gives to each and the controller to its pods. Not
/// by images: admission may give a pod others.
fn is_outdated(keeper: &DynamicObject, pod: &Pod) -> Option<bool> {
    let last = keeper.annotations().get("deprecated.daemonset.template.generation")?;
    Some(pod.generation.as_ref()? != last)
}

/// Whether the controller of DaemonSets has seen the new images: else it would make the pod from the earlier ones again.
fn knows(keeper: &DynamicObject, valid: &Valid) -> bool {
    let seen = number(&keeper.data, "/status/observedGeneration");
    let init = list(&keeper.data, "/spec/template/spec/initContainers");
    let mut containers = list(&keeper.data, "/spec/template/spec/containers").chain(init);
    let is_new = |container: &Value| {
        let image = valid.images.get(text(container, "/name"));
        image.is_none_or(|image| image.image == text(container, "/image"))
    };
    seen.is_some() && seen == keeper.metadata.generation && containers.all(is_new)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn node((name, zone): &(&str, &str)) -> Node {
        let ready = if name.starts_with("lost") { "Unknown" } else { "True" };
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}});
        Node::of(&from_value(node).unwrap())
    }

    fn pod(node: &str, is_ready: bool) -> Pod {
        let ready = if is_ready { "True" } else { "False" };
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": node},
            "spec": {"nodeName": node}, "status": {"conditions": [{"type": "Ready", "status": ready}]}});
        Pod::of(&from_value(pod).unwrap())
    }

    /// Whose turn it is, with these pods not ready; of four nodes in two zones, one of which is lost.
    fn turn(not_ready: &[&str], away: usize) -> Option<Vec<String>> {
        let nodes = [("a1", "a"), ("a2", "a"), ("b1", "b"), ("lost", "b")];
        let pods: Vec<Pod> =
            nodes.iter().map(|(name, _)| pod(name, !not_ready.contains(name))).collect();
        let nodes: Vec<Node> = nodes.iter().map(node).collect();
        match turn_of(&pods, &nodes, away) {
            Turn::Any => None,
            Turn::Of(zones) => {
                Some(zones.into_iter().map(|zone| zone.unwrap_or_default().to_owned()).collect())
            }
        }
    }

    #[test]
    fn of_several_at_a_time_all_are_of_one_zone() {
        assert_eq!(turn(&[], 0), None, "the first may be of any");
        assert_eq!(turn(&["a1"], 1).unwrap(), ["a"]);
        // It is ready, and has not been for long enough; or it is not made yet.
        assert_eq!(turn(&[], 1).unwrap(), [""; 0]);
        assert_eq!(turn(&["lost"], 1), None, "what is lost holds up no zone");
        assert_eq!(turn(&["lost", "a2"], 2).unwrap(), ["a"]);
    }

    #[test]
    fn none_is_the_first_while_another_is_made_or_has_just_become_ready() {
        let all = Counts { wanted: 3, pods: 3, ready: 3, available: 3 };
        assert!(all.are_settled() && all.away() == 0);
        let not_made = Counts { pods: 2, ready: 2, available: 2, ..all };
        assert!(!not_made.are_settled() && not_made.away() == 1);
        let just_ready = Counts { available: 2, ..all };
        assert!(!just_ready.are_settled() && just_ready.away() == 1);
        let lost = Counts { ready: 2, available: 2, ..all };
        assert!(lost.are_settled() && lost.away() == 1, "it counts among those that may be away");
    }

    #[test]
    fn nodes_without_zones_have_no_turns() {
        let nodes: Vec<Node> = [("n1", ""), ("n2", "")].iter().map(node).collect();
        let pods = [pod("n1", false), pod("n2", true)];
        assert_eq!(turn_of(&pods, &nodes, 1), Turn::Any);
    }
}
