//! A cluster of three nodes in which OpenSDN is installed and does its work, for what commands say when nothing is wrong.
//! What `install` writes is written by it. Ages are counted from now, so that what is said is the same at any time.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use opensdn_pki::{Authority, CaProfile, KeyKind, LeafProfile, Usage};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use crate::fake_api_server::{Asked, FakeApiServer, Reply, version};
use crate::stored_objects::StoredObjects;
use crate::{probe_pods, program};

const TF: &str = "/apis/tf.tungsten.io/v1alpha1/namespaces/tf";
pub(crate) const NODES: [(&str, &str); 3] =
    [("m1", "192.168.0.1"), ("m2", "192.168.0.2"), ("m3", "192.168.0.3")];
/// Kind, name, and the containers of a pod.
const SERVICES: [(&str, &str, &[&str]); 7] = [
    ("Cassandra", "configdb1", &["cassandra"]),
    ("Zookeeper", "zookeeper1", &["zookeeper"]),
    ("Rabbitmq", "rabbitmq1", &["rabbitmq"]),
    ("Config", "config1", &["api", "schematransformer"]),
    ("Control", "control1", &["control"]),
    ("Kubemanager", "kubemanager1", &["kubemanager"]),
    ("Vrouter", "vrouter1", &["vrouteragent"]),
];

/// So many hours ago.
fn hours_ago(hours: i64) -> String {
    let time = Timestamp::now() - SignedDuration::from_hours(hours);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// When all of it was made: 41 days ago.
fn made() -> String {
    hours_ago(41 * 24 + 3)
}

fn just_now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string()
}

fn image(name: &str) -> String {
    format!("registry.example.com/opensdn/{name}:R24.1")
}

/// The server.
pub(crate) fn healthy_cluster() -> FakeApiServer {
    let stored = StoredObjects::default();
    let of_probes = stored.clone();
    let server = stored.serve(move |asked| {
        reviewed(asked).or_else(|| logged(asked)).or_else(|| probe_pods::answer(&of_probes, asked))
    });
    let installed = program::ask(&server, "install --yes --wait=false");
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    add_nodes(&stored);
    add_services(&stored);
    add_certificates(&stored);
    add_programs(&stored);
    server
}

/// Kinds in namespaces, as aggregated discovery has them.
fn served(group: &str, kinds: &[&str]) -> Value {
    let resource = |kind: &&str| {
        json!({"resource": format!("{}s", kind.to_lowercase()), "scope": "Namespaced", "verbs": ["list"],
            "responseKind": {"group": group, "version": "v1", "kind": kind}})
    };
    let resources: Vec<Value> = kinds.iter().map(resource).collect();
    json!({"metadata": {"name": group}, "versions": [{"version": "v1", "resources": resources}]})
}

/// What the API server says by itself: everything is allowed.
fn reviewed(asked: &Asked) -> Option<Reply> {
    if asked.line == "GET /version" {
        // With its clock.
        let date = Timestamp::now().strftime("Date: %a, %d %b %Y %H:%M:%S GMT").to_string();
        let Reply::Document(status, _, body) = version() else { return None };
        return Some(Reply::Document(status, date.leak(), body));
    }
    let answer = match asked.line.as_str() {
        "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
            json!({"status": {"allowed": true}})
        }
        "POST /apis/authentication.k8s.io/v1/selfsubjectreviews" => {
            json!({"status": {"userInfo": {"username": "admin"}}})
        }
        "GET /apis" => {
            let versions = [
                "admissionregistration.k8s.io",
                "apiextensions.k8s.io",
                "coordination.k8s.io",
                "discovery.k8s.io",
                "rbac.authorization.k8s.io",
            ];
            let group = |name: &str| json!({"versions": [{"groupVersion": format!("{name}/v1")}]});
            // For who asks for both forms.
            json!({"groups": versions.map(group), "items": [served("apps", &["Deployment", "DaemonSet", "StatefulSet"])]})
        }
        "GET /api" => json!({"items": [served("", &["ConfigMap", "Pod", "Secret", "Service"])]}),
        _ => return None,
    };
    Some(Reply::Document(201, "", answer))
}

