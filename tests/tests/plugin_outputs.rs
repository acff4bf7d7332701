//! What is the same of all commands that ask a cluster: a pipe gets no escapes and lines of 80 columns, JSON is as its
//! schema says, YAML is the same, and what cannot be asked ends with code 3. What each says is in the tests of each.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::path::Path;

use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::written_cluster::{nodes_with_vrouters, written};
use opensdn_testing::{Failed, Outcome};
use serde_json::Value;

use crate::plugin_status::{document, plugin};

/// Commands that answer, and the codes with which they may end on that cluster.
const COMMANDS: [(&str, &[i32]); 16] = [
    ("status", &[1]),
    ("status --depth 3", &[1]),
    ("status vrouter --node n1", &[1]),
    ("status --node n9", &[2]),
    ("check", &[1]),
    ("check --pre", &[0, 1]),
    ("certs status", &[0, 3]),
    ("certs renew --all --dry-run", &[0, 2]),
    ("audit", &[3]),
    ("upgrade history", &[0]),
    ("support-bundle --dry-run", &[0]),
    ("install --adopt --dry-run=server", &[0]),
    ("uninstall --dry-run=server", &[0]),
    ("prune --dry-run=server", &[2]),
    ("diff", &[1]),
    ("version", &[0, 1]),
];
/// What is one word cannot be broken: a command to copy, a path of the API, an image.
const LONGEST: usize = 80;

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Stdout and stderr as a pipe gets them, and the code.
fn as_text(kubeconfig: &Path, line: &str) -> Result<(String, String, Option<i32>), Failed> {
    let output = plugin(kubeconfig, &words(line))?;
    let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    Ok((out, err, output.status.code()))
}

fn is_whole(line: &str) -> bool {
    let rest = line.trim_start();
    line.chars().count() <= LONGEST
        || rest.contains("kubectl ")
        || rest.starts_with("/api")
        || rest.starts_with("{")
        || rest.split_whitespace().any(|word| word.chars().count() > LONGEST / 2)
}

/// Without what differs from one call to the next: times, how long it took, in numbers and in texts.
fn without_numbers(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(without_numbers),
        Value::Array(items) => items.iter_mut().for_each(without_numbers),
        Value::Number(_) => *value = Value::Null,
        Value::String(text) => text.retain(|letter| !letter.is_ascii_digit()),
        Value::Bool(_) | Value::Null => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_every_command_a_pipe_gets_plain_lines_and_a_program_what_the_schema_says() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    written(&sandbox).await?;
    nodes_with_vrouters(&sandbox, 0..3).await?;
    let kubeconfig = sandbox.kubeconfig();
    let mut wrong = Vec::new();
    for (line, codes) in COMMANDS {
        let (out, err, code) = as_text(&kubeconfig, line)?;
        if !code.is_some_and(|code| codes.contains(&code)) {
            wrong.push(format!("{line} ends with {code:?}: {err}"));
        }
        if out.contains('\u{1b}') || err.contains('\u{1b}') {
            wrong.push(format!("{line} writes an escape: {out:?} {err:?}"));
        }
        let long = out.lines().filter(|line| !is_whole(line));
        wrong.extend(long.map(|long| format!("{line} writes a line that is too long: {long}")));
        if out.trim().is_empty() && err.trim().is_empty() {
            wrong.push(format!("{line} writes nothing"));
        }
        let output = plugin(&kubeconfig, &[words(line), vec!["-o", "json"]].concat())?;
        if output.stdout.is_empty() {
            continue;
        }
        let (mut json, _) = document(&kubeconfig, &words(line))?;
        let yaml = plugin(&kubeconfig, &[words(line), vec!["-o", "yaml"]].concat())?.stdout;
        let mut yaml: Value = serde_saphyr::from_slice(&yaml)?;
        without_numbers(&mut json);
        without_numbers(&mut yaml);
        if yaml != json {
            wrong.push(format!("{line} is another one in YAML"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn of_every_command_a_cluster_that_does_not_answer_is_code_3_with_a_reason() -> Outcome {
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("config");
    // Nothing listens there.
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n\
                clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: a, user: {}}]\n";
    std::fs::write(&kubeconfig, text)?;
    for (line, _) in COMMANDS {
        let output = plugin(&kubeconfig, &words(line))?;
        let said = String::from_utf8([output.stdout, output.stderr].concat())?;
        // The version of the plugin itself is known.
        let is_said = said.contains("Connection refused") || line == "version";
        assert!(is_said && output.status.code() == Some(3), "{line}: {:?} {said}", output.status);
        let document = plugin(&kubeconfig, &[words(line), vec!["-o", "json"]].concat())?;
        let answer: Value = serde_json::from_slice(&document.stdout).map_err(|error| {
            format!("{line}: {error}: {}", String::from_utf8_lossy(&document.stderr))
        })?;
        assert!(answer["kind"].is_string(), "{line}: {answer}");
    }
    Ok(())
}
