//! Tests of single rules; upstream's whole manifest is in `tests/workloads/stock.rs`.

use serde_json::json;

use super::*;

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
                    "env": [{"name": "ANALYTICS_NODES", "value": "a"}, {"name": "CONFIGDB_NODES", "value": "a"}],
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
            "image": "r:5000/opensdn-kubernetes-cni-init@sha256:0", "name": "x", "readinessProbe": {}
        }],
    });
    agent
}

/// The codes that a change at a pointer makes, and where.
#[track_caller]
fn check(mut document: Value, pointer: &str, value: Value, expected: &[(&str, &str)]) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap()[key] = value;
    let found = lint(&[document], &[]);
    let codes: Vec<_> = found.iter().map(|one| (one.code, one.pointer.as_str())).collect();
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
    let duplicate = DuplicateKey { document: 1, pointer: "/spec".to_owned() };
    let found = lint(&documents, std::slice::from_ref(&duplicate));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].code, found[0].document), ("OSDN3041", 1));
    let elsewhere = DuplicateKey { pointer: "/metadata/labels/a".to_owned(), ..duplicate };
    assert_eq!(lint(&documents, &[elsewhere]), []);
}

#[test]
fn variables_are_found_in_the_config_map_of_the_same_namespace() {
    let mut manager = manager();
    let container = &mut manager["spec"]["template"]["spec"]["containers"][0];
    container["env"] = json!([]);
    container["envFrom"] = json!([{"configMapRef": {"name": "env"}}]);
    let map = |namespace: &str| {
        json!({
            "kind": "ConfigMap", "metadata": {"name": "env", "namespace": namespace},
            "data": {"ANALYTICS_NODES": "a", "CONFIGDB_NODES": "a", "LOG_LEVEL": "SYS_DEBUG"},
        })
    };
    let codes = |documents: &[Value]| {
        lint(documents, &[]).into_iter().map(|one| (one.code, one.document)).collect::<Vec<_>>()
    };
    assert_eq!(codes(&[manager.clone(), map("n")]), [("OSDN3052", 1)]);
    assert_eq!(codes(&[manager, map("other")]), [("OSDN3053", 0), ("OSDN3053", 0)]);
}

#[test]
fn a_password_is_reported_without_its_value_and_an_empty_one_is_none() {
    let map = json!({
        "kind": "ConfigMap", "metadata": {"name": "env"},
        "data": {"KEYSTONE_AUTH_ADMIN_PASSWORD": "hunter2", "RABBITMQ_PASSWORD": ""},
    });
    let found = lint(&[map], &[]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].pointer, "/data/KEYSTONE_AUTH_ADMIN_PASSWORD");
    assert!(!format!("{found:?}").contains("hunter2"));
}

#[test]
fn a_token_without_an_end_is_a_finding_only_of_an_account_that_may_do_everything() {
    let secret = json!({
        "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": "t", "namespace": "n",
            "annotations": {"kubernetes.io/service-account.name": "a"},
        },
    });
    let binding = |role: &str| {
        json!({
            "kind": "ClusterRoleBinding", "metadata": {"name": "b"}, "roleRef": {"name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "n"}],
        })
    };
    let codes = |documents: &[Value]| {
        lint(documents, &[]).into_iter().map(|one| one.code).collect::<Vec<_>>()
    };
    let codes_of_both = codes(&[secret.clone(), binding("cluster-admin")]);
    assert_eq!(codes_of_both, ["OSDN3049", "OSDN3047"]);
    assert_eq!(codes(&[secret, binding("view")]), [""; 0]);
}

#[test]
fn what_is_of_another_installation_is_left_alone() {
    let other = json!({"kind": "DaemonSet", "metadata": {"name": "calico-node"}, "spec": {}});
    assert_eq!(lint(&[other, Value::Null, json!("text"), json!([])], &[]), []);
}
