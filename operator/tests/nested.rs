//! A Kubemanager of a nested cluster, and the rights that the installation gives it: what is built of passwords in
//! all their places, and that nothing of two objects, or of the two modes of one, has a name in common.

use std::collections::BTreeSet;
use std::path::Path;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use opensdn_crds::nested::{Endpoint, Nested, VirtualNetwork};
use opensdn_nested_workloads::{ApiServer, Images, Inputs, Subnets, render};
use opensdn_operator::kind::Kind;
use serde_json::{Value, json};

use crate::built::ClusterState;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn nested() -> ClusterState {
    ClusterState::read(&Path::new(FOLDER).join("kubemanager-nested/in.yaml"))
}

/// What the renderer would grant.
fn needed() -> Vec<PolicyRule> {
    let endpoint =
        |address: &str| Endpoint { addresses: vec![address.to_owned()], ..Endpoint::default() };
    let mut nested = Nested { cluster_name: "a".to_owned(), ..Nested::default() };
    nested.cluster_network = VirtualNetwork {
        project: "p".to_owned(),
        name: "n".to_owned(),
        ..VirtualNetwork::default()
    };
    nested.underlay.config = endpoint("10.0.0.1");
    nested.underlay.vrouter = endpoint("10.0.0.2");
    let inputs = Inputs {
        nested,
        images: Images::of_release("r.example", "1"),
        api_server: ApiServer { host: "10.0.0.3".to_owned(), port: 6443 },
        subnets: Subnets {
            pod: vec!["10.1.0.0/16".to_owned()],
            service: vec!["10.2.0.0/16".to_owned()],
            ip_fabric: Vec::new(),
        },
        ..Inputs::default()
    };
    render(&inputs).unwrap().cluster_role.rules.unwrap()
}

/// Each right by itself: group, resource, name, verb.
fn single(rules: &[PolicyRule]) -> BTreeSet<[String; 4]> {
    let mut all = BTreeSet::new();
    for rule in rules {
        let names = rule.resource_names.clone().unwrap_or_else(|| vec![String::new()]);
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for name in &names {
                    for verb in &rule.verbs {
                        all.insert([group, resource, name, verb].map(String::clone));
                    }
                }
            }
        }
    }
    all
}

#[test]
fn the_installation_gives_a_nested_kube_manager_what_it_needs_and_no_more_than_the_other() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/operator/kube-manager.yaml");
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&std::fs::read_to_string(path).unwrap()).unwrap();
    let role = documents.iter().find(|one| one["kind"] == "ClusterRole").unwrap();
    let role: ClusterRole = serde_json::from_value(role.clone()).unwrap();
    let granted = single(&role.rules.unwrap());
    let needed = single(&needed());
    assert_eq!(needed.difference(&granted).collect::<Vec<_>>(), Vec::<&[String; 4]>::new());
    // Of old API servers.
    let more = granted.difference(&needed).filter(|[group, ..]| group != "extensions");
    assert_eq!(more.collect::<Vec<_>>(), Vec::<&[String; 4]>::new());
    let binding = documents.iter().find(|one| one["kind"] == "ClusterRoleBinding").unwrap();
    let intents = nested().intents(&nested().object).unwrap();
    let account = intents.iter().find(|one| one.kind == Kind::ServiceAccount).unwrap();
    assert_eq!(binding["subjects"][0]["name"], account.name, "of either mode");
    assert!(
        intents.iter().all(|one| one.object.metadata.namespace.is_some()),
        "a cluster's object"
    );
}

#[test]
fn no_two_objects_and_no_two_modes_have_a_name_in_common_but_for_the_account() {
    let names = |around: &ClusterState, name: &str| {
        let mut object = around.object.clone();
        object["metadata"]["name"] = name.into();
        let intents = around.intents(&object).unwrap().into_iter();
        let intents = intents.filter(|one| one.kind != Kind::ServiceAccount);
        intents.map(|one| (one.kind, one.name)).collect::<Vec<_>>()
    };
    let usual = ClusterState::read(&Path::new(FOLDER).join("kubemanager/in.yaml"));
    let mut all = Vec::new();
    for name in ["km", "km-kube-manager", "km-kubernetes", "km2"] {
        all.extend(names(&nested(), name));
        all.extend(names(&usual, name));
    }
    let different: BTreeSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "{all:#?}");
}

#[test]
fn a_password_of_the_spec_is_in_a_secret_of_the_operators_alone_in_both_forms() {
    let around = nested();
    let mut object = around.object.clone();
    let auth = &mut object["spec"]["commonConfiguration"]["authParameters"];
    auth["keystoneSecretName"] = Value::Null;
    auth["keystoneAuthParameters"]["adminPassword"] = "hunter%2".into();
    let intents = around.intents(&object).unwrap();
    for intent in &intents {
        let text = serde_json::to_string(&intent.object).unwrap();
        assert!(!text.contains("hunter"), "{} {}", intent.kind.name(), intent.name);
    }
    let secret =
        intents.iter().find(|one| one.name == "kubemanager1-kube-manager-passwords").unwrap();
    let data = &secret.object.data["data"];
    assert_eq!(data["keystone-password"], "aHVudGVyJTI=");
    assert_eq!(data["escaped-keystone-password"], "aHVudGVyJSUy");
    let deployment = &intents.last().unwrap().object.data;
    let env = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    let of = |name: &str| {
        env.iter().find(|one| one["name"] == name).unwrap()["valueFrom"]["secretKeyRef"].clone()
    };
    let expected = |key: &str| json!({"name": "kubemanager1-kube-manager-passwords", "key": key});
    assert_eq!(of("KEYSTONE_AUTH_ADMIN_PASSWORD"), expected("keystone-password"));
    assert_eq!(of("KUBERNETES__AUTH__auth_password"), expected("escaped-keystone-password"));
}

#[test]
fn of_pods_settings_those_of_kube_manager_hold_and_the_cni_agent_is_on_every_node() {
    let around = nested();
    let mut object = around.object.clone();
    let common = &mut object["spec"]["commonConfiguration"];
    common["nodeSelector"] = json!({"for": "kube-manager"});
    common["tolerations"] = json!([{"key": "a", "operator": "Exists"}]);
    common["imagePullSecrets"] = json!(["one", "two"]);
    object["spec"]["serviceConfiguration"]["containers"][0]["command"] = json!(["sleep", "1d"]);
    let intents = around.intents(&object).unwrap();
    let pod = |kind: Kind| {
        let intent = intents.iter().find(|one| one.kind == kind).unwrap();
        intent.object.data["spec"]["template"]["spec"].clone()
    };
    let (kube_manager, agent) = (pod(Kind::Deployment), pod(Kind::DaemonSet));
    assert_eq!(kube_manager["nodeSelector"], json!({"for": "kube-manager"}));
    let not_ready = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"});
    let own = json!({"key": "a", "operator": "Exists"});
    assert_eq!(kube_manager["tolerations"], json!([own, not_ready]));
    assert_eq!(kube_manager["containers"][0]["command"], json!(["sleep", "1d"]));
    assert!(agent["nodeSelector"].is_null());
    assert_eq!(agent["tolerations"], json!([{"operator": "Exists"}]), "whatever taints a node has");
    for pod in [kube_manager, agent] {
        assert_eq!(pod["imagePullSecrets"], json!([{"name": "one"}, {"name": "two"}]));
    }
}
