//! What becomes of whole Managers: each folder of `managers/` has `in.yaml`, what is other than in `deploy/samples/manager.yaml` (a merge
//! patch, in which a list takes the place of the list) and what is around it, and `out.yaml`: the object of each service, and which
//! objects it has with how many pods, all of them being in `golden/` as they are. `UPDATE=1` writes the latter again.

use std::path::{Path, PathBuf};

use json_patch::merge;
use kube::api::DynamicObject;
use opensdn_operator::build::Intent;
use opensdn_operator::manager::intent;
use opensdn_operator::services::services;
use serde_json::{Value, json};

use crate::built::ClusterState;
use crate::golden::stale_file;

const SAMPLE: &str = include_str!("../../deploy/samples/manager.yaml");
/// Where a cluster says of itself what kube-manager has to know.
const CLUSTER: &str = "
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kubernetes, namespace: default, labels: {kubernetes.io/service-name: kubernetes}}
addressType: IPv4
endpoints: [{addresses: [192.0.2.10], conditions: {ready: true}}]
ports: [{name: https, port: 6443, protocol: TCP}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kubeadm-config, namespace: kube-system}
data:
  ClusterConfiguration: '{clusterName: kubernetes, networking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/16}}'
";
const PROFILES: &str = include_str!("../../deploy/samples/vrouter-profile.yaml");

/// Nodes of the control plane, with what nodes of that group have.
fn nodes(number: u64, data_plane: &str) -> impl Iterator<Item = Value> {
    (0..number).map(move |one| {
        let labels = json!({"node-role.kubernetes.io/control-plane": "", "kubernetes.io/os": "linux",
            "opensdn.io/data-plane": data_plane});
        json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("node-{one}"), "labels": labels, "resourceVersion": "1"},
            "status": {"addresses": [
                {"type": "InternalIP", "address": format!("192.0.2.{}", 10 + one)},
                {"type": "InternalIP", "address": format!("10.1.0.{}", 10 + one)}]}})
    })
}

/// What of an object says how many pods there are, and where.
fn in_short(intent: &Intent) -> Value {
    let spec = &intent.object.data["spec"];
    let pod = &spec["template"]["spec"];
    let containers = pod["containers"].as_array().into_iter().flatten();
    let containers = containers.map(|one| one["name"].clone()).collect::<Vec<_>>();
    let mut short = json!({"object": format!("{} {}", intent.kind.name(), intent.name)});
    let all = [
        ("replicas", spec["replicas"].clone()),
        ("maxUnavailable", spec["maxUnavailable"].clone()),
        ("minAvailable", spec["minAvailable"].clone()),
        ("nodeSelector", pod["nodeSelector"].clone()),
        ("containers", Value::from(containers)),
    ];
    for (key, value) in all {
        if !value.is_null() && value != json!([]) {
            short[key] = value;
        }
    }
    short
}

/// The Manager of a case, and what is around it.
pub(crate) fn documents(case: &Value) -> (Value, Vec<Value>) {
    let mut manager: Value = serde_saphyr::from_str(SAMPLE).unwrap();
    merge(&mut manager, &case["patch"]);
    manager["metadata"]["uid"] = "m".into();
    manager["metadata"]["resourceVersion"] = "1".into();
    let data_plane = case["dataPlane"].as_str().unwrap_or("kernel");
    let around = nodes(case["nodes"].as_u64().unwrap(), data_plane)
        .chain(
            [CLUSTER, PROFILES]
                .iter()
                .flat_map(|all| serde_saphyr::from_multiple::<Value>(all).unwrap()),
        )
        .chain(case["around"].as_array().cloned().unwrap_or_default())
        .map(|mut one| {
            one["metadata"]["resourceVersion"] = "1".into();
            one
        });
    (manager, around.collect())
}

/// The folders of all cases.
pub(crate) fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/managers");
    let mut cases: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

/// The documents of one case: the objects of its services, and what each has.
fn made(case: &Value) -> Vec<Value> {
    let (manager, around) = documents(case);
    let (services, unnamed) = services(&manager["spec"]);
    assert!(unnamed.is_empty(), "{unnamed:?}");
    let object: DynamicObject = serde_json::from_value(manager.clone()).unwrap();
    let children: Vec<Value> = services
        .iter()
        .map(|service| serde_json::to_value(intent(&object, service).unwrap().object).unwrap())
        .collect();
    let there: Vec<Value> = children.iter().map(running).collect();
    let mut documents = Vec::new();
    for (number, child) in children.iter().enumerate() {
        let others = there.iter().enumerate().filter(|(other, _)| *other != number);
        let others = others.map(|(_, other)| other.clone());
        let all = [there[number].clone()].into_iter().chain([manager.clone()]);
        let all: Vec<Value> = all.chain(others).chain(around.iter().cloned()).collect();
        let cluster = ClusterState::of(all);
        let has = match cluster.intents(&cluster.object) {
            Ok(intents) => intents.iter().map(in_short).collect::<Value>(),
            Err(refused) => json!({"refused": refused}),
        };
        documents.push(json!({"service": child, "has": has}));
    }
    documents
}

/// As the others see it.
fn running(child: &Value) -> Value {
    let mut there = child.clone();
    let uid = format!("{}-{}", child["kind"], child["metadata"]["name"]).replace('"', "");
    there["metadata"]["uid"] = uid.into();
    there["metadata"]["resourceVersion"] = "1".into();
    there["metadata"]["generation"] = 1.into();
    there["status"] = json!({"active": true});
    there
}

#[test]
fn the_services_of_managers_are_as_in_their_golden_files() {
    let cases = cases();
    assert!(cases.len() >= 7, "{cases:?}");
    let mut stale = Vec::new();
    for case in cases {
        let input = std::fs::read_to_string(case.join("in.yaml")).unwrap();
        let documents = made(&serde_saphyr::from_str(&input).unwrap());
        let texts = documents.iter().map(|one| serde_saphyr::to_string(one).unwrap());
        let out = texts.collect::<Vec<_>>().join("---\n");
        let refused: Vec<&str> = out.lines().filter(|line| line.contains("refused:")).collect();
        assert!(refused.is_empty(), "{}: {refused:#?}", case.display());
        stale.extend(stale_file(&case, &out));
    }
    assert!(stale.is_empty(), "run again with UPDATE=1 and look at the changes of: {stale:?}");
}
