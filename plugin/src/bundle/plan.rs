//! What is collected (pure): the lists, with their files, the logs of the pods that were found, the metrics of our own
//! programs, what kernels said, and how much it comes to.

use std::collections::BTreeSet;
use std::net::{Ipv6Addr, SocketAddr};

use opensdn_crds::component::COMPONENTS;
use opensdn_deploy::names;
use serde_json::Value;

use super::introspect::{Daemon, MOST_PAGE};
use crate::logs::files::{LogFile, MOST_BYTES};
use crate::snapshot::places::Places;
use crate::snapshot::{label, list, name, namespace, number, text};

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

/// The metrics of our own programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    /// Those to ask for.
    pub(crate) asked: Vec<Task>,
    /// The files of those at which the API server has no way in, with the command that has.
    pub(crate) at_loopback: Vec<(String, String)>,
}

impl Metrics {
    /// Of the webhook, of what writes its configurations, and of the operator.
    pub(crate) fn of(pods: &[Value]) -> Self {
        let ours = [names::webhook::NAME, names::configuration::NAME, names::operator::NAME];
        let mine = pods.iter().filter(|pod| {
            let is_ours = label(pod, names::NAME_LABEL).is_some_and(|name| ours.contains(&name));
            is_ours && text(pod, "/status/phase") == "Running"
        });
        let mut metrics = Self::default();
        for pod in mine {
            let (place, pod_name, at) = (namespace(pod), name(pod), admin(pod));
            let (file, port) = (format!("metrics/{place}/{pod_name}.txt"), at.port());
            if at.ip().is_loopback() {
                let why = format!(
                    "it has them at {at} alone: run kubectl port-forward -n {place} {pod_name} {port} and curl http://{at}/metrics"
                );
                metrics.at_loopback.push((file, why));
            } else {
                let path =
                    format!("/api/v1/namespaces/{place}/pods/{pod_name}:{port}/proxy/metrics");
                metrics.asked.push(task(file, path));
            }
        }
        metrics
    }
}

/// Where the program of a pod has its metrics: as it was started, else at the port of that name.
fn admin(pod: &Value) -> SocketAddr {
    let containers = || list(pod, "/spec/containers");
    let mut arguments = containers().flat_map(|one| list(one, "/args")).filter_map(Value::as_str);
    let started = arguments.find_map(|one| one.strip_prefix("--admin-listen="));
    let mut ports = containers().flat_map(|one| list(one, "/ports"));
    let named = ports.find(|port| text(port, "/name") == ADMIN);
    let port = named.and_then(|port| number(port, "/containerPort")?.try_into().ok());
    let all = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port.unwrap_or(ADMIN_PORT)));
    started.and_then(|said| said.parse().ok()).unwrap_or(all)
}

/// The port of our programs that has their metrics.
const ADMIN: &str = "admin";
const ADMIN_PORT: u16 = 8080;

/// What the kernel of a node said: the first of these files that its kubelet gives. Of the last one only lines of the kernel
/// count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelLog {
    /// The file in the archive.
    pub(crate) file: String,
    /// Where it may be.
    pub(crate) paths: [String; 3],
}

/// Those of the nodes.
pub(crate) fn kernel_logs<'n>(nodes: impl IntoIterator<Item = &'n str>) -> Vec<KernelLog> {
    let of = |node: &str| {
        let path = |file: &str| format!("/api/v1/nodes/{node}/proxy/logs/{file}");
        let file = format!("nodes/{node}/kernel.log");
        KernelLog { file, paths: ["dmesg", "kern.log", "messages"].map(path) }
    };
    nodes.into_iter().map(of).collect()
}

/// How much there is to ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    logs: usize,
    files: usize,
    pages: usize,
    kernels: usize,
    /// What has been read already, in bytes.
    read: usize,
}

impl Size {
    pub(crate) fn of(
        read: usize,
        logs: &[Task],
        daemons: &[Daemon],
        kernels: &[KernelLog],
    ) -> Self {
        let pages = daemons.iter().map(|daemon| daemon.pages.len()).sum();
        Self { logs: logs.len(), files: 0, pages, kernels: kernels.len(), read }
    }

    pub(crate) fn with_files(self, files: usize) -> Self {
        Self { files, ..self }
    }

    /// No more than so many bytes, before they are compressed.
    pub(crate) fn most(&self) -> u64 {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let logs = number(self.logs).saturating_mul(number(MOST_LOG));
        let files = number(self.files).saturating_mul(MOST_BYTES);
        let rest = number(self.pages).saturating_mul(MOST_PAGE);
        let kernels = number(self.kernels).saturating_mul(MOST_KERNEL);
        [files, rest, kernels, number(self.read)].into_iter().fold(logs, u64::saturating_add)
    }

    /// As people read it.
    pub(crate) fn text(&self) -> String {
        let parts = [
            (self.logs, "logs"),
            (self.files, "files of daemons"),
            (self.pages, "pages of introspect"),
            (self.kernels, "logs of kernels"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        let parts = if parts.is_empty() { "nothing more".to_owned() } else { parts.join(", ") };
        format!("{parts}: {} MiB at most, before it is compressed", self.most().div_ceil(1 << 20))
    }
}

/// The most of what a kernel said, in bytes.
pub(crate) const MOST_KERNEL: u64 = 1 << 20;

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
    fn metrics_are_those_of_our_programs_at_the_port_that_they_have() {
        let pod = |name: &str, of: &str, phase: &str, container: Value| {
            json!({"metadata": {"name": name, "namespace": "s", "labels": {"app.kubernetes.io/name": of}},
                "spec": {"containers": [container]}, "status": {"phase": phase}})
        };
        let port = json!([{"name": "https", "containerPort": 8443}, {"name": "admin", "containerPort": 9090}]);
        let pods = [
            pod("w", "opensdn-webhook", "Running", json!({"ports": port})),
            pod("c", "opensdn-webhook", "Running", json!({"args": ["--admin-listen=[::]:9"]})),
            pod("n", "opensdn-webhook", "Running", json!({})),
            pod(
                "o",
                "opensdn-operator",
                "Running",
                json!({"args": ["a", "--admin-listen=127.0.0.1:9643"]}),
            ),
            pod("p", "opensdn-operator", "Pending", json!({})),
            pod("x", "other", "Running", json!({})),
        ];
        let metrics = Metrics::of(&pods);
        let paths: Vec<String> = metrics.asked.into_iter().map(|task| task.path).collect();
        let of = |pod: &str| format!("/api/v1/namespaces/s/pods/{pod}/proxy/metrics");
        assert_eq!(paths, [of("w:9090"), of("c:9"), of("n:8080")]);
        let [(file, why)] = metrics.at_loopback.try_into().unwrap();
        assert_eq!(file, "metrics/s/o.txt");
        let command = "kubectl port-forward -n s o 9643";
        assert!(why.contains(command) && why.ends_with("http://127.0.0.1:9643/metrics"), "{why}");
    }

    #[test]
    fn how_much_it_is_at_most_is_said_before() {
        let logs = vec![task("a", "b"); 3];
        let size = Size::of(1, &logs, &[], &kernel_logs(["m1", "m2"])).with_files(2);
        let said = "3 logs, 2 files of daemons, 2 logs of kernels: 53 MiB at most, before it is compressed";
        assert_eq!(size.text(), said);
        let size = Size::of(0, &[], &[], &[]);
        assert_eq!(size.text(), "nothing more: 0 MiB at most, before it is compressed");
    }

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
