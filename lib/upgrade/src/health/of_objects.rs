//! The same by what the API server has: the object of a service, and its pods.

use std::collections::BTreeMap;

use opensdn_crds::status::{IntrospectStatus, PAUSED, READY, STOPPED};
use serde::Deserialize as _;
use serde_json::Value;

use super::{Pod, Service};
use crate::daemons::Daemons;
use crate::object::{condition, list, text, was_started};
use crate::time::parse;

impl Service {
    /// By the object of the service and its pods, which the caller has picked.
    #[must_use]
    pub fn of_objects<'a>(
        kind: &str,
        object: &Value,
        pods: impl IntoIterator<Item = &'a Value>,
    ) -> Self {
        let ready = condition(object, READY);
        let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
        let seen = object.pointer("/status/observedGeneration").and_then(Value::as_i64);
        // What is said of an earlier spec is not said of this one.
        let ready = ready.filter(|_| generation.is_some() && seen == generation);
        let unknown = match seen {
            Some(_) => "its object was changed, and nothing is known yet",
            None => "the operator has not looked at it yet",
        };
        let message = ready.map_or(unknown, |ready| text(ready, "/message"));
        // What a user leaves as it is, or has stopped, gets no new pods.
        let paused = condition(object, PAUSED).filter(|one| text(one, "/status") == "True");
        let stopped = ready.filter(|ready| text(ready, "/reason") == STOPPED);
        let left =
            paused.or(stopped).map(|one| format!("left as it is: {}", text(one, "/message")));
        let containers = list(object, "/spec/serviceConfiguration/containers");
        Self {
            id: format!("{kind}/{}", text(object, "/metadata/name")),
            is_ready: left.is_none() && ready.is_some_and(|ready| text(ready, "/status") == "True"),
            message: left.unwrap_or_else(|| message.to_owned()),
            images: containers.map(image).collect(),
            pods: pods.into_iter().map(Pod::of_object).collect(),
            daemons: daemons(object),
        }
    }
}

/// What cannot be read is not known.
fn daemons(object: &Value) -> Option<Daemons> {
    let said = object.pointer("/status/introspect")?;
    let said = IntrospectStatus::deserialize(said).ok()?;
    Some(Daemons { said, asked_at: None })
}

impl Pod {
    /// As the API server has it.
    #[must_use]
    pub fn of_object(pod: &Value) -> Self {
        let ready = condition(pod, READY).filter(|ready| text(ready, "/status") == "True");
        let ending = parse(text(pod, "/metadata/deletionTimestamp"));
        let grace = pod.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
        let grace = time::Duration::seconds(grace.unwrap_or_default());
        let all = list(pod, "/spec/initContainers").chain(list(pod, "/spec/containers"));
        let statuses = list(pod, "/status/containerStatuses");
        let restarts = statuses.clone().filter_map(|one| one.get("restartCount")?.as_i64());
        let has_run =
            |one: &&Value| ["/state", "/lastState"].iter().any(|state| was_started(one, state));
        let ran = statuses.filter(has_run).map(|one| text(one, "/name").to_owned()).collect();
        Self {
            name: text(pod, "/metadata/name").to_owned(),
            uid: text(pod, "/metadata/uid").to_owned(),
            node: Some(text(pod, "/spec/nodeName").to_owned()).filter(|node| !node.is_empty()),
            pull_secrets: list(pod, "/spec/imagePullSecrets")
                .map(|one| text(one, "/name").to_owned())
                .collect(),
            images: all.map(image).collect::<BTreeMap<_, _>>(),
            created: parse(text(pod, "/metadata/creationTimestamp")),
            // What the API server writes is when it has to have ended.
            asked_to_end: ending.and_then(|ending| ending.checked_sub(grace)),
            finalizers: list(pod, "/metadata/finalizers")
                .filter_map(|one| one.as_str().map(str::to_owned))
                .collect(),
            is_ready: ready.is_some() && pod.pointer("/metadata/deletionTimestamp").is_none(),
            ready_since: ready.and_then(|ready| parse(text(ready, "/lastTransitionTime"))),
            restarts: restarts.fold(0, i64::saturating_add),
            ran,
            trouble: trouble(pod),
        }
    }
}

