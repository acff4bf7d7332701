//! What `support-bundle` takes: of a log no more than is asked for, no time after a signal, and of a list no more than its
//! part. And what is secret since a Secret has it.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bundle::unpacked;
use crate::fake_api_server::{FakeApiServer, Reply, refusal, version};
use crate::program;

const NAMESPACE: &str = "/api/v1/namespaces/opensdn-system";
/// What is asked for of a log.
const MOST: usize = 10 << 20;

/// One pod, whose kubelet does not keep to `limitBytes`.
fn of_a_long_log() -> FakeApiServer {
    let line = "2026-11-29T10:00:00Z a line as any other, with nothing in it\n";
    let log: &'static str =
        Box::leak(line.repeat((MOST + (1 << 20)) / line.len()).into_boxed_str());
    FakeApiServer::start(move |request, _| {
        match request.strip_prefix("GET ").unwrap_or_default().strip_prefix(NAMESPACE) {
            _ if request == "GET /version" => version(),
            Some("/pods") => {
                let pod = json!({"metadata": {"name": "a", "namespace": "opensdn-system"},
                    "status": {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}});
                Reply::Document(200, "", json!({"kind": "PodList", "items": [pod]}))
            }
            Some("/pods/a/log") => Reply::Text(200, log),
            _ => refusal(404, "NotFound", "not found"),
        }
    })
}

#[test]
fn of_a_log_there_is_no_more_than_was_asked_for_whatever_a_kubelet_sends() {
    let (server, folder) = (of_a_long_log(), tempfile::tempdir().unwrap());
    let out = folder.path().join("a.tar.gz");
    let line = format!("support-bundle -o json --no-files --out {}", out.display());
    let output = program::ask(&server, &line);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = report["files"].as_array().unwrap();
    let log = files.iter().find(|file| file["path"] == "logs/opensdn-system/a/c.log").unwrap();
    assert_eq!(log["bytes"], MOST, "{report}");
}

#[test]
fn a_signal_ends_it_while_secrets_are_looked_for() {
    let (server, folder) = (of_a_long_log(), tempfile::tempdir().unwrap());
    let (out, patterns) = (folder.path().join("a.tar.gz"), folder.path().join("patterns"));
    // To go through the log with all of these takes many minutes.
    let many: String = (1..400).map(|digits| format!("[a-z]+ [a-z]+[0-9]{{{digits}}}\n")).collect();
    fs::write(&patterns, many).unwrap();
    let (out, patterns) = (out.display(), patterns.display());
    let line = format!("support-bundle --yes --no-files --redact-file {patterns} --out {out}");
    let mut child = program::asking(&server, &line)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !server.seen().iter().any(|request| request.ends_with("/pods/a/log")) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // The log arrives meanwhile; where it has not, the same is shown of its reading.
    std::thread::sleep(Duration::from_secs(1));
    assert!(child.try_wait().unwrap().is_none(), "it was at work");
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let killed = Instant::now();
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if killed.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it is at work still");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(code, Some(143));
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(left, ["patterns"]);
}

#[test]
fn what_a_secret_has_is_nowhere_in_it_whatever_stands_before_it() {
    let list =
        |kind: &str, item: Value| Reply::Document(200, "", json!({"kind": kind, "items": [item]}));
    let server = FakeApiServer::start(move |request, _| {
        match request.strip_prefix("GET ").unwrap_or_default().strip_prefix(NAMESPACE) {
            _ if request == "GET /version" => version(),
            // `zebra-crossing` and `opensdn-admin`.
            Some("/secrets") => list(
                "SecretList",
                json!({"metadata": {"name": "s"},
                "data": {"password": "emVicmEtY3Jvc3Npbmc=", "user": "b3BlbnNkbi1hZG1pbg=="}}),
            ),
            Some("/configmaps") => list(
                "ConfigMapList",
                json!({"metadata": {"name": "c"},
                "data": {"note": "opensdn-admin said zebra-crossing to them"}}),
            ),
            _ => refusal(404, "NotFound", "not found"),
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.tar.gz");
    program::ask(&server, &format!("support-bundle --quick --out {}", out.display()));
    let text = unpacked(&out);
    assert!(text.contains("opensdn-admin said <redacted> to them"), "{text}");
    assert!(!text.contains("zebra-crossing") && !text.contains("emVicmEtY3Jvc3Npbmc"), "{text}");
}

#[test]
fn of_a_list_that_is_too_large_the_beginning_is_in_it_and_the_manifest_says_so() {
    // Pages of 11 MiB: the third is beyond the part.
    let text = "a line as any other ".repeat(11 << 16);
    let text: &'static str = Box::leak(text[..11 << 20].to_owned().into_boxed_str());
    let server = FakeApiServer::start_whole(move |asked, _| {
        match asked.line.strip_prefix("GET ").unwrap_or_default().strip_prefix(NAMESPACE) {
            _ if asked.line == "GET /version" => version(),
            Some("/configmaps") => {
                let page = asked.query.split_once("continue=").map_or("1", |(_, page)| page);
                let next = ["2", "3", "4", "5", ""][page.parse::<usize>().unwrap() - 1];
                // What is left out is not searched, which would take a test without optimizations a while.
                let metadata = json!({"name": format!("c{page}"), "managedFields": text});
                let item = json!({"metadata": metadata});
                let list = json!({"kind": "ConfigMapList", "metadata": {"continue": next}, "items": [item]});
                Reply::Document(200, "", list)
            }
            _ => refusal(404, "NotFound", "not found"),
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.tar.gz");
    let output =
        program::ask(&server, &format!("support-bundle --quick -o json --out {}", out.display()));
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failed = json!([{"path": "namespaces/opensdn-system/configmaps.json",
        "why": "the list has more than 32 MiB: its first 3 objects are in it"}]);
    assert_eq!(report["failed"], failed);
    let files = report["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file["path"] == failed[0]["path"]), "{files:#?}");
}
