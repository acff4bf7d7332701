//! What a node that has not answered is waiting for, by its pod and the events of the namespace; pure.

use serde_json::Value;

use crate::snapshot::{list, name, text};

/// How far the pod of a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It runs: its log has the answer, or will.
    Runs {
        /// Its name.
        pod: String,
    },
    /// It may still come.
    Waits(String),
    /// It will not.
    Hopeless(String),
}

/// Reasons for which a container waits that do not go away by themselves within minutes.
const HOPELESS: [&str; 7] = [
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
];

/// How far the pod of the node is, if there is one.
pub(super) fn stage(pod: Option<&Value>, events: &[Value]) -> Stage {
    let Some(pod) = pod else { return without_pod(events) };
    let status = list(pod, "/status/containerStatuses").next();
    let waiting = status.and_then(|status| status.pointer("/state/waiting"));
    if status.is_some_and(|status| status.pointer("/state/running").is_some()) {
        return Stage::Runs { pod: name(pod).to_owned() };
    }
    if let Some(waiting) = waiting {
        let (reason, said) = (text(waiting, "/reason"), text(waiting, "/message"));
        // What it wrote before it ended says more than that it ended.
        let ended = status.map_or("", |status| text(status, "/lastState/terminated/message"));
        let said = if ended.is_empty() { said } else { ended };
        let said = if said.is_empty() { without_network(pod, events) } else { said };
        let text = sentence(reason, said);
        return if HOPELESS.contains(&reason) { Stage::Hopeless(text) } else { Stage::Waits(text) };
    }
    match text(pod, "/status/phase") {
        phase @ ("Failed" | "Succeeded") => {
            let why = text(pod, "/status/message");
            Stage::Hopeless(sentence(&format!("its pod ended: {phase}"), why))
        }
        _ if text(pod, "/spec/nodeName").is_empty() => {
            let conditions = list(pod, "/status/conditions");
            let mut scheduled = conditions.filter(|one| text(one, "/type") == "PodScheduled");
            let why = scheduled.next().map_or("", |one| text(one, "/message"));
            Stage::Waits(sentence("its pod is not scheduled", why))
        }
        _ => Stage::Waits(
            list(pod, "/status/containerStatuses")
                .next()
                .map_or("its kubelet has not taken the pod up", |_| "its container is starting")
                .to_owned(),
        ),
    }
}

/// Pods that are refused, by Pod Security, a quota, or SecurityContextConstraints, are shown by events alone.
fn without_pod(events: &[Value]) -> Stage {
    let mut refused = events.iter().filter(|event| text(event, "/reason") == "FailedCreate");
    let forbidden = refused.clone().find(|event| text(event, "/message").contains("forbidden"));
    match (forbidden, refused.next_back()) {
        // The account of a new namespace is there a moment later.
        (Some(event), _) if !text(event, "/message").contains("serviceaccount") => {
            Stage::Hopeless(sentence("its pod is refused", text(event, "/message")))
        }
        (_, Some(event)) => Stage::Waits(sentence("no pod yet", text(event, "/message"))),
        _ => Stage::Waits("no pod yet: the DaemonSet controller has made none".to_owned()),
    }
}

/// What a kubelet says of a pod that gets no network; it tries on.
fn without_network<'a>(pod: &Value, events: &'a [Value]) -> &'a str {
    let mut of_pod = events.iter().filter(|event| {
        let is_it = text(event, "/involvedObject/name") == name(pod);
        is_it && text(event, "/reason") == "FailedCreatePodSandBox"
    });
    of_pod.next_back().map_or("", |event| text(event, "/message"))
}

fn sentence(what: &str, said: &str) -> String {
    if said.trim().is_empty() { what.to_owned() } else { format!("{what}: {}", said.trim()) }
}

/// The node that a pod is for: it is set before it is scheduled.
pub(super) fn node_of(pod: &Value) -> &str {
    const AFFINITY: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
    match text(pod, "/spec/nodeName") {
        "" => text(pod, AFFINITY),
        node => node,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn waits(reason: &str, message: &str) -> Value {
        json!({"metadata": {"name": "p"}, "spec": {"nodeName": "w1"}, "status": {"phase": "Pending",
            "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}]}})
    }

    #[test]
    fn what_does_not_go_away_ends_the_waiting_and_says_why() {
        let pod = waits("ImagePullBackOff", "Back-off pulling image \"x\"");
        let expected = "ImagePullBackOff: Back-off pulling image \"x\"".to_owned();
        assert_eq!(stage(Some(&pod), &[]), Stage::Hopeless(expected));
        let pod = waits("ContainerCreating", "");
        assert_eq!(stage(Some(&pod), &[]), Stage::Waits("ContainerCreating".to_owned()));
        let mut pod = waits("CrashLoopBackOff", "back-off 10s");
        pod["status"]["containerStatuses"][0]["lastState"] =
            json!({"terminated": {"message": "error: unrecognized subcommand 'probe'"}});
        let Stage::Hopeless(why) = stage(Some(&pod), &[]) else { panic!("it crashes") };
        assert!(why.contains("unrecognized subcommand"), "{why}");
    }

    #[test]
    fn a_pod_that_gets_no_network_waits_with_what_its_kubelet_says() {
        let pod = waits("ContainerCreating", "");
        let said = "failed to setup network for sandbox: Connection refused";
        let event = json!({"reason": "FailedCreatePodSandBox", "message": said, "involvedObject": {"name": "p"}});
        let expected = Stage::Waits(format!("ContainerCreating: {said}"));
        assert_eq!(stage(Some(&pod), &[event]), expected);
    }

    #[test]
    fn a_refusal_is_shown_with_what_the_api_server_says() {
        let refused = |message: &str| json!({"reason": "FailedCreate", "message": message});
        let scc = refused(
            "pods \"p\" is forbidden: unable to validate against any security context constraint",
        );
        let Stage::Hopeless(why) = stage(None, &[scc]) else { panic!("it is refused") };
        assert!(why.contains("security context constraint"), "{why}");
        let account = refused("pods \"p\" is forbidden: error looking up serviceaccount default");
        assert!(matches!(stage(None, &[account]), Stage::Waits(_)));
        assert!(matches!(stage(None, &[]), Stage::Waits(_)));
    }

    #[test]
    fn a_pod_that_runs_is_read_and_one_that_is_not_scheduled_says_for_which_node() {
        let pod = json!({"metadata": {"name": "p"}, "status": {"containerStatuses": [{"state": {"running": {}}}]}});
        assert_eq!(stage(Some(&pod), &[]), Stage::Runs { pod: "p".to_owned() });
        let term = json!({"matchFields": [{"values": ["w2"]}]});
        let pod = json!({"spec": {"affinity": {"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}});
        assert_eq!(node_of(&pod), "w2");
    }
}
