//! The objects of a run: its namespace, and the DaemonSets in it.

use std::time::Duration;

use opensdn_deploy::names::{MANAGED_BY_LABEL, NAME_LABEL};
use serde_json::{Value, json};

use super::{Asked, Network};
use crate::install::object::MANAGER;
use crate::snapshot::{label, name};

/// How the namespaces of all runs begin; the rest is by chance.
const PREFIX: &str = "opensdn-probe-";
/// By which they are found.
pub(super) const LABEL: &str = "opensdn.io/probe";
/// When a run began, in seconds since 1970.
const CREATED: &str = "opensdn.io/probe-created-at";
/// What is older belongs to a run that was killed: none waits as long.
pub(super) const TTL: Duration = Duration::from_secs(15 * 60);
/// The product's part that this is.
const NAME: &str = "opensdn-probe";
/// Its container.
pub(super) const CONTAINER: &str = "probe";

/// What of the node the pod sees, for reading alone. Each folder is there on every node: a runtime would make one that
/// is not, and nothing is to be made on nodes.
const FOLDERS: [(&str, &str); 5] =
    [("proc", "/proc"), ("sys", "/sys"), ("etc", "/etc"), ("usr", "/usr"), ("var-lib", "/var/lib")];

/// A name that no other run has.
pub(super) fn namespace_name() -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    let chance = std::hash::RandomState::new().build_hasher().finish();
    format!("{PREFIX}{:08x}", chance & 0xffff_ffff)
}

/// The namespace of a run that begins at this second.
pub(super) fn namespace(name: &str, now: i64) -> Value {
    const SECURITY: &str = "pod-security.kubernetes.io";
    // Each pod has the network and files of its node.
    let [enforce, audit, warn] =
        ["enforce", "audit", "warn"].map(|mode| format!("{SECURITY}/{mode}"));
    let labels = json!({
        LABEL: "true",
        CREATED: now.to_string(),
        NAME_LABEL: NAME,
        MANAGED_BY_LABEL: MANAGER,
        enforce: "privileged",
        audit: "privileged",
        warn: "privileged",
    });
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels,
        // OpenShift adds a default selector of nodes otherwise.
        "annotations": {"openshift.io/node-selector": ""}}})
}

/// Whether the namespace is of a run, at whatever time: nothing else has its labels and such a name.
pub(super) fn is_of_a_run(namespace: &Value) -> bool {
    label(namespace, MANAGED_BY_LABEL) == Some(MANAGER)
        && label(namespace, LABEL).is_some()
        && name(namespace).starts_with(PREFIX)
}

/// Whether the namespace is of a run that cannot be at work any more, by the clock of the API server or, where it says
/// none, our own.
pub(super) fn is_left_over(namespace: &Value, now: i64) -> bool {
    let created = label(namespace, CREATED).and_then(|created| created.parse::<i64>().ok());
    let is_old = created.is_some_and(|at| now - at > TTL.as_secs().cast_signed());
    // Labels alone are not enough: who may label a namespace must not have it deleted.
    is_of_a_run(namespace) && is_old
}

/// The DaemonSet: a pod on each of these nodes.
pub(super) fn daemon_set(namespace: &str, image: &str, asked: &Asked, nodes: &[String]) -> Value {
    let labels = json!({NAME_LABEL: asked.name});
    // One term a node, as a term takes one name only.
    let terms: Vec<Value> = nodes
        .iter()
        .map(|node| {
            let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
            json!({"matchFields": [field]})
        })
        .collect();
    let folders: &[(&str, &str)] = match asked.network {
        Network::Node => &FOLDERS,
        Network::NodeAlone | Network::Pods => &[],
    };
    // Names are looked for as any other pod does.
    let asks_names = asked.network == Network::Pods && !asked.wanted.names.is_empty();
    let volumes: Vec<Value> = folders
        .iter()
        .map(|(name, path)| json!({"name": name, "hostPath": {"path": path, "type": "Directory"}}))
        .collect();
    let node_affinity = json!({"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": terms}});
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": asked.name, "namespace": namespace,
            "labels": {NAME_LABEL: asked.name, MANAGED_BY_LABEL: MANAGER}},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "hostNetwork": asked.network != Network::Pods,
                    "dnsPolicy": if asks_names { "ClusterFirst" } else { "Default" },
                    "automountServiceAccountToken": false,
                    "enableServiceLinks": false,
                    "terminationGracePeriodSeconds": 1,
                    "tolerations": [{"operator": "Exists"}],
                    "affinity": {"nodeAffinity": node_affinity},
                    "containers": [container(image, asked, folders)],
                    "volumes": volumes,
                },
            },
        },
    })
}

fn container(image: &str, asked: &Asked, folders: &[(&str, &str)]) -> Value {
    let mounts: Vec<Value> = folders
        .iter()
        .map(|(name, path)| json!({"name": name, "mountPath": format!("/host{path}"), "readOnly": true}))
        .collect();
    let (addresses, security) = match asked.network {
        Network::Node => ("status.hostIPs", security()),
        Network::NodeAlone => ("status.hostIPs", unprivileged()),
        Network::Pods => ("status.podIPs", unprivileged()),
    };
    let addresses = json!({"fieldRef": {"fieldPath": addresses}});
    // What is measured is the network, and not how long a processor may be had.
    let measures = asked.wanted.sink.is_some() || asked.wanted.speed.is_some();
    let cpu = if measures { "4" } else { "500m" };
    let wanted = serde_json::to_string(&asked.wanted).unwrap_or_default();
    json!({
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["probe", "--root=/host", "--stay"],
        "env": [
            {"name": "OPENSDN_PROBE_WANTED", "value": wanted},
            {"name": "OPENSDN_PROBE_ADDRESSES", "valueFrom": addresses},
        ],
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            "limits": {"cpu": cpu, "memory": "128Mi"},
        },
        "volumeMounts": mounts,
        "securityContext": security,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    })
}

