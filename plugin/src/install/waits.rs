//! What an installation waits for: whether a stored object says that it is ready, what it waits for, or that it never
//! will be. Pure.

use serde_json::Value;

/// How far something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It is ready.
    Ready,
    /// Not yet, and why.
    Waiting(String),
    /// It will not be without something else being done, and why.
    Hopeless(String),
}

/// So often a container has ended before it is said that it will not run.
const CRASHES: i64 = 3;

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn condition<'a>(object: &'a Value, of_type: &str) -> Option<&'a Value> {
    items(object, "/status/conditions").find(|one| text(one, "/type") == of_type)
}

fn is_current(object: &Value) -> bool {
    number(object, "/status/observedGeneration") >= number(object, "/metadata/generation")
}

/// Whether the API server serves the kind of a CRD.
pub(crate) fn definition(stored: &Value) -> State {
    if let Some(names) =
        condition(stored, "NamesAccepted").filter(|one| text(one, "/status") == "False")
    {
        return State::Hopeless(text(names, "/message").to_owned());
    }
    match condition(stored, "Established") {
        Some(condition) if text(condition, "/status") == "True" => State::Ready,
        _ => State::Waiting("the API server does not serve it yet".to_owned()),
    }
}

/// Whether all replicas of a Deployment run as it says. `sets` and `pods` are those with its labels.
pub(crate) fn deployment(stored: &Value, sets: &[Value], pods: &[Value]) -> State {
    if !is_current(stored) {
        return State::Waiting("its controller has not seen the change yet".to_owned());
    }
    let wanted = stored.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let [total, updated, available] = ["replicas", "updatedReplicas", "availableReplicas"]
        .map(|name| number(stored, &format!("/status/{name}")));
    if updated >= wanted && total <= updated && available >= wanted {
        return State::Ready;
    }
    if let Some(failure) =
        condition(stored, "ReplicaFailure").filter(|one| text(one, "/status") == "True")
    {
        return State::Hopeless(text(failure, "/message").to_owned());
    }
    let states: Vec<State> = newest(stored, sets, pods).filter_map(pod).collect();
    if let Some(hopeless) = hopeless(&states) {
        return hopeless.clone();
    }
    if let Some(late) = condition(stored, "Progressing")
        .filter(|one| text(one, "/reason") == "ProgressDeadlineExceeded")
    {
        return State::Hopeless(text(late, "/message").to_owned());
    }
    State::Waiting(format!("{available} of {wanted} available{}", first_reason(&states)))
}

fn hopeless(states: &[State]) -> Option<&State> {
    states.iter().find(|state| matches!(state, State::Hopeless(_)))
}

/// What the first pod waits for.
fn first_reason(states: &[State]) -> String {
    let why = states.iter().find_map(|state| match state {
        State::Waiting(why) => Some(format!(": {why}")),
        _ => None,
    });
    why.unwrap_or_default()
}

/// Whether the pods of a DaemonSet run as it says, on each node that is for it. `pods` are those with its labels.
pub(crate) fn daemon_set(stored: &Value, pods: &[Value]) -> State {
    if !is_current(stored) {
        return State::Waiting("its controller has not seen the change yet".to_owned());
    }
    let [wanted, updated, ready] =
        ["desiredNumberScheduled", "updatedNumberScheduled", "numberReady"]
            .map(|name| number(stored, &format!("/status/{name}")));
    if wanted == 0 {
        return State::Hopeless("no node is for it, by its labels and taints".to_owned());
    }
    if updated >= wanted && ready >= wanted {
        return State::Ready;
    }
    let uid = text(stored, "/metadata/uid");
    let states: Vec<State> = owned(uid, pods).filter_map(pod).collect();
    if let Some(hopeless) = hopeless(&states) {
        return hopeless.clone();
    }
    let lost = owned(uid, pods).find(|pod| !is_ready(pod));
    let lost = lost.map(|pod| format!(", not on {}", text(pod, "/spec/nodeName")));
    let (lost, why) = (lost.unwrap_or_default(), first_reason(&states));
    State::Waiting(format!(
        "ready on {ready} of {wanted} nodes, {updated} of them as it is now{lost}{why}"
    ))
}

fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|one| text(one, "/status") == "True")
}

/// The pods of the newest template: those before may be broken, and are on their way out.
fn newest<'a>(
    stored: &'a Value,
    sets: &'a [Value],
    pods: &'a [Value],
) -> impl Iterator<Item = &'a Value> {
    const REVISION: &str = "/metadata/annotations/deployment.kubernetes.io~1revision";
    let revision = text(stored, REVISION);
    let set = sets.iter().find(|set| !revision.is_empty() && text(set, REVISION) == revision);
    owned(set.map(|set| text(set, "/metadata/uid")).unwrap_or_default(), pods)
}

