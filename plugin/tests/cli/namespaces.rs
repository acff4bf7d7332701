//! Which namespaces `status` and `certs status` ask for, and what they say of others.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fake_api_server::{FakeApiServer, Reply, refusal, version};
use crate::program;

/// Objects of three namespaces: two with a Manager, and a third in which anybody has made objects that look like those
/// of components.
fn cluster() -> FakeApiServer {
    FakeApiServer::start(|request, _| {
        if request == "GET /version" {
            return version();
        }
        let plural = request.rsplit('/').next().unwrap_or_default();
        let namespaces = match request.split("/namespaces/").nth(1) {
            Some(rest) => vec![rest.split('/').next().unwrap_or_default().to_owned()],
            None => ["one", "two", "strange"].map(str::to_owned).into(),
        };
        let all = namespaces.iter().filter_map(|namespace| object(plural, namespace));
        match plural {
            "managers" | "pods" | "statefulsets" | "secrets" | "configmaps" | "daemonsets"
            | "nodes" | "admissionpolicies" => {
                Reply::Document(200, "", json!({"items": all.collect::<Vec<Value>>()}))
            }
            _ => refusal(404, "NotFound", "not found"),
        }
    })
}

fn object(plural: &str, namespace: &str) -> Option<Value> {
    let labels = json!({"tf_manager": "redis", "redis": "redis1", "app.kubernetes.io/managed-by": "opensdn-operator"});
    let metadata =
        json!({"name": format!("of-{namespace}"), "namespace": namespace, "labels": labels});
    match plural {
        "managers" if namespace != "strange" => Some(json!({"metadata": metadata,
            "spec": {"services": {"redis": {"metadata": {"name": "redis1"}}}}})),
        "statefulsets" | "pods" => Some(json!({"metadata": metadata, "spec": {}, "status": {}})),
        "secrets" => {
            Some(json!({"metadata": metadata, "data": {"server-10.0.0.1.crt": "bm9uZQ=="}}))
        }
        _ => None,
    }
}

/// The namespaces of all objects that are named in the answer.
fn namespaces(answer: &Value) -> BTreeSet<String> {
    let text = answer.to_string();
    let all = ["one", "two", "strange"].map(str::to_owned).into_iter();
    all.filter(|name| text.contains(&format!("\"{name}\"")) || text.contains(&format!("of-{name}")))
        .collect()
}

fn ask(server: &FakeApiServer, line: &str) -> Value {
    let output = program::ask(server, &format!("{line} -o json"));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The lists of what namespaces have that were asked for in the whole cluster.
fn of_all(server: &FakeApiServer) -> Vec<String> {
    let plurals = ["managers", "pods", "statefulsets", "daemonsets", "secrets"];
    let is_of_all = |request: &String| {
        !request.contains("/namespaces/")
            && plurals.iter().any(|one| request.ends_with(&format!("/{one}")))
    };
    server.seen().into_iter().filter(is_of_all).collect()
}

/// Of the namespace `two` one thing is in the list, and of no other was anything asked.
#[track_caller]
fn two_alone(command: &str, list: &str) {
    let server = cluster();
    let report = ask(&server, &format!("{command} -n two"));
    assert_eq!(namespaces(&report), set(&["two"]), "{report:#}");
    assert_eq!(report[list].as_array().map(Vec::len), Some(1), "{report:#}");
    assert_eq!(of_all(&server), [""; 0]);
}

#[test]
fn status_of_a_namespace_names_nothing_of_others_and_asks_for_nothing_of_them() {
    two_alone("status", "managers");
}

#[test]
fn status_without_a_namespace_is_of_all_that_have_a_manager_and_of_no_other() {
    let report = ask(&cluster(), "status");
    assert_eq!(namespaces(&report), set(&["one", "two"]), "{report:#}");
}

#[test]
fn certificates_of_a_namespace_are_those_alone_and_others_are_not_read() {
    two_alone("certs status", "certificates");
    // Who names a namespace means it, whatever is in it.
    let report = ask(&cluster(), "certs status -n strange");
    assert_eq!(namespaces(&report), set(&["strange"]), "{report:#}");
}

#[test]
fn certificates_without_a_namespace_are_of_all_that_have_a_manager_and_of_no_other() {
    let report = ask(&cluster(), "certs status");
    assert_eq!(namespaces(&report), set(&["one", "two"]), "{report:#}");
}
