//! Tests of single rules; upstream's whole manifest is in `tests/workloads/stock.rs`.

use serde_json::json;

use super::*;

const WITHOUT: [&[&str]; 0] = [];

/// All in one text, with the keys that are twice in the first ones.
fn lint(documents: &[Value], duplicates: &[&[&str]]) -> Linted {
    let mut lint = Lint::default();
    for (document, value) in documents.iter().enumerate() {
        let twice = duplicates.get(document).copied().unwrap_or_default();
        let twice = twice.iter().map(|&pointer| pointer.to_owned()).collect();
        lint.offer(DocumentId { text: 0, document }, value, twice);
    }
    lint.finish()
}

fn codes(documents: &[Value]) -> Vec<(&'static str, usize)> {
    let found = lint(documents, &WITHOUT).findings.into_iter();
    found.map(|one| (one.rule.code, one.document.document)).collect()
}

/// What is right by all rules.
fn manager() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "opensdn-kube-manager", "namespace": "n"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b", "c": "d"}},
                "spec": {"containers": [{
                    "name": "x", "image": "r/contrail-kubernetes-kube-manager:1", "readinessProbe": {},
                    "env": [
                        {"name": "KUBEMANAGER_NESTED_MODE", "value": "1"},
                        {"name": "ANALYTICS_NODES", "value": "a"}, {"name": "CONFIGDB_NODES", "value": "a"},
                    ],
                }]},
            },
        },
    })
}

fn agent() -> Value {
    let mut agent = manager();
    agent["kind"] = json!("DaemonSet");
    agent["metadata"]["name"] = json!("cni");
    agent["spec"]["template"]["spec"] = json!({
        "tolerations": [{"operator": "Exists"}],
        "containers": [{
            "image": "r:5000/opensdn-kubernetes-cni-init@sha256:0", "name": "x", "readinessProbe": {},
            "env": [{"name": "KUBEMANAGER_NESTED_MODE", "value": "1"}],
        }],
    });
    agent
}

/// The codes that a change at a pointer makes, and where.
#[track_caller]
fn check(mut document: Value, pointer: &str, value: Value, expected: &[(&str, &str)]) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Array(all) => all[key.parse::<usize>().unwrap()] = value,
        object => object[key] = value,
    }
    let found = lint(&[document], &WITHOUT).findings;
    let codes: Vec<_> = found.iter().map(|one| (one.rule.code, one.pointer.as_str())).collect();
    assert_eq!(codes, expected);
}

#[test]
fn what_is_right_gives_no_finding_and_each_defect_its_own() {
    let pod = "/spec/template/spec";
    let tolerations = "/spec/template/spec/tolerations";
    check(manager(), "/spec/replicas", json!(1), &[]);
    check(agent(), "/metadata/labels", json!({}), &[]);
    check(manager(), "/spec/selector", Value::Null, &[("OSDN3041", "/spec")]);
    let selector = "/spec/selector/matchLabels";
    check(agent(), selector, json!({"a": "x"}), &[("OSDN3042", selector)]);
    let node = json!({"node-role.opencontrail.org/config": ""});
    let selector = format!("{pod}/nodeSelector");
    check(manager(), &selector, node, &[("OSDN3043", selector.as_str())]);
    let master = json!([{"key": "node-role.kubernetes.io/master", "operator": "Exists"}]);
    check(manager(), tolerations, master.clone(), &[("OSDN3044", tolerations)]);
    check(manager(), tolerations, json!([{"operator": "Exists"}]), &[]);
    check(agent(), tolerations, master, &[("OSDN3045", tolerations)]);
    let pull = "/spec/template/spec/imagePullSecrets";
    for nameless in [json!([{"name": null}]), json!([{}]), json!([{"name": ""}])] {
        check(agent(), pull, nameless, &[("OSDN3048", pull)]);
    }
    check(agent(), pull, json!([{"name": "a"}]), &[]);
    check(manager(), "/spec/replicas", json!(2), &[("OSDN3050", "/kind")]);
    let probe = "/spec/template/spec/containers/0";
    check(agent(), &format!("{probe}/readinessProbe"), Value::Null, &[("OSDN3051", probe)]);
}

