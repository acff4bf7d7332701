//! What is collected (pure): the lists, with their files, and the logs of the pods that were found.

use std::collections::BTreeSet;

use opensdn_crds::component::COMPONENTS;
use serde_json::Value;

use crate::logs::files::LogFile;
use crate::snapshot::places::Places;
use crate::snapshot::{list, name, namespace, number, text};

/// The most of one log, in bytes.
pub(crate) const MOST_LOG: usize = 10 << 20;

/// A question, and the file of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// The file.
    pub(crate) file: String,
    /// The path at the API server.
    pub(crate) path: String,
}

fn task(file: impl Into<String>, path: impl Into<String>) -> Task {
    Task { file: file.into(), path: path.into() }
}

/// The lists, of the namespaces in which something of OpenSDN is.
pub(crate) fn lists(namespaces: &BTreeSet<String>) -> Vec<Task> {
    const TF: &str = "/apis/tf.tungsten.io/v1alpha1";
    const OPENSDN: &str = "/apis/opensdn.io/v1alpha1";
    let mut tasks = vec![
        task("cluster/nodes.json", "/api/v1/nodes"),
        task("cluster/namespaces.json", "/api/v1/namespaces"),
        task("opensdn/managers.json", format!("{TF}/managers")),
    ];
    tasks.extend(COMPONENTS.iter().map(|facts| {
        task(format!("opensdn/{}.json", facts.plural), format!("{TF}/{}", facts.plural))
    }));
    let ours = [
        "admissionpolicies",
        "linklocalservices",
        "upgrades",
        "nestedclusters",
        "uniqueclaims",
        "vrouterprofiles",
    ];
    tasks.extend(
        ours.map(|plural| task(format!("opensdn/{plural}.json"), format!("{OPENSDN}/{plural}"))),
    );
    let webhooks = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
    tasks.extend(webhooks.map(|plural| {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        task(format!("cluster/{plural}.json"), path)
    }));
    let kinds = [
        ("/api/v1", "pods"),
        ("/api/v1", "services"),
        ("/api/v1", "configmaps"),
        ("/api/v1", "secrets"),
        ("/api/v1", "serviceaccounts"),
        ("/apis/apps/v1", "deployments"),
        ("/apis/apps/v1", "statefulsets"),
        ("/apis/apps/v1", "daemonsets"),
        ("/apis/policy/v1", "poddisruptionbudgets"),
        ("/apis/discovery.k8s.io/v1", "endpointslices"),
        ("/apis/coordination.k8s.io/v1", "leases"),
        ("/apis/events.k8s.io/v1", "events"),
    ];
    for place in namespaces {
        tasks.extend(kinds.iter().map(|(api, plural)| {
            task(
                format!("namespaces/{place}/{plural}.json"),
                format!("{api}/namespaces/{place}/{plural}"),
            )
        }));
    }
    tasks
}

/// The namespaces of components and of our own programs.
pub(crate) fn namespaces(managers: &[Value], places: &Places) -> BTreeSet<String> {
    let of_managers = managers.iter().map(|manager| namespace(manager).to_owned());
    let own = [&places.webhook, &places.operator].into_iter().chain(&places.watched);
    of_managers.chain(own.cloned()).collect()
}

/// The logs of pods, each container's, and that of the one before where it was started again.
pub(crate) fn logs(pods: &[Value], since_seconds: u64) -> Vec<Task> {
    let mut tasks = Vec::new();
    for pod in pods {
        let (place, pod_name) = (namespace(pod), name(pod));
        let init = list(pod, "/status/initContainerStatuses");
        for status in init.chain(list(pod, "/status/containerStatuses")) {
            let container = text(status, "/name");
            let is_started = status.pointer("/state/waiting").is_none();
            let was_started = number(status, "/restartCount").unwrap_or_default() > 0;
            let path = format!(
                "/api/v1/namespaces/{place}/pods/{pod_name}/log?container={container}&timestamps=true&sinceSeconds=\
                 {since_seconds}&limitBytes={MOST_LOG}"
            );
            let file = format!("logs/{place}/{pod_name}/{container}");
            if is_started {
                tasks.push(task(format!("{file}.log"), path.clone()));
            }
            if was_started {
                tasks.push(task(format!("{file}.previous.log"), format!("{path}&previous=true")));
            }
        }
    }
    tasks
}

/// The files of daemons on their nodes, each with a name of its own.
pub(crate) fn files(files: &[LogFile]) -> Vec<Task> {
    let mut taken = BTreeSet::new();
    let tasks = files.iter().zip(1..).map(|(file, number)| {
        let place = file.place();
        let place = if taken.insert(place.clone()) { place } else { format!("{place}.{number}") };
        task(format!("files/{place}"), file.path())
    });
    tasks.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_ours_and_every_container_that_ran_is_in_the_plan() {
        let lists = lists(&["tf".to_owned()].into());
        for definition in opensdn_crds::all() {
            let plural = definition.spec.names.plural;
            assert!(
                lists.iter().any(|task| task.path.ends_with(&format!("/{plural}"))),
                "{plural}"
            );
        }
        let pod = json!({"metadata": {"name": "p", "namespace": "tf"}, "status": {"containerStatuses": [
            {"name": "a", "restartCount": 2, "state": {"running": {}}}, {"name": "b", "restartCount": 0, "state": {"waiting": {}}}]}});
        let logs: Vec<String> = logs(&[pod], 60).into_iter().map(|task| task.file).collect();
        assert_eq!(logs, ["logs/tf/p/a.log", "logs/tf/p/a.previous.log"]);
    }
}
