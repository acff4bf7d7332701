//! Of a service that does not count its members, which of its pods is replaced next. Its StatefulSet would begin with the last
//! one, whether the others are well or not.

use kube::api::DynamicObject;

use crate::build::Valid;
use crate::kind::Workload;
use crate::object::number;
use crate::pod::Pod;
use crate::reconcile::fetch::Fetched;

/// The revision of the last template of a StatefulSet, once its controller has seen that.
pub(super) fn last_revision(set: &DynamicObject) -> Option<&str> {
    let seen = set.data.pointer("/status/observedGeneration")?.as_i64();
    // Before, what it says is of an earlier template.
    let revision = set.data.pointer("/status/updateRevision")?.as_str()?;
    (seen == set.metadata.generation).then_some(revision)
}

/// The pod that is to go, so that its StatefulSet makes one of the last template.
pub(super) fn to_be_updated<'a>(fetched: &'a Fetched, valid: &Valid) -> Option<&'a Pod> {
    if valid.workload != Workload::StatefulSet || valid.members.is_some() {
        return None;
    }
    let set = fetched.owned.get(&valid.keeper())?;
    let number = |pointer: &str| number(&set.data, pointer);
    next(&Rollout {
        pods: &fetched.pods,
        wanted: number("/spec/replicas")?,
        last: last_revision(set)?,
        updated: number("/status/updatedReplicas").unwrap_or_default(),
        available: number("/status/availableReplicas").unwrap_or_default(),
        canary: valid.pace.canary,
        on_hold: valid.pace.on_hold,
        lost: fetched.nodes.iter().filter(|node| node.is_lost).map(|node| &*node.name).collect(),
    })
}

/// What is looked at.
struct Rollout<'a> {
    pods: &'a [Pod],
    wanted: i64,
    /// The revision of the last template.
    last: &'a str,
    /// How many are of it, as the StatefulSet counts.
    updated: i64,
    /// How many have been ready for `spec.minReadySeconds`, as it counts.
    available: i64,
    /// Whether an Upgrade looks at one.
    canary: bool,
    /// Whether one has stopped.
    on_hold: bool,
    /// The nodes whose kubelet does not answer.
    lost: Vec<&'a str>,
}

/// One that cannot start, before all others: none is missed for it, and with its template it may never. Then one that is
/// not ready, and then one that is, while all are.
fn next<'a>(now: &Rollout<'a>) -> Option<&'a Pod> {
    let is_current = |pod: &&Pod| pod.revision.as_deref() == Some(now.last);
    let mut outdated: Vec<&Pod> = now.pods.iter().filter(|pod| !is_current(pod)).collect();
    // From the last to the first, as a StatefulSet does.
    outdated.sort_by_key(|pod| std::cmp::Reverse(ordinal(pod)));
    let is_stuck = |pod: &&&Pod| !pod.is_ready && !pod.is_going && pod.trouble.is_some();
    if let Some(pod) = outdated.iter().find(is_stuck) {
        return Some(pod);
    }
    let is_whole = count(now.pods.len()) == now.wanted && now.pods.iter().all(|pod| !pod.is_going);
    if !is_whole {
        return None;
    }
    let current: Vec<&Pod> = now.pods.iter().filter(is_current).collect();
    // What the new template makes of a pod is seen by the first that has it.
    let is_held = now.on_hold || (now.canary && !current.is_empty());
    if is_held || current.iter().any(|pod| !pod.is_ready) {
        return None;
    }
    // One on a node that is lost would never end, and be in the way of all others.
    let is_down = |pod: &&&Pod| !pod.is_ready && !now.lost.contains(&pod.node.as_str());
    if let Some(pod) = outdated.iter().find(is_down) {
        return Some(pod);
    }
    // Else it has not counted the pod that came last.
    let is_counted = now.updated == count(current.len());
    outdated.first().copied().filter(|_| is_counted && now.available == now.wanted)
}

fn ordinal(pod: &Pod) -> Option<u32> {
    pod.name.rsplit_once('-')?.1.parse().ok()
}