#[test]
fn a_duplicate_key_counts_only_in_its_own_document() {
    let documents = [manager(), agent()];
    let found = lint(&documents, &[&[], &["/spec"]]).findings;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].rule.code, found[0].document.document), ("OSDN3041", 1));
    for elsewhere in ["/metadata/labels/a", "/specification"] {
        assert_eq!(lint(&documents, &[&[], &[elsewhere]]).findings, []);
    }
}

/// A manager that takes all its variables of a ConfigMap of that name.
fn manager_of(map: &str) -> Value {
    let mut manager = manager();
    let container = &mut manager["spec"]["template"]["spec"]["containers"][0];
    container["env"] = json!([]);
    container["envFrom"] = json!([{"configMapRef": {"name": map}}]);
    manager
}

fn map(name: &str, namespace: &str, data: Value) -> Value {
    let metadata = json!({"name": name, "namespace": namespace});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
}

#[test]
fn variables_are_found_in_the_config_map_of_the_same_namespace() {
    let data = json!({"ANALYTICS_NODES": "a", "CONFIGDB_NODES": "a", "LOG_LEVEL": "SYS_DEBUG",
        "KUBEMANAGER_NESTED_MODE": "1"});
    let manager = manager_of("env");
    assert_eq!(codes(&[manager.clone(), map("env", "n", data.clone())]), [("OSDN3052", 1)]);
    let far = map("env", "other", data);
    assert_eq!(codes(&[manager, far]), [("OSDN3053", 0), ("OSDN3053", 0)]);
}

#[test]
fn two_manifests_with_maps_of_one_name_are_not_mixed_up() {
    let data = |name: &str| {
        json!({"ANALYTICS_NODES": "a", "CONFIGDB_NODES": "a", "KUBEMANAGER_NESTED_MODE": "1",
            "KUBERNETES_CLUSTER_NAME": name})
    };
    let agent_of = |name: &str| {
        let mut agent = agent();
        let env = &mut agent["spec"]["template"]["spec"]["containers"][0]["env"];
        *env = json!([{"name": "KUBERNETES_CLUSTER_NAME", "value": name},
            {"name": "KUBEMANAGER_NESTED_MODE", "value": "1"}]);
        agent
    };
    let found = |second: &str| {
        let mut lint = Lint::default();
        let files = [("k8s-a", "k8s-a"), ("k8s-b", second)];
        for (text, (name, of_agent)) in files.into_iter().enumerate() {
            let all = [manager_of("env"), agent_of(of_agent), map("env", "n", data(name))];
            for (document, value) in all.iter().enumerate() {
                lint.offer(DocumentId { text, document }, value, Vec::new());
            }
        }
        let found = lint.finish().findings.into_iter();
        found.map(|one| (one.rule.code, one.document.text)).collect::<Vec<_>>()
    };
    assert_eq!(found("k8s-b"), []);
    assert_eq!(found("k8s-c"), [("OSDN3034", 1)]);
}

#[test]
fn nested_mode_is_on_by_the_value_1_alone() {
    let mode = "/spec/template/spec/containers/0/env/0";
    let set = |value: &str| json!({"name": "KUBEMANAGER_NESTED_MODE", "value": value});
    for wrong in ["true", "yes", "01", "1 "] {
        check(manager(), mode, set(wrong), &[("OSDN3030", mode)]);
    }
    let vrouter = json!({"KUBERNESTES_NESTED_VROUTER_VIP": "10.10.10.2", "ANALYTICS_NODES": "a",
        "CONFIGDB_NODES": "a"});
    let off = |more: Value| {
        let mut data = vrouter.clone();
        data.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        codes(&[manager_of("env"), map("env", "n", data)])
    };
    assert_eq!(off(json!({})), [("OSDN3030", 0)], "the default is off");
    assert_eq!(off(json!({"KUBEMANAGER_NESTED_MODE": "0"})), [("OSDN3030", 1)]);
    assert_eq!(off(json!({"KUBEMANAGER_NESTED_MODE": "1"})), []);
}

