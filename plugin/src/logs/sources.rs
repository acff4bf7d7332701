//! Whose logs: a component's pods, or those of our own programs (pure).

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use opensdn_crds::component::Component;
use opensdn_deploy::names;
use serde_json::Value;

use crate::snapshot::places::Places;
use crate::snapshot::{label, list, name, namespace, text};

/// So many containers are read at once: each is a connection to the API server, and has lines in memory.
pub(crate) const MOST: usize = 100;
/// The label with the word for a component's kind.
pub(super) const TYPE: &str = "tf_manager";

/// Whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Of all components.
    All,
    /// Of one kind.
    Component(&'static Component),
    /// The operator's.
    Operator,
    /// The webhook's.
    Webhook,
}

/// What of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub(crate) node: Option<String>,
    pub(crate) container: Option<String>,
    pub(crate) since: Option<Duration>,
    pub(crate) tail: Option<u32>,
    pub(crate) follow: bool,
}

/// A container's log, or a file on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) node: String,
    /// The pod, or the folder of a file.
    pub(crate) pod: String,
    /// The container, or the name of a file.
    pub(crate) container: String,
    /// At the API server.
    pub(crate) path: String,
    pub(crate) times: Times,
}

/// Where the times of lines come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    /// The API server gives one with each line, and no more lines than it was asked for.
    Given,
    /// They are what a daemon has written, in the zone of its node; the file is read from its end.
    Written {
        /// By how much the zone is behind UTC.
        behind_utc: SignedDuration,
        /// The time of lines in front of which none is known.
        undated: Timestamp,
        /// Since when lines count.
        since: Option<Timestamp>,
        /// How many of the last ones do.
        tail: Option<u32>,
    },
}

impl Subject {
    /// The list of its pods.
    pub(crate) fn pods(&self, within: Option<&str>, places: &Places) -> String {
        let of = |namespace: Option<&str>, selector: &str| {
            let namespace = namespace.map(|namespace| format!("namespaces/{namespace}/"));
            format!("/api/v1/{}pods?labelSelector={selector}", namespace.unwrap_or_default())
        };
        let named = |name: &str| format!("app.kubernetes.io%2Fname%3D{name}");
        match self {
            Self::All | Self::Component(_) => of(within, TYPE),
            Self::Operator => of(Some(&places.operator), &named(names::operator::NAME)),
            Self::Webhook => of(Some(&places.webhook), &named(names::webhook::NAME)),
        }
    }

    /// Whether its pods are known by a label alone.
    pub(crate) const fn is_of_components(&self) -> bool {
        matches!(self, Self::All | Self::Component(_))
    }

    pub(super) fn has(&self, pod: &Value) -> bool {
        match self {
            Self::Component(facts) => {
                let word = label(pod, TYPE).unwrap_or_default();
                [facts.kind, facts.key].iter().any(|name| name.eq_ignore_ascii_case(word))
            }
            Self::All | Self::Operator | Self::Webhook => true,
        }
    }
}

/// The logs of the pods' containers that have started, by node.
pub(crate) fn sources(pods: &[Value], subject: Subject, part: &Part) -> Vec<Source> {
    let mut found = Vec::new();
    for pod in pods.iter().filter(|pod| subject.has(pod)) {
        let node = text(pod, "/spec/nodeName");
        if part.node.as_deref().is_some_and(|wanted| wanted != node) {
            continue;
        }
        let init = list(pod, "/status/initContainerStatuses");
        for status in init.chain(list(pod, "/status/containerStatuses")) {
            let container = text(status, "/name");
            let is_wanted = part.container.as_deref().is_none_or(|wanted| wanted == container);
            // One that ended before has nothing more to say to who follows.
            let is_over = part.follow && status.pointer("/state/terminated").is_some();
            if !is_wanted || is_over || status.pointer("/state/waiting").is_some() {
                continue;
            }
            found.push(Source {
                node: node.to_owned(),
                pod: name(pod).to_owned(),
                container: container.to_owned(),
                path: path(pod, container, part),
                times: Times::Given,
            });
        }
    }
    found.sort_by(|one, other| (&one.node, &one.pod).cmp(&(&other.node, &other.pod)));
    found
}

fn path(pod: &Value, container: &str, part: &Part) -> String {
    let mut path = format!(
        "/api/v1/namespaces/{}/pods/{}/log?container={container}&timestamps=true",
        namespace(pod),
        name(pod)
    );
    if let Some(since) = part.since {
        path.push_str(&format!("&sinceSeconds={}", since.as_secs().max(1)));
    }
    if let Some(tail) = part.tail {
        path.push_str(&format!("&tailLines={tail}"));
    }
    if part.follow {
        path.push_str("&follow=true");
    }
    path
}

#[cfg(test)]
mod tests {
    use opensdn_crds::component::COMPONENTS;
    use serde_json::json;

    use super::*;

    fn pod(name: &str, word: &str, node: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "tf", "labels": {(TYPE): word}}, "spec": {"nodeName": node},
            "status": {"initContainerStatuses": [{"name": "init", "state": {"terminated": {}}}],
                "containerStatuses": [{"name": "agent", "state": {"running": {}}}, {"name": "later", "state": {"waiting": {}}}]}})
    }

    #[test]
    fn logs_are_those_of_started_containers_of_the_component_on_the_node() {
        let pods =
            [pod("v2", "vrouter", "w2"), pod("v1", "vrouter", "w1"), pod("r", "redis", "w1")];
        let facts = COMPONENTS.iter().find(|facts| facts.kind == "Vrouter").unwrap();
        let found = |subject, part: &Part| -> Vec<String> {
            let found = sources(&pods, subject, part).into_iter();
            found.map(|one| format!("{} {} {}", one.node, one.pod, one.container)).collect()
        };
        let all = ["w1 v1 init", "w1 v1 agent", "w2 v2 init", "w2 v2 agent"];
        assert_eq!(found(Subject::Component(facts), &Part::default()), all);
        let part = Part { node: Some("w1".to_owned()), follow: true, ..Part::default() };
        assert_eq!(found(Subject::Component(facts), &part), ["w1 v1 agent"]);
        assert_eq!(found(Subject::All, &part), ["w1 r agent", "w1 v1 agent"]);
    }

    #[test]
    fn what_is_wanted_is_asked_of_the_api_server() {
        let part = Part {
            since: Some(Duration::from_secs(3600)),
            tail: Some(5),
            follow: true,
            ..Part::default()
        };
        let path = path(&pod("p", "redis", "w"), "c", &part);
        assert_eq!(
            path,
            "/api/v1/namespaces/tf/pods/p/log?container=c&timestamps=true&sinceSeconds=3600&tailLines=5&follow=true"
        );
        assert_eq!(
            Subject::All.pods(Some("tf"), &Places::default()),
            "/api/v1/namespaces/tf/pods?labelSelector=tf_manager"
        );
        let places = Places { operator: "mine".to_owned(), ..Places::default() };
        assert_eq!(
            Subject::Operator.pods(None, &places),
            "/api/v1/namespaces/mine/pods?labelSelector=app.kubernetes.io%2Fname%3Dopensdn-operator"
        );
    }
}
