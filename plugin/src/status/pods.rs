//! How a pod is, in the words of contrail-status.

use serde_json::Value;

use super::report::{ContainerStatus, PodStatus, Word};
use super::surroundings::Nodes;
use crate::snapshot::{condition, list, name, number, text};

/// Why a pod has failed that another has replaced: nothing is wrong with the component.
const SUPERSEDED: [&str; 12] = [
    "TaintToleration",
    "NodeAffinity",
    "NodeLost",
    "Evicted",
    "Shutdown",
    "NodeShutdown",
    "Terminated",
    "Preempting",
    "UnexpectedAdmissionError",
    "OutOfcpu",
    "OutOfmemory",
    "OutOfpods",
];
/// What a container waits for in the ordinary course of things.
const USUAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// A container that ended: another component may be why.
const CRASHED: [&str; 2] = ["CrashLoopBackOff", "Completed"];

/// How the pod is; nothing of one that counts no more.
pub(super) fn status(pod: &Value, nodes: &Nodes) -> Option<PodStatus> {
    let (phase, reason) = (text(pod, "/status/phase"), text(pod, "/status/reason"));
    if phase == "Succeeded" || (phase == "Failed" && SUPERSEDED.contains(&reason)) {
        return None;
    }
    let node = text(pod, "/spec/nodeName");
    let containers = containers(pod);
    let (state, message, is_own_trouble) = state(pod, nodes.is_lost(node), &containers);
    let since = condition(pod, "Ready").map(|one| text(one, "/lastTransitionTime").to_owned());
    Some(PodStatus {
        name: name(pod).to_owned(),
        node: node.to_owned(),
        state,
        message,
        since: since.filter(|since| !since.is_empty()),
        is_own_trouble,
        daemon: None,
        containers: containers.into_iter().map(|(container, _)| container).collect(),
    })
}

/// The word, why, and whether the trouble is its own.
fn state(
    pod: &Value,
    is_node_lost: bool,
    containers: &[(ContainerStatus, bool)],
) -> (Word, String, bool) {
    let node = text(pod, "/spec/nodeName");
    let ready = condition(pod, "Ready").map(|one| text(one, "/status")).unwrap_or_default();
    let scheduled = condition(pod, "PodScheduled");
    if is_node_lost || ready == "Unknown" {
        return (Word::Timeout, format!("node {node} does not answer"), false);
    }
    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        return (Word::Initializing, "is being replaced".to_owned(), false);
    }
    if ready == "True" {
        return (Word::Active, String::new(), false);
    }
    if let Some(unscheduled) = scheduled.filter(|one| text(one, "/status") == "False") {
        let message = format!("not scheduled: {}", text(unscheduled, "/message"));
        return (Word::Inactive, message, true);
    }
    if text(pod, "/status/phase") == "Failed" {
        let why = [text(pod, "/status/reason"), text(pod, "/status/message")].join(" ");
        return (Word::Inactive, why.trim().to_owned(), true);
    }
    let bad = containers.iter().filter(|(one, _)| one.state == Word::Inactive);
    if let Some((one, is_own)) = bad.min_by_key(|(_, is_own)| !is_own) {
        return (Word::Inactive, format!("container {}: {}", one.name, one.message), *is_own);
    }
    let waits = containers.iter().find(|(one, _)| one.state == Word::Initializing);
    let message = waits.map(|(one, _)| format!("container {}: {}", one.name, one.message));
    (Word::Initializing, message.unwrap_or_else(|| "not ready".to_owned()), false)
}

/// The containers, each with whether its trouble is its own: another component cannot be why an image is missing.
fn containers(pod: &Value) -> Vec<(ContainerStatus, bool)> {
    let init = list(pod, "/status/initContainerStatuses").filter(|one| {
        // One that is done says nothing about now.
        number(one, "/state/terminated/exitCode") != Some(0)
    });
    init.chain(list(pod, "/status/containerStatuses")).map(container).collect()
}

fn container(status: &Value) -> (ContainerStatus, bool) {
    let reason = text(status, "/state/waiting/reason");
    let is_running = status.pointer("/state/running").is_some();
    let is_ready = status.pointer("/ready").and_then(Value::as_bool).unwrap_or_default();
    let ended = status.pointer("/state/terminated").or(status.pointer("/lastState/terminated"));
    let last = ended.map(|ended| {
        let code = number(ended, "/exitCode").unwrap_or_default();
        format!("ended with {code} {}", text(ended, "/reason")).trim_end().to_owned()
    });
    let last = last.unwrap_or_default();
    let (state, message, is_own) = match reason {
        _ if is_running && is_ready => (Word::Active, String::new(), false),
        _ if is_running => (Word::Initializing, "running, not ready".to_owned(), false),
        "" if status.pointer("/state/terminated").is_some() => (Word::Inactive, last, false),
        "" => (Word::Initializing, "starts".to_owned(), false),
        reason if USUAL.contains(&reason) => (Word::Initializing, reason.to_owned(), false),
        reason => {
            let is_own = !CRASHED.contains(&reason);
            let more = if is_own { text(status, "/state/waiting/message") } else { last.as_str() };
            (Word::Inactive, format!("{reason} {more}").trim_end().to_owned(), is_own)
        }
    };
    let restarts = number(status, "/restartCount").unwrap_or_default();
    let name = text(status, "/name").to_owned();
    (ContainerStatus { name, state, restarts, message }, is_own)
}