#[test]
fn workloads_that_are_not_nested_are_left_alone() {
    let mut beside = manager();
    beside["spec"]["replicas"] = json!(3);
    let container = &mut beside["spec"]["template"]["spec"]["containers"][0];
    container["env"] = json!([{"name": "KUBEMANAGER_NESTED_MODE", "value": "0"}]);
    let linted = lint(&[beside.clone()], &WITHOUT);
    assert_eq!((linted.findings, linted.concerned.len()), (Vec::new(), 0));
    beside["spec"]["template"]["spec"]["containers"][0]["env"] = json!([]);
    assert_eq!(codes(&[beside]), [], "off is the default");
}

#[test]
fn a_password_is_reported_without_its_value_and_an_empty_one_is_none() {
    let data = json!({"KEYSTONE_AUTH_ADMIN_PASSWORD": "hunter2", "RABBITMQ_PASSWORD": "",
        "KUBEMANAGER_NESTED_MODE": "1"});
    let found = lint(&[map("env", "n", data)], &WITHOUT).findings;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].pointer, "/data/KEYSTONE_AUTH_ADMIN_PASSWORD");
    assert!(!format!("{found:?}").contains("hunter2"));
}

#[test]
fn a_password_of_something_else_is_not_looked_at() {
    let other = map("grafana", "n", json!({"admin-password": "x"}));
    let linted = lint(&[manager(), other.clone()], &WITHOUT);
    assert_eq!(linted.findings, []);
    assert_eq!(Vec::from_iter(linted.concerned), [DocumentId { text: 0, document: 0 }]);
    // The same one where kube-manager takes it.
    let data = json!({"admin-password": "x", "KUBEMANAGER_NESTED_MODE": "1"});
    assert!(codes(&[manager_of("own"), map("own", "n", data)]).contains(&("OSDN3046", 1)));
}

#[test]
fn a_token_without_an_end_is_a_finding_only_of_an_account_that_may_do_everything() {
    let secret = json!({
        "kind": "Secret", "type": "kubernetes.io/service-account-token", "data": {"token": "hunter2"},
        "metadata": {
            "name": "t", "namespace": "n",
            "annotations": {"kubernetes.io/service-account.name": "a"},
        },
    });
    let binding = |role: &str, account: &str| {
        json!({
            "kind": "ClusterRoleBinding", "metadata": {"name": "b"}, "roleRef": {"name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "n"}],
        })
    };
    let mut manager = manager();
    manager["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "x", "secret": {"secretName": "t"}}]);
    let with = |role: &str, account: &str| {
        let all = [manager.clone(), secret.clone(), binding(role, account)];
        codes(&all).into_iter().map(|(code, _)| code).collect::<Vec<_>>()
    };
    assert_eq!(with("cluster-admin", "a"), ["OSDN3049", "OSDN3047"]);
    assert_eq!(with("view", "a"), [""; 0]);
    assert_eq!(with("cluster-admin", "of-something-else"), [""; 0]);
    let mut lint = Lint::default();
    lint.offer(DocumentId::default(), &secret, Vec::new());
    assert!(!format!("{}", lint.kept[0].value).contains("hunter2"), "tokens are not kept");
}

#[test]
fn what_is_of_another_installation_is_left_alone() {
    let other = json!({"kind": "DaemonSet", "metadata": {"name": "calico-node"}, "spec": {}});
    let all = [other, Value::Null, json!("text"), json!([])];
    let linted = lint(&all, &WITHOUT);
    assert_eq!((linted.findings, linted.concerned.len()), (Vec::new(), 0));
}

#[test]
fn rules_are_in_the_order_of_their_codes() {
    assert!(RULES.is_sorted_by(|one, next| one.code < next.code));
}
