//! Flags of `connectivity test` that show without pods: what is meant, what is removed, what is written.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::fs;

use serde_json::{Value, json};

use crate::fake_api_server::{FakeApiServer, Reply, refusal, version};
use crate::program;

/// Two namespaces of runs, and one that only has their label; of the second the removal takes long.
fn with_left_overs() -> FakeApiServer {
    let namespace = |name: &str, manager: &str| {
        json!({"metadata": {"name": name, "labels": {"opensdn.io/probe": "true",
            "app.kubernetes.io/managed-by": manager}}})
    };
    FakeApiServer::start(move |request, _| match request {
        "GET /version" => version(),
        "GET /api/v1/namespaces" => {
            let items = json!([
                namespace("opensdn-probe-1", "kubectl-opensdn"),
                namespace("tenant", "kubectl-opensdn"),
                namespace("opensdn-probe-2", "another")
            ]);
            Reply::Document(200, "", json!({"items": items}))
        }
        "DELETE /api/v1/namespaces/opensdn-probe-1" => Reply::Document(200, "", json!({})),
        _ => refusal(404, "NotFound", "namespaces \"x\" not found"),
    })
}

#[test]
fn a_cleanup_removes_the_namespaces_of_runs_and_nothing_else_and_tests_nothing() {
    let server = with_left_overs();
    let output = program::ask(&server, "connectivity test --cleanup -o json");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["kind"], "ConnectivityCleanup");
    assert_eq!(report["removed"], json!(["opensdn-probe-1"]), "{report:#}");
    let seen = server.seen();
    let written: Vec<&String> = seen.iter().filter(|one| !one.starts_with("GET ")).collect();
    assert_eq!(written, ["DELETE /api/v1/namespaces/opensdn-probe-1"]);

    let none = FakeApiServer::start(|request, _| match request {
        "GET /version" => version(),
        "GET /api/v1/namespaces" => Reply::Document(200, "", json!({"items": []})),
        _ => refusal(404, "NotFound", "not found"),
    });
    let output = program::ask(&none, "connectivity test --cleanup");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "no earlier run has left anything\n");
    let forbidden = FakeApiServer::start(|request, _| match request {
        "GET /version" => version(),
        _ => refusal(403, "Forbidden", "namespaces is forbidden"),
    });
    let output = program::ask(&forbidden, "connectivity test --cleanup");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("right to list namespaces"), "{said}");
}

/// A cluster of one node in which no pods may be made: all is uncertain.
fn without_rights() -> FakeApiServer {
    FakeApiServer::start(|request, _| match request {
        "GET /version" => version(),
        "GET /api/v1/nodes" => {
            let ready = json!([{"type": "Ready", "status": "True"}]);
            let node =
                |name: &str| json!({"metadata": {"name": name}, "status": {"conditions": ready}});
            Reply::Document(200, "", json!({"items": [node("w1"), node("w2")]}))
        }
        "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
            Reply::Document(201, "", json!({"status": {"allowed": false}}))
        }
        _ => refusal(404, "NotFound", "not found"),
    })
}

#[test]
fn tests_are_named_by_patterns_and_junit_is_written_beside_the_answer() {
    let (server, folder) = (without_rights(), tempfile::tempdir().unwrap());
    let junit = folder.path().join("junit.xml");
    let line = format!(
        "connectivity test --single-node --test ^pod-to --test !service$ --concurrency 4 -o json --junit-file {}",
        junit.display()
    );
    let output = program::ask(&server, &line);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tests = report["tests"].as_array().unwrap();
    let ids: Vec<&str> = tests.iter().filter_map(|one| one["id"].as_str()).collect();
    assert_eq!(ids, ["pod-to-api", "pod-to-pod-on-node", "pod-to-pod"]);
    let nodes = tests[0]["nodes"].as_array().unwrap();
    assert_eq!((nodes.len(), nodes[0]["name"].as_str()), (1, Some("w1")));
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("pod-to-pod-on-node") && xml.contains("<testsuite"), "{xml}");
}

#[test]
fn a_bundle_is_made_where_a_test_fails() {
    let (server, folder) = (without_rights(), tempfile::tempdir().unwrap());
    let line = "connectivity test --fail-on info --collect-bundle-on-failure -o json";
    let output = program::asking(&server, line).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let bundle = report["bundle"].as_str().unwrap();
    assert!(bundle.starts_with("opensdn-support-"), "{bundle}");
    assert!(folder.path().join(bundle).exists());
    let output = program::asking(&server, "connectivity test --collect-bundle-on-failure -o json")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["bundle"], Value::Null, "what is uncertain does not fail");
}

#[test]
fn flags_that_mean_nothing_together_are_refused() {
    for (line, said) in [
        ("--test nothing", "there are: pod-address"),
        ("--test (", "no regular expression"),
        ("--single-node --nodes 3", "cannot be used with"),
        ("--single-node --node a --node b", "name one node"),
        ("--cleanup --only dns", "cannot be used with"),
        ("--pause-on-fail", "no terminal"),
        ("--concurrency 0", "0 is not in 1..=64"),
    ] {
        let server = without_rights();
        let output = program::ask(&server, &format!("connectivity test {line}"));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {error}");
        assert!(error.contains(said), "{line}: {error}");
        assert!(server.seen().is_empty(), "{line}");
    }
}
