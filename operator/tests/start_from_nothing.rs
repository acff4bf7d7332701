//! What has members start from nothing, as docs/src/upgrade.md has it for a RabbitMQ of another version: that the condition
//! `HadQuorum` is gone, and what they had stored.

use std::path::Path;

use serde_json::{Value, json};

use crate::built::ClusterState;

const CASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/rabbitmq");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/upgrade.md");

fn documents(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(Path::new(CASE).join(file)).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

/// What is applied for the Rabbitmq whose StatefulSet is there, of that kind, where its annotations and conditions are these.
fn applied(kind: &str, annotations: &Value, conditions: &Value) -> Value {
    let mut input = documents("in.yaml");
    input[0]["metadata"]["annotations"] = annotations.clone();
    input[0]["status"] = json!({ "conditions": conditions });
    let object = input[0].clone();
    let set = documents("out.yaml").into_iter().find(|one| one["kind"] == "StatefulSet").unwrap();
    let intents = ClusterState::of(input).with(set).intents(&object).unwrap();
    let found =
        intents.iter().find(|one| one.object.types.as_ref().is_some_and(|of| of.kind == kind));
    serde_json::to_value(&found.unwrap().object).unwrap()
}

#[test]
fn a_rabbitmq_without_the_condition_had_quorum_starts_from_nothing_and_with_it_does_not() {
    let first = |conditions: &Value| {
        let files = applied("ConfigMap", &json!({}), conditions);
        let text = files["data"]["ensemble.192.0.2.10"].as_str().unwrap().to_owned();
        text.lines().find(|line| line.starts_with("first=")).unwrap().to_owned()
    };
    let had = json!([{"type": "HadQuorum", "status": "True", "lastTransitionTime": "2026-11-24T00:00:00Z"}]);
    assert_eq!(first(&had), "first=( )");
    assert_eq!(first(&json!([])), "first=( '192.0.2.10' '192.0.2.11' '192.0.2.12' )");
}

#[test]
fn a_stopped_rabbitmq_has_no_pods_and_what_they_stored_is_where_the_page_says() {
    let replicas = |annotations: Value| {
        applied("StatefulSet", &annotations, &json!([]))["spec"]["replicas"].clone()
    };
    assert_eq!(replicas(json!({"opensdn.io/stopped": "true"})), 0);
    assert_eq!(replicas(json!({})), 3);
    let set = applied("StatefulSet", &json!({}), &json!([]));
    let volumes = set["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
    let data = volumes.iter().find(|volume| volume["name"] == "rabbitmq-data").unwrap();
    let path = data["hostPath"]["path"].as_str().unwrap();
    let page = std::fs::read_to_string(PAGE).unwrap();
    assert!(page.contains(&format!("mv {path} {path}-before")), "{path}");
}