/// A Service in front of the pods of that DaemonSet.
pub(super) fn service(namespace: &str, daemon_set: &str, port: u16) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": daemon_set, "namespace": namespace,
            "labels": {NAME_LABEL: daemon_set, MANAGED_BY_LABEL: MANAGER}},
        "spec": {"selector": {NAME_LABEL: daemon_set}, "ports": [{"port": port, "protocol": "TCP"}]}})
}

/// Whether a pod is of that DaemonSet.
pub(super) fn is_of(pod: &Value, daemon_set: &str) -> bool {
    label(pod, NAME_LABEL) == Some(daemon_set)
}

/// What any pod may have: it only connects, and listens above 1024.
pub(super) fn unprivileged() -> Value {
    json!({
        "runAsUser": 65_532,
        "runAsGroup": 65_532,
        "runAsNonRoot": true,
        "privileged": false,
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

/// Not privileged: root of the node's files for reading, and three capabilities.
/// - `NET_BIND_SERVICE`: ports below 1024 are tried too (BGP, DNS).
/// - `SYS_PTRACE`: which process has a port shows /proc only to who may trace it.
/// - `DAC_READ_SEARCH`: folders of databases are open to their users alone.
///
/// Neither `SYS_MODULE` nor `NET_ADMIN`: nothing is loaded, and rules of firewalls are not read. The profile of AppArmor
/// for containers hides the processes of others, and SELinux the files, so both are set aside.
fn security() -> Value {
    json!({
        "runAsUser": 0,
        "runAsGroup": 0,
        "runAsNonRoot": false,
        "privileged": false,
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE", "SYS_PTRACE", "DAC_READ_SEARCH"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        "appArmorProfile": {"type": "Unconfined"},
        "seLinuxOptions": {"type": "spc_t"},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(network: Network) -> Asked {
        Asked {
            name: "opensdn-probe".to_owned(),
            network,
            nodes: Default::default(),
            wanted: Default::default(),
        }
    }

    #[test]
    fn only_namespaces_of_runs_that_ended_long_ago_are_left_over() {
        let second = 1_800_000_000;
        let mut one = namespace(&namespace_name(), second);
        assert!(!is_left_over(&one, second + 14 * 60), "a run may be at work");
        assert!(is_left_over(&one, second + 16 * 60));
        one["metadata"]["labels"][MANAGED_BY_LABEL] = json!("another");
        assert!(!is_left_over(&one, second + 16 * 60), "it is not ours");
        assert!(!is_of_a_run(&one));
        let mut another = namespace("victim", second);
        assert!(!is_left_over(&another, second + 16 * 60), "labels alone are not enough");
        another["metadata"]["name"] = json!(namespace_name());
        assert!(is_left_over(&another, second + 16 * 60));
    }

    #[test]
    fn a_namespace_of_a_run_is_known_whatever_its_age_and_one_of_another_name_is_none() {
        assert!(is_of_a_run(&namespace(&namespace_name(), 1_800_000_000)));
        assert!(!is_of_a_run(&namespace("default", 1_800_000_000)));
        assert!(!is_of_a_run(&json!({"metadata": {"name": "opensdn-probe-1"}})));
    }

    #[test]
    fn names_of_runs_differ() {
        assert_ne!(namespace_name(), namespace_name());
    }

    #[test]
    fn a_pod_writes_nothing_on_the_node_has_no_token_and_is_not_privileged() {
        let nodes = ["a".to_owned(), "b".to_owned()];
        let made = daemon_set("n", "image", &asked(Network::Node), &nodes);
        let pod = &made["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false);
        let container = &pod["containers"][0];
        assert!(
            container["volumeMounts"].as_array().unwrap().iter().all(|one| one["readOnly"] == true)
        );
        let volumes = pod["volumes"].as_array().unwrap();
        assert!(volumes.iter().all(|one| one["hostPath"]["type"] == "Directory"));
        assert_eq!(container["securityContext"]["privileged"], false);
        assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
        let terms = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        assert_eq!(pod.pointer(terms).unwrap().as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_pod_on_the_network_of_pods_sees_nothing_of_its_node_and_is_not_root() {
        let on_node = daemon_set("n", "image", &asked(Network::NodeAlone), &["a".to_owned()]);
        let on_node = &on_node["spec"]["template"]["spec"];
        assert_eq!((&on_node["hostNetwork"], &on_node["volumes"]), (&json!(true), &json!([])));
        assert_eq!(on_node["containers"][0]["securityContext"], unprivileged());
        let mut names = asked(Network::Pods);
        names.wanted.names = vec!["kubernetes.default.svc".to_owned()];
        let named = daemon_set("n", "image", &names, &["a".to_owned()]);
        assert_eq!(named["spec"]["template"]["spec"]["dnsPolicy"], "ClusterFirst");
        let made = daemon_set("n", "image", &asked(Network::Pods), &["a".to_owned()]);
        let pod = &made["spec"]["template"]["spec"];
        assert_eq!((&pod["hostNetwork"], &pod["volumes"]), (&json!(false), &json!([])));
        let security = &pod["containers"][0]["securityContext"];
        assert_eq!(security["runAsNonRoot"], true);
        assert_eq!(security["capabilities"], json!({"drop": ["ALL"]}));
    }
}
