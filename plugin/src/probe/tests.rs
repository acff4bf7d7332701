//! A run as a whole, against an API server that answers as a test says.

use opensdn_deploy::names::NAME_LABEL;
use serde_json::{Value, json};

use super::objects::LABEL;
use super::run::Run;
use super::*;
use crate::clients::of_tests;
use crate::fake_api_server::{FakeApiServer, Reply, refusal};
use crate::ui::Ui;

/// As an image of an older release answers: it knows neither names nor services, devices nor targets, nor
/// what nodes try of each other.
fn line() -> &'static str {
    let unknown = || json!({"unknown": "it is hidden"});
    let kernel = ["release", "loaded", "files", "headers", "secureBoot", "onlySigned", "lockdown"];
    let kernel: Value = kernel.map(|key| (key.to_owned(), unknown())).into_iter().collect();
    let answer = json!({"kind": "NodeFindings", "format": 1, "version": "0.1.0",
        "addresses": ["10.32.0.7"], "ports": [], "kernel": kernel, "interfaces": unknown(),
        "routes": unknown(), "cni": unknown(), "directories": [], "hugePages": unknown(),
        "sysctls": [], "swaps": unknown(), "synchronised": unknown(), "firewall": unknown()});
    format!("{answer}\n").leak()
}

fn pod(daemon_set: &str) -> Value {
    json!({"metadata": {"name": format!("{daemon_set}-x"), "labels": {NAME_LABEL: daemon_set}},
        "spec": {"nodeName": "w1"}, "status": {"containerStatuses": [{"state": {"running": {}}}]}})
}

fn api(request: &str, before: usize) -> Reply {
    let document = |body: Value| Reply::Document(200, "", body);
    let (method, path) = request.split_once(' ').unwrap();
    match (method, path) {
        ("POST", path) if path.ends_with("selfsubjectaccessreviews") => {
            document(json!({"status": {"allowed": true}}))
        }
        ("GET", "/api/v1/namespaces") => document(json!({"items": []})),
        ("GET", path) if path.ends_with("/pods") => {
            document(json!({"items": [pod("first"), pod("second")]}))
        }
        ("GET", path) if path.ends_with("/log") => Reply::Text(200, line()),
        ("GET", path) if path.ends_with("/events") => document(json!({"items": []})),
        // It goes away a moment after it was deleted.
        ("GET", _) if before > 0 => refusal(404, "NotFound", "namespaces \"x\" not found"),
        _ => document(json!({"metadata": {"name": "x", "labels": {LABEL: "true"}}})),
    }
}

#[tokio::test]
async fn several_questions_are_asked_in_one_namespace_and_it_is_gone_at_the_end() {
    let server = FakeApiServer::start(api);
    let client = of_tests(server.url());
    let mut ui = Ui::plain(anstream::ColorChoice::Never, None);
    let run = Run {
        image: "image".to_owned(),
        timeout: std::time::Duration::from_secs(30),
        now: "2026-11-24T12:00:00Z".parse().unwrap(),
        needed_by: "this test",
        at_once: 32,
    };
    let nodes: Nodes =
        [("w1".to_owned(), None), ("w2".to_owned(), Some("it is away".to_owned()))].into();
    let asked = |name: &str, network| Asked {
        name: name.to_owned(),
        network,
        nodes: nodes.clone(),
        wanted: Wanted::default(),
    };
    let done = run.within(&client, &mut ui, async |asking, ui| {
        let first = asking.ask(&asked("first", Network::Node), ui).await;
        let second = asking.ask(&asked("second", Network::Pods), ui).await;
        (first, second, asking.mark().to_owned())
    });
    let (first, second, mark) = done.await.unwrap().unwrap();
    for answers in [&first, &second] {
        let answer = answers["w1"].as_ref().unwrap();
        assert_eq!(answer.findings.addresses, ["10.32.0.7".parse::<std::net::IpAddr>().unwrap()]);
        assert!(answer.findings.services.is_empty() && answer.findings.names.own.is_none());
        assert!(answer.findings.devices.is_none() && answer.findings.targets.is_empty());
        assert!(answer.findings.matrix.is_none());
        assert_eq!(answers["w2"].as_ref().unwrap_err(), "it is away");
    }
    let seen = server.seen();
    let count = |request: &str| seen.iter().filter(|one| *one == request).count();
    assert_eq!(count("POST /api/v1/namespaces"), 1, "{seen:#?}");
    assert_eq!(count(&format!("POST /apis/apps/v1/namespaces/{mark}/daemonsets")), 2, "{seen:#?}");
    assert_eq!(count(&format!("DELETE /api/v1/namespaces/{mark}")), 1, "{seen:#?}");
    for of in ["first", "second"] {
        assert_eq!(
            count(&format!("GET /api/v1/namespaces/{mark}/pods/{of}-x/log")),
            1,
            "{seen:#?}"
        );
    }
}