/// The pods that an object has and that are not on their way out.
fn owned<'a>(uid: &'a str, pods: &'a [Value]) -> impl Iterator<Item = &'a Value> {
    pods.iter().filter(move |pod| {
        pod.pointer("/metadata/deletionTimestamp").is_none()
            && text(pod, "/status/phase") != "Failed"
            && items(pod, "/metadata/ownerReferences").any(|owner| text(owner, "/uid") == uid)
    })
}

/// Why a pod does not run, if it does not.
fn pod(pod: &Value) -> Option<State> {
    let name = text(pod, "/metadata/name");
    if let Some(scheduled) =
        condition(pod, "PodScheduled").filter(|one| text(one, "/reason") == "Unschedulable")
    {
        return Some(State::Hopeless(format!(
            "pod {name} is Unschedulable: {}",
            text(scheduled, "/message")
        )));
    }
    let statuses =
        ["initContainerStatuses", "containerStatuses"].map(|kind| format!("/status/{kind}"));
    let containers = statuses.iter().flat_map(|pointer| items(pod, pointer));
    containers
        .filter_map(|container| waiting(name, container))
        .max_by_key(|state| matches!(state, State::Hopeless(_)))
}

fn waiting(pod: &str, container: &Value) -> Option<State> {
    let reason = text(container, "/state/waiting/reason");
    let said = match text(container, "/state/waiting/message") {
        "" => String::new(),
        message => format!(": {message}"),
    };
    let image = text(container, "/image");
    match reason {
        "" => None,
        "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => Some(State::Hopeless(
            format!("pod {pod} does not get its image {image}: {reason}{said}"),
        )),
        "CrashLoopBackOff" if number(container, "/restartCount") >= CRASHES => {
            let ended = number(container, "/lastState/terminated/exitCode");
            let times = number(container, "/restartCount");
            Some(State::Hopeless(format!(
                "pod {pod} ended {times} times, the last time with code {ended}{said}"
            )))
        }
        _ => Some(State::Waiting(format!("pod {pod}: {reason}{said}"))),
    }
}

/// Whether an AdmissionPolicy is in force in every replica.
pub(crate) fn policy(stored: &Value) -> State {
    let ready = condition(stored, "Ready");
    let is_seen = ready.is_some_and(|one| {
        let seen =
            number(one, "/observedGeneration").max(number(stored, "/status/observedGeneration"));
        seen == 0 || seen >= number(stored, "/metadata/generation")
    });
    match ready.filter(|_| is_seen) {
        Some(condition) if text(condition, "/status") == "True" => State::Ready,
        Some(condition) => State::Waiting(text(condition, "/message").to_owned()),
        None => State::Waiting("no replica of the webhook has loaded it yet".to_owned()),
    }
}

