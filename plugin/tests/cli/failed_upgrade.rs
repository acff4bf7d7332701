//! `upgrade status` of one that has stopped: what the container wrote that does not run, without secrets.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use serde_json::{Value, json};

use crate::fake_api_server::{FakeApiServer, Reply, refusal, version};
use crate::program::ask;

const LOG: &str = "/api/v1/namespaces/tf/pods/config-2/log";

fn upgrades() -> Value {
    let step = json!({"id": "Config/config1", "wave": "config", "state": "Failed", "attempts": 1,
        "images": [{"container": "api", "from": "r/contrail-controller-config-api:R24.1", "to": "r/contrail-controller-config-api:bad"}]});
    json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "UpgradeList", "metadata": {}, "items": [{
        "apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
        "metadata": {"name": "up", "namespace": "tf", "uid": "1", "generation": 1, "creationTimestamp": "2026-11-25T08:00:00Z"},
        "spec": {"manager": "m"},
        "status": {"phase": "Stopped", "observedGeneration": 1, "message": "the wave config was not well in time",
            "waves": [{"name": "config", "state": "Failed"}], "steps": [step]}}]})
}

fn pods() -> Value {
    json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [{
        "metadata": {"name": "config-2", "namespace": "tf"},
        "spec": {"containers": [{"name": "api", "image": "r/contrail-controller-config-api:bad"}]},
        "status": {"conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": [{"name": "api", "ready": false, "restartCount": 3,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 1}}}]}}]})
}

fn server(may_read_logs: bool) -> FakeApiServer {
    FakeApiServer::start_whole(move |asked, _| match asked.line.as_str() {
        "GET /version" => version(),
        "GET /apis/opensdn.io/v1alpha1/namespaces/tf/upgrades" => {
            Reply::Document(200, "", upgrades())
        }
        "GET /api/v1/namespaces/tf/pods" => Reply::Document(200, "", pods()),
        line if line == format!("GET {LOG}") && may_read_logs => {
            let is_of_before = asked.query.contains("previous=true");
            assert!(is_of_before && asked.query.contains("tailLines=20"), "{}", asked.query);
            Reply::Text(
                200,
                "reading /etc/contrail/api.conf\nrabbit_password = Xq7hunter2\ncannot open the \u{1b}[31mkeyspace\n",
            )
        }
        line if line == format!("GET {LOG}") => refusal(403, "Forbidden", "cannot get pods/log"),
        _ => refusal(404, "NotFound", "not found"),
    })
}

#[test]
fn one_that_has_stopped_shows_what_the_container_wrote_last_without_its_secrets() {
    let output = ask(&server(true), "upgrade status -n tf");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("pod config-2 container api: reading /etc/contrail/api.conf"), "{said}");
    assert!(said.contains("rabbit_password = <redacted>"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    assert!(said.contains("keyspace") && !said.contains('\u{1b}'), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn as_json_each_of_its_lines_is_an_object() {
    let output = ask(&server(true), "upgrade status -n tf --progress json -o json");
    let said = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_log = lines.iter().filter(|one| one["container"] == "api").count();
    assert_eq!(of_log, 3, "{said}");
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["phase"], "Stopped");
}

#[test]
fn who_may_not_read_logs_sees_the_report() {
    let output = ask(&server(false), "upgrade status -n tf");
    let (out, said) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(out.contains("Config/config1") && said.contains("retry up"), "{out}{said}");
    assert!(!said.contains("config-2") && !said.contains("error:"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}