/// What containers have written.
fn logged(asked: &Asked) -> Option<Reply> {
    let path = asked.line.strip_prefix("GET /api/v1/namespaces/tf/pods/")?;
    match path {
        "control1-0/log" => Some(Reply::Text(
            200,
            "2026-11-24T11:59:58.250000000Z INFO BGP peer m2 is Established\n2026-11-24T12:00:01.500000000Z WARN one route was withdrawn\n",
        )),
        "control1-1/log" => Some(Reply::Text(
            200,
            "2026-11-24T12:00:00.000000000Z INFO BGP peer m1 is Established\n",
        )),
        path if path.ends_with("/log") => Some(Reply::Text(200, "")),
        _ => None,
    }
}

fn add_nodes(stored: &StoredObjects) {
    for (at, (name, address)) in NODES.iter().enumerate() {
        let sizes = json!({"cpu": "8", "memory": "64Gi", "ephemeral-storage": "300Gi", "hugepages-2Mi": "512Mi"});
        let node = json!({"metadata": {"name": name, "creationTimestamp": made(), "labels": {
                "node-role.kubernetes.io/control-plane": "", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
            "spec": {"podCIDR": format!("10.32.{at}.0/24")},
            "status": {"conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": address}], "capacity": sizes, "allocatable": sizes,
                "nodeInfo": {"kubeletVersion": "v1.35.4", "architecture": "amd64", "operatingSystem": "linux",
                    "osImage": "Rocky Linux 9.5 (Blue Onyx)", "containerRuntimeVersion": "containerd://1.7.27",
                    "kernelVersion": "5.14.0-503.14.1.el9_5.x86_64"}}});
        stored.add("/api/v1/nodes", node);
        let lease = json!({"metadata": {"name": name}, "spec": {"renewTime": just_now()}});
        stored.add("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease);
    }
    let service = json!({"metadata": {"name": "kubernetes"}, "spec": {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"]}});
    stored.add("/api/v1/namespaces/default/services", service);
    let network = json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/12"]}});
    stored.add("/apis/networking.k8s.io/v1/servicecidrs", network);
    let kubeadm = json!({"metadata": {"name": "kubeadm-config"}, "data": {"ClusterConfiguration":
        "networking: {podSubnet: 10.32.0.0/12, serviceSubnet: 10.96.0.0/12}\n"}});
    stored.add("/api/v1/namespaces/kube-system/configmaps", kubeadm);
}

fn spec(kind: &str, containers: &[&str]) -> Value {
    let containers: Vec<Value> =
        containers.iter().map(|name| json!({"name": name, "image": image(name)})).collect();
    let mut configuration = json!({"containers": containers});
    if kind == "Vrouter" {
        configuration["physicalInterface"] = json!("eth0");
    }
    json!({"serviceConfiguration": configuration})
}

fn add_services(stored: &StoredObjects) {
    let (mut services, mut rows) = (json!({}), Vec::new());
    for (kind, name, containers) in SERVICES {
        let word = kind.to_lowercase();
        let item = json!({"metadata": {"name": name}, "spec": spec(kind, containers)});
        match kind {
            "Cassandra" | "Control" | "Vrouter" => services[format!("{word}s")] = json!([item]),
            _ => services[word.as_str()] = item,
        }
        rows.push(json!({"kind": kind, "name": name, "ready": true, "reason": "PodsReady",
            "message": "3 of 3 pods ready", "versions": ["R24.1"]}));
        let labels = json!({"tf_manager": word, word.as_str(): name});
        let metadata = json!({"name": format!("{name}-{word}"), "creationTimestamp": made(), "labels": labels});
        let status = json!({"readyReplicas": 3, "replicas": 3, "numberReady": 3, "desiredNumberScheduled": 3});
        let set = json!({"metadata": metadata, "spec": {"replicas": 3}, "status": status});
        let plural = if kind == "Vrouter" { "daemonsets" } else { "statefulsets" };
        stored.add(&format!("/apis/apps/v1/namespaces/tf/{plural}"), set);
        for (at, (node, address)) in NODES.iter().enumerate() {
            stored.add(
                "/api/v1/namespaces/tf/pods",
                pod(&format!("{name}-{at}"), &labels, containers, (node, address)),
            );
        }
    }
    let ready = json!([{"type": "Ready", "status": "True", "message": "all services are ready", "lastTransitionTime": made()}]);
    let manager = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": "cluster1", "generation": 2, "creationTimestamp": made()},
        "spec": {"commonConfiguration": {}, "services": services},
        "status": {"observedGeneration": 2, "services": rows, "conditions": ready}});
    stored.add(&format!("{TF}/managers"), manager);
}

fn pod(name: &str, labels: &Value, containers: &[&str], (node, address): (&str, &str)) -> Value {
    let running: Vec<Value> = containers
        .iter()
        .map(|name| json!({"name": name, "ready": true, "restartCount": 0, "image": image(name), "state": {"running": {"startedAt": made()}}}))
        .collect();
    let of_spec: Vec<Value> =
        containers.iter().map(|name| json!({"name": name, "image": image(name)})).collect();
    json!({"metadata": {"name": name, "labels": labels, "creationTimestamp": made()},
        "spec": {"nodeName": node, "hostNetwork": true, "containers": of_spec},
        "status": {"phase": "Running", "podIP": address, "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": running}})
}

/// A CA of two years, and a certificate of a year for each database, 61 days of which are over.
fn add_certificates(stored: &StoredObjects) {
    let issued = OffsetDateTime::now_utc() - Duration::days(61) + Duration::hours(1);
    let ca = Authority::create(&CaProfile::new("OpenSDN CA"), issued).unwrap();
    let labels = json!({"app.kubernetes.io/managed-by": "opensdn-operator"});
    let map = json!({"metadata": {"name": "csr-signer-ca", "labels": labels}, "data": {"ca-bundle.crt": ca.certificate()}});
    stored.add("/api/v1/namespaces/tf/configmaps", map);
    for (kind, name) in [("Cassandra", "configdb1"), ("Rabbitmq", "rabbitmq1")] {
        let mut data = json!({});
        for (_, address) in NODES {
            let profile = LeafProfile {
                common_name: address.to_owned(),
                names: vec![address.to_owned()],
                lifetime: Duration::days(365),
                usage: Usage::Server,
                key: KeyKind::default(),
            };
            let leaf = ca.issue(&profile, issued).unwrap();
            data[format!("server-{address}.crt")] =
                json!(BASE64_STANDARD.encode(leaf.certificate()));
        }
        let owner = json!([{"kind": kind, "name": name}]);
        let metadata = json!({"name": format!("{name}-secret-certificates"), "labels": labels, "ownerReferences": owner});
        stored.add("/api/v1/namespaces/tf/secrets", json!({"metadata": metadata, "data": data}));
    }
}

/// What our own programs write, and who of them leads.
fn add_programs(stored: &StoredObjects) {
    let leases = [("opensdn-operator", "opensdn-operator"), ("opensdn-system", "opensdn-webhook")];
    for (namespace, name) in leases {
        let spec = json!({"holderIdentity": format!("{name}-0"), "renewTime": just_now(), "leaseDurationSeconds": 3600});
        let list = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        stored.add(&list, json!({"metadata": {"name": name}, "spec": spec}));
    }
    let client = json!({"service": {"namespace": "opensdn-system", "name": "opensdn-webhook", "path": "/validate/x"}, "caBundle": "Y2E="});
    for policy in stored.list("/apis/opensdn.io/v1alpha1/admissionpolicies", "") {
        let name = policy["metadata"]["name"].as_str().unwrap();
        stored.edit(&format!("/apis/opensdn.io/v1alpha1/admissionpolicies/{name}"), |policy| {
            policy["metadata"]["generation"] = json!(1);
            policy["status"]["observedGeneration"] = json!(1);
            policy["status"]["conditions"] =
                json!([{"type": "Ready", "status": "True", "lastTransitionTime": made()}]);
        });
    }
    let webhook = json!({"name": "tf.opensdn.io", "clientConfig": client, "failurePolicy": "Fail", "timeoutSeconds": 5,
        "rules": [{"apiGroups": ["tf.tungsten.io"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["*"]}]});
    let configuration = json!({"metadata": {"name": "opensdn-webhook", "labels": {"app.kubernetes.io/managed-by": "opensdn-webhook"}}, "webhooks": [webhook]});
    stored.add(
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        configuration,
    );
    let slice = json!({"metadata": {"name": "opensdn-webhook-x", "labels": {"kubernetes.io/service-name": "opensdn-webhook"}},
        "endpoints": [{"addresses": ["10.32.0.9"], "conditions": {"ready": true}}], "ports": [{"port": 8443}]});
    stored.add("/apis/discovery.k8s.io/v1/namespaces/opensdn-system/endpointslices", slice);
}