fn count(pods: usize) -> i64 {
    i64::try_from(pods).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;
    use serde_json::{from_value, json};

    use super::*;

    /// Pods by revision and state: `+` is ready, `-` is not, `!` cannot start, `x` is terminating, `?` is not ready on a node that
    /// is lost.
    fn pods(all: &[&str]) -> Vec<Pod> {
        let pod = |(ordinal, one): (usize, &&str)| {
            let (revision, state) = one.split_at(1);
            let waiting =
                json!({"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}});
            let going = (state == "x").then_some("2026-01-01T00:00:00Z");
            let object: DynamicObject = from_value(json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": format!("p-{ordinal}"), "deletionTimestamp": going,
                    "labels": {"controller-revision-hash": revision}},
                "spec": {"nodeName": if state == "?" { "lost" } else { "node" }},
                "status": {"conditions": [{"type": "Ready", "status": if state == "+" { "True" } else { "False" }}],
                    "containerStatuses": if state == "!" { json!([waiting]) } else { json!([]) }}}))
            .unwrap();
            Pod::of(&object)
        };
        all.iter().enumerate().map(pod).collect()
    }

    /// Where what the StatefulSet counts is so.
    fn of(all: &[&str]) -> Option<String> {
        let of = |end: &str| count(all.iter().filter(|one| one.ends_with(end)).count());
        let updated = count(all.iter().filter(|one| one.starts_with('2')).count());
        counted(all, updated, of("+"), false)
    }

    fn counted(all: &[&str], updated: i64, available: i64, canary: bool) -> Option<String> {
        let pods = pods(all);
        let lost = vec!["lost"];
        let on_hold = false;
        let now = Rollout {
            pods: &pods,
            wanted: 3,
            last: "2",
            updated,
            available,
            canary,
            on_hold,
            lost,
        };
        next(&now).map(|pod| pod.name.clone())
    }

    fn first(number: u8) -> Option<String> {
        Some(format!("p-{number}"))
    }

    #[test]
    fn pods_are_replaced_from_the_last_to_the_first_each_when_all_are_ready() {
        assert_eq!(of(&["1+", "1+", "1+"]), first(2));
        assert_eq!(of(&["1+", "1+", "2-"]), None, "it is not ready");
        assert_eq!(of(&["1+", "1+", "1x"]), None, "it goes");
        assert_eq!(of(&["1+", "1+"]), None, "it is not made again yet");
        assert_eq!(of(&["1+", "1+", "2+"]), first(1));
        assert_eq!(of(&["1+", "2+", "2+"]), first(0));
        assert_eq!(of(&["2+", "2+", "2+"]), None);
    }

    #[test]
    fn a_pod_that_is_ready_stays_while_another_is_not() {
        assert_eq!(of(&["2-", "1+", "1+"]), None);
        assert_eq!(of(&["1+", "2-", "1+"]), None);
    }

    #[test]
    fn one_that_is_not_ready_goes_first_and_one_at_a_time() {
        assert_eq!(of(&["1-", "1+", "1+"]), first(0));
        assert_eq!(of(&["1-", "1-", "1-"]), first(2), "they wait for what the template puts right");
        assert_eq!(of(&["1-", "1-", "2-"]), None, "which it has not");
        assert_eq!(of(&["1-", "1-", "2+"]), first(1));
    }

    #[test]
    fn one_on_a_node_that_is_lost_is_left_where_it_is() {
        assert_eq!(of(&["1?", "1+", "1+"]), None);
        assert_eq!(of(&["1?", "1-", "1+"]), first(1));
        assert_eq!(of(&["1?", "1!", "1+"]), first(1));
    }

    #[test]
    fn one_that_cannot_start_is_made_again_whatever_the_others_do() {
        assert_eq!(of(&["1!", "2-", "1+"]), first(0));
        assert_eq!(of(&["1!", "1x", "1+"]), first(0), "one that goes may never end");
        assert_eq!(of(&["2!", "1+", "1+"]), None, "of the last template it stays");
        assert_eq!(counted(&["1!", "2+", "1+"], 1, 2, true), first(0), "nor does an Upgrade");
    }

    #[test]
    fn while_an_upgrade_looks_at_one_the_others_stay() {
        assert_eq!(counted(&["1+", "1+", "1+"], 0, 3, true), first(2));
        assert_eq!(counted(&["1+", "1+", "2+"], 1, 3, true), None);
        assert_eq!(counted(&["1-", "1+", "2+"], 1, 2, true), None);
    }

    #[test]
    fn after_a_stop_of_an_upgrade_none_is_replaced_but_one_that_cannot_start() {
        let held = |all: &[&str]| {
            let pods = pods(all);
            let now = Rollout {
                pods: &pods,
                wanted: 3,
                last: "2",
                updated: 1,
                available: 3,
                canary: false,
                on_hold: true,
                lost: Vec::new(),
            };
            next(&now).map(|pod| pod.name.clone())
        };
        assert_eq!(held(&["1+", "1+", "2+"]), None);
        assert_eq!(held(&["1+", "1-", "2+"]), None);
        assert_eq!(held(&["1+", "1+", "1+"]), None);
        assert_eq!(held(&["1+", "1!", "2+"]), first(1));
    }

    #[test]
    fn the_next_waits_until_the_last_is_available() {
        assert_eq!(counted(&["1+", "1+", "2+"], 1, 2, false), None, "not for long enough");
        assert_eq!(counted(&["1+", "1+", "2+"], 0, 3, false), None, "that was before it came");
        assert_eq!(counted(&["1+", "1+", "2+"], 1, 3, false), first(1));
    }
}
