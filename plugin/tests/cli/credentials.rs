//! What is no one's to see is in no error: logins in addresses, and what a credential plugin printed or was given.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::fs;
use std::process::Output;

use serde_json::json;

use crate::program;

const SECRET: &str = "hunter2";

#[track_caller]
fn said_without_secret(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(!said.contains(SECRET), "{said}");
    said
}

#[test]
fn a_login_in_the_address_of_the_server_is_shown_nowhere() {
    let server = format!("http://bob:{SECRET}@127.0.0.1:1");
    for command in [
        &["status"][..],
        &["version", "-vv"],
        &["check", "-o", "json"],
        &["install", "--yes", "-v"],
    ] {
        let cluster = ["--kubeconfig", "/dev/null", "--server", &server, "--request-timeout", "5s"];
        let output = program::output(&[command, &cluster[..]].concat());
        let said = said_without_secret(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("127.0.0.1:1") || command.contains(&"install"), "{said}");
    }
}

/// How `status` fails with a credential plugin that runs this.
fn with_plugin(script: &str) -> Output {
    with_program("sh", script, &[])
}

fn with_program(program: &str, script: &str, flags: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": program, "args": ["-c", script, SECRET],
        "env": [{"name": "PLUGIN_PASSWORD", "value": SECRET}], "interactiveMode": "Never"});
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "users": [{"name": "it", "user": {"exec": exec}}]});
    fs::write(&path, kubeconfig.to_string()).unwrap();
    let arguments = ["status", "--kubeconfig", path.to_str().unwrap()];
    program::output(&[&arguments[..], flags].concat())
}

#[test]
fn what_a_credential_plugin_printed_is_shown_nowhere() {
    let output = with_plugin(&format!("echo token {SECRET}; echo 'login expired' >&2; exit 7"));
    let said = said_without_secret(&output);
    assert!(
        said.contains("the credential plugin failed with exit status: 7: login expired"),
        "{said}"
    );
    let said = said_without_secret(&with_plugin(&format!("echo '{{\"token: {SECRET}'")));
    assert!(
        said.contains("the credential plugin printed something else than an ExecCredential"),
        "{said}"
    );
    let said = said_without_secret(&with_plugin(&format!(
        "echo 'password={SECRET} is wrong' >&2; exit 1"
    )));
    assert!(said.contains("password=<redacted>"), "{said}");
}

#[test]
fn a_credential_plugin_that_hangs_is_said_and_has_a_limit_and_one_that_is_not_there_is_named() {
    let output = with_program("sh", "exec sleep 30", &["--request-timeout", "10s"]);
    let said = said_without_secret(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for part in [
        "waiting for the credential plugin sh",
        "the credential plugin sh gave no credentials within 10 s",
        "--request-timeout",
    ] {
        assert!(said.contains(part), "{part:?}: {said}");
    }
    let output = with_program("/nowhere/get-token", "", &[]);
    let said = said_without_secret(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("the credential plugin get-token cannot be started"), "{said}");
}