/// Why an object that is deleted is still there.
pub(crate) fn remains(stored: &Value) -> String {
    let finalizers = stored.pointer("/metadata/finalizers").and_then(Value::as_array);
    let finalizers: Vec<&str> =
        finalizers.into_iter().flatten().filter_map(Value::as_str).collect();
    let is_namespace = stored.get("kind").and_then(Value::as_str) == Some("Namespace");
    let conditions =
        stored.pointer("/status/conditions").filter(|_| is_namespace).and_then(Value::as_array);
    let said: Vec<&str> = conditions
        .into_iter()
        .flatten()
        .filter(|one| one.get("status").and_then(Value::as_str) == Some("True"))
        .filter_map(|one| one.get("message").and_then(Value::as_str))
        .collect();
    match (finalizers.is_empty(), said.is_empty()) {
        (_, false) => format!("it is being deleted: {}", said.join("; ")),
        (false, true) => format!("it is being deleted, and waits for {}", finalizers.join(", ")),
        (true, true) => "it is being deleted".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployed(available: i64) -> Value {
        json!({
            "metadata": {"generation": 2, "annotations": {"deployment.kubernetes.io/revision": "2"}},
            "spec": {"replicas": 3},
            "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": available},
        })
    }

    fn sets() -> [Value; 2] {
        ["1", "2"].map(|revision| {
            json!({"metadata": {"uid": format!("set-{revision}"), "annotations": {"deployment.kubernetes.io/revision": revision}}})
        })
    }

    fn a_pod(set: &str, status: &Value) -> Value {
        json!({"metadata": {"name": "p", "ownerReferences": [{"uid": set}]}, "status": status})
    }

    fn container(state: &Value, restarts: u32) -> Value {
        json!({"containerStatuses": [{"image": "i:1", "restartCount": restarts, "state": {"waiting": state}}]})
    }

    #[test]
    fn a_deployment_is_ready_when_all_replicas_of_its_newest_template_are() {
        assert_eq!(deployment(&deployed(3), &[], &[]), State::Ready);
        assert_eq!(
            deployment(&deployed(2), &[], &[]),
            State::Waiting("2 of 3 available".to_owned())
        );
        let mut old = deployed(3);
        old["metadata"]["generation"] = json!(3);
        assert!(matches!(deployment(&old, &[], &[]), State::Waiting(_)));
        let mut rolling = deployed(3);
        rolling["status"]["replicas"] = json!(4);
        assert!(matches!(deployment(&rolling, &[], &[]), State::Waiting(_)));
    }

    #[test]
    fn a_daemon_set_is_ready_when_each_node_has_a_pod_of_its_newest_template() {
        let set = |wanted: i64, updated: i64, ready: i64| {
            json!({"metadata": {"generation": 2, "uid": "set-2"}, "status": {"observedGeneration": 2,
                "desiredNumberScheduled": wanted, "updatedNumberScheduled": updated, "numberReady": ready}})
        };
        assert_eq!(daemon_set(&set(3, 3, 3), &[]), State::Ready);
        for (updated, ready) in [(2, 3), (3, 2)] {
            let state = daemon_set(&set(3, updated, ready), &[]);
            assert!(
                matches!(&state, State::Waiting(why) if why.starts_with(&format!("ready on {ready} of 3"))),
                "{state:?}"
            );
        }
        let mut old = set(3, 3, 3);
        old["metadata"]["generation"] = json!(3);
        assert!(matches!(daemon_set(&old, &[]), State::Waiting(_)));
        assert!(matches!(daemon_set(&set(0, 0, 0), &[]), State::Hopeless(_)));
        let mut pod = a_pod("set-2", &container(&json!({"reason": "ContainerCreating"}), 0));
        pod["spec"] = json!({"nodeName": "vm-7"});
        let state = daemon_set(&set(3, 3, 2), &[pod]);
        assert!(
            matches!(&state, State::Waiting(why) if why.contains("not on vm-7: pod p: ContainerCreating")),
            "{state:?}"
        );
        let refused = a_pod("set-2", &container(&json!({"reason": "ImagePullBackOff"}), 0));
        let foreign = a_pod("other", &container(&json!({"reason": "ImagePullBackOff"}), 0));
        assert!(matches!(daemon_set(&set(3, 3, 2), &[refused]), State::Hopeless(_)));
        assert!(matches!(daemon_set(&set(3, 3, 2), &[foreign]), State::Waiting(_)));
    }

    #[test]
    fn what_will_not_run_ends_the_wait_with_its_reason() {
        let unschedulable = json!({"conditions": [{"type": "PodScheduled", "reason": "Unschedulable", "message": "0/1 nodes"}]});
        for (status, part) in [
            (unschedulable, "0/1 nodes"),
            (
                container(&json!({"reason": "ImagePullBackOff", "message": "denied"}), 0),
                "image i:1: ImagePullBackOff: denied",
            ),
            (container(&json!({"reason": "CrashLoopBackOff"}), 3), "ended 3 times"),
        ] {
            let state = deployment(&deployed(0), &sets(), &[a_pod("set-2", &status)]);
            assert!(matches!(&state, State::Hopeless(why) if why.contains(part)), "{state:?}");
            // Pods of the template before are on their way out.
            let state = deployment(&deployed(0), &sets(), &[a_pod("set-1", &status)]);
            assert!(matches!(state, State::Waiting(_)), "{state:?}");
        }
    }

    #[test]
    fn what_may_still_become_right_is_waited_for_with_its_reason() {
        for (reason, restarts) in
            [("ErrImagePull", 0), ("CrashLoopBackOff", 2), ("ContainerCreating", 0)]
        {
            let status = container(&json!({"reason": reason}), restarts);
            let state = deployment(&deployed(0), &sets(), &[a_pod("set-2", &status)]);
            assert!(matches!(&state, State::Waiting(why) if why.contains(reason)), "{state:?}");
        }
    }

    #[test]
    fn policies_and_definitions_say_it_by_a_condition() {
        let with = |of_type: &str, status: &str| json!({"status": {"conditions": [{"type": of_type, "status": status, "message": "m"}]}});
        assert_eq!(policy(&with("Ready", "True")), State::Ready);
        assert_eq!(policy(&with("Ready", "False")), State::Waiting("m".to_owned()));
        assert_eq!(definition(&with("Established", "True")), State::Ready);
        assert_eq!(definition(&with("NamesAccepted", "False")), State::Hopeless("m".to_owned()));
        assert!(matches!(definition(&json!({})), State::Waiting(_)));
    }
}