/// Why a pod does not run: what the scheduler says, else what a container waits for.
#[must_use]
pub fn trouble(pod: &Value) -> Option<String> {
    let scheduled = condition(pod, "PodScheduled");
    if let Some(unscheduled) = scheduled.filter(|one| text(one, "/status") == "False") {
        return Some(text(unscheduled, "/message").to_owned());
    }
    if text(pod, "/status/phase") == "Failed" {
        // Evicted, or refused by its node.
        let (reason, message) = (text(pod, "/status/reason"), text(pod, "/status/message"));
        return Some(format!("Failed {reason} {message}").trim_end().to_owned());
    }
    let init = list(pod, "/status/initContainerStatuses");
    let mut all = init.chain(list(pod, "/status/containerStatuses"));
    all.find_map(|container| {
        let reason = text(container, "/state/waiting/reason");
        let is_usual = ["", "ContainerCreating", "PodInitializing"].contains(&reason);
        let (name, message) = (text(container, "/name"), text(container, "/state/waiting/message"));
        let last = text(container, "/lastState/terminated/message").trim_end();
        let last =
            if last.is_empty() { String::new() } else { format!("; its last words: {last}") };
        (!is_usual).then(|| {
            let why = format!("container {name}: {reason} {message}");
            format!("{}{last}", why.trim_end())
        })
    })
}

fn image(container: &Value) -> (String, String) {
    (text(container, "/name").to_owned(), text(container, "/image").to_owned())
}

#[cfg(test)]
mod tests {
    use opensdn_crds::upgrade::ImageChange;
    use serde_json::json;

    use super::*;
    use crate::health::Side;

    fn object(seen: i64) -> Value {
        let ready = json!({"type": "Ready", "status": "True", "message": "1 of 1 pods ready"});
        json!({"metadata": {"name": "a", "generation": 2},
            "spec": {"serviceConfiguration": {"containers": [{"name": "api", "image": "i:1"}]}},
            "status": {"observedGeneration": seen, "conditions": [ready]}})
    }

    #[test]
    fn one_that_a_user_leaves_as_it_is_is_not_done() {
        let mut paused = object(2);
        let conditions = paused["status"]["conditions"].as_array_mut().unwrap();
        conditions
            .push(json!({"type": "Paused", "status": "True", "message": "the annotation is set"}));
        let service = Service::of_objects("Config", &paused, []);
        assert_eq!(
            (service.is_ready, &*service.message),
            (false, "left as it is: the annotation is set")
        );
        let mut stopped = object(2);
        stopped["status"]["conditions"][0]["reason"] = json!("Stopped");
        assert!(!Service::of_objects("Config", &stopped, []).is_ready);

        let change = ImageChange {
            container: "api".to_owned(),
            from: "i:0".to_owned(),
            to: "i:1".to_owned(),
        };
        let pod = |image: &str| json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "api", "image": image}]}});
        let done = |image: &str| {
            Service::of_objects("Config", &object(2), [&pod(image)])
                .is_done(std::slice::from_ref(&change), Side::New)
        };
        assert!(done("i:1") && !done("i:0"), "whatever its object says");
    }

    #[test]
    fn what_is_said_of_an_earlier_spec_counts_for_nothing() {
        let service = Service::of_objects("Config", &object(2), []);
        assert_eq!((&*service.id, service.is_ready), ("Config/a", true));
        assert_eq!(service.images["api"], "i:1");
        assert!(!Service::of_objects("Config", &object(1), []).is_ready);
    }

    #[test]
    fn a_pod_has_its_images_and_what_is_the_matter_with_it() {
        let waiting = json!({"reason": "ImagePullBackOff", "message": "not found"});
        let pod = json!({"metadata": {"name": "a-0"},
            "spec": {"initContainers": [{"name": "init", "image": "i:1"}], "containers": [{"name": "api", "image": "i:2"}]},
            "status": {"conditions": [{"type": "Ready", "status": "False"}],
                "containerStatuses": [{"name": "api", "restartCount": 3, "state": {"waiting": waiting}}]}});
        let pod = Pod::of_object(&pod);
        assert_eq!((pod.images.len(), pod.restarts, pod.is_ready), (2, 3, false));
        assert_eq!(pod.trouble.as_deref(), Some("container api: ImagePullBackOff not found"));
    }

    #[test]
    fn a_container_whose_pod_ended_before_it_was_started_has_not_run() {
        let of = |reason: &str| {
            let state = json!({"terminated": {"reason": reason, "exitCode": 137}});
            Pod::of_object(
                &json!({"status": {"containerStatuses": [{"name": "api", "state": state}]}}),
            )
        };
        assert!(of("ContainerStatusUnknown").ran.is_empty(), "evicted while it was pulled");
        assert_eq!(of("Error").ran.len(), 1);
    }
}
