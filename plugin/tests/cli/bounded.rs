//! Every call of the API server ends, whatever it does: hang, trickle, or say always that it is busy. How long it takes
//! is asserted nowhere; a call without end is ended by the test's own limit.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::process::Output;

use serde_json::json;

use crate::fake_api_server::{FakeApiServer, Reply, refusal, version};
use crate::program;

/// What was said, in one line.
#[track_caller]
fn failed(output: &Output) -> String {
    // `version` answers what it knows of itself, and what of the cluster it does not.
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(output.status.code(), Some(3), "{said}");
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn busy(code: u16, headers: &'static str) -> Reply {
    let status = json!({"kind": "Status", "apiVersion": "v1", "code": code, "message": "too many requests, come later"});
    Reply::Document(code, headers, status)
}

#[test]
fn a_server_that_hangs_is_given_up_and_the_error_says_what_was_asked_and_how_long() {
    let server = FakeApiServer::start(|_, _| Reply::Silence);
    let said = failed(&program::ask(&server, "version --request-timeout 1s"));
    assert!(said.contains("get /version: the API server did not answer within 1 s"), "{said}");
    assert!(said.contains("to wait longer: --request-timeout"), "{said}");
}

#[test]
fn an_answer_that_never_ends_is_given_up() {
    let server = FakeApiServer::start(|_, _| Reply::Trickle);
    let said = failed(&program::ask(&server, "version --request-timeout 1s"));
    assert!(said.contains("get /version: the API server did not answer within 1 s"), "{said}");
}

#[test]
fn a_list_that_hangs_is_unknown_with_its_name_and_the_rest_is_said() {
    let server = FakeApiServer::start(|request, _| match request {
        "GET /version" => version(),
        "GET /api/v1/nodes" => Reply::Silence,
        _ => refusal(404, "NotFound", "not found"),
    });
    let output = program::ask(&server, "check -o json --request-timeout 5s");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("list nodes: the API server did not answer within 5 s"), "{report}");
}

#[test]
fn a_server_that_is_always_busy_is_given_up_and_its_words_are_shown() {
    // The last time that it is asked it may also be silent: what it said before is what is shown.
    let server = FakeApiServer::start(move |_, before| match before {
        0 | 1 => busy(503, ""),
        _ => Reply::Silence,
    });
    let said = failed(&program::ask(&server, "version --request-timeout 10s"));
    let expected = "get /version: the API server is busy: it answered 503 Service Unavailable";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("too many requests, come later"), "{said}");
    assert!(said.contains("the API server is overloaded, or starts"), "{said}");
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn a_server_that_wants_to_be_asked_after_the_time_is_not_waited_for() {
    let server = FakeApiServer::start(|_, _| busy(429, "Retry-After: 3600"));
    let said = failed(&program::ask(&server, "version"));
    assert!(said.contains("it answered 429 Too Many Requests"), "{said}");
    assert!(said.contains("wants to be asked again in 3600 s"), "{said}");
    assert_eq!(server.seen(), ["GET /version"]);
}

#[test]
fn a_server_that_is_busy_for_a_moment_is_asked_again() {
    let server = FakeApiServer::start(|request, before| match (request, before) {
        ("GET /version", 0) => busy(429, "Retry-After: 0"),
        ("GET /version", 1) => busy(503, ""),
        ("GET /version", _) => version(),
        _ => refusal(404, "NotFound", "deployments.apps \"opensdn-webhook\" not found"),
    });
    let output = program::ask(&server, "version");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("v1.35.4"), "{said}");
    let asked = server.seen().iter().filter(|one| *one == "GET /version").count();
    assert_eq!(asked, 3, "{:?}", server.seen());
}

#[test]
fn a_read_whose_connection_is_lost_is_asked_again_and_not_for_ever() {
    let lost_twice = FakeApiServer::start(|request, before| match (request, before) {
        ("GET /version", 0 | 1) => Reply::Cut,
        ("GET /version", _) => version(),
        _ => refusal(404, "NotFound", "deployments.apps \"opensdn-webhook\" not found"),
    });
    let said = program::ask(&lost_twice, "version");
    assert!(String::from_utf8_lossy(&said.stdout).contains("v1.35.4"), "{said:?}");
    let server = FakeApiServer::start(|_, _| Reply::Cut);
    failed(&program::ask(&server, "version"));
    assert_eq!(server.seen(), ["GET /version"; 4]);
}
