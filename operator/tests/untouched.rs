//! What no pod has to be made again for: a node more, labels and annotations of the object, another order of what has none. Of
//! each of the golden files the template of pods is the same before and after. That pods stay is shown in
//! `tests/tests/operator_untouched.rs`.

use std::collections::BTreeMap;
use std::path::Path;

use opensdn_operator::build::Intent;
use serde_json::{Value, json};

use crate::built::ClusterState;

/// An object and what is around it, by the folder.
fn cases() -> Vec<(String, Vec<Value>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let case = |path: std::path::PathBuf| {
        let input = std::fs::read_to_string(path.join("in.yaml")).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, serde_saphyr::from_multiple(&input).unwrap())
    };
    let mut all: Vec<_> = entries.map(case).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

/// What pods are made by, by the name of what keeps them.
fn templates(documents: Vec<Value>) -> BTreeMap<String, Value> {
    let around = ClusterState::of(documents);
    let intents = around.intents(&around.object).unwrap();
    let template =
        |one: &Intent| Some((one.name.clone(), one.object.data.pointer("/spec/template")?.clone()));
    let all: BTreeMap<_, _> = intents.iter().filter_map(template).collect();
    assert!(!all.is_empty());
    all
}

#[test]
fn a_node_more_changes_no_template() {
    let mut with_nodes = 0;
    for (case, documents) in cases() {
        let Some(mut node) = documents.iter().find(|one| one["kind"] == "Node").cloned() else {
            continue;
        };
        with_nodes += 1;
        node["metadata"]["name"] = json!("one-more");
        let addresses = node["status"]["addresses"].as_array_mut().unwrap();
        addresses.retain(|address| address["type"] == "InternalIP");
        addresses[0]["address"] = json!("192.0.2.199");
        let before = templates(documents.clone());
        let after = templates(documents.into_iter().chain([node]).collect());
        for (name, template) in before {
            assert_eq!(after.get(&name), Some(&template), "{case}: {name}");
        }
    }
    assert!(with_nodes > 20, "{with_nodes}");
}

/// With lists whose order means nothing, in this order.
fn in_order(mut documents: Vec<Value>, is_reversed: bool) -> Vec<Value> {
    let spec = documents[0]["spec"].as_object_mut().unwrap();
    let common = spec.entry("commonConfiguration").or_insert_with(|| json!({}));
    common["tolerations"] = json!([
        {"key": "a", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
        {"key": "a", "operator": "Equal", "value": "b"},
        {"operator": "Exists", "effect": "NoExecute"},
    ]);
    common["imagePullSecrets"] = json!(["one", "another", "more"]);
    if is_reversed {
        for list in [
            "/commonConfiguration/tolerations",
            "/commonConfiguration/imagePullSecrets",
            "/serviceConfiguration/containers",
        ] {
            let list = documents[0]["spec"].pointer_mut(list).and_then(Value::as_array_mut);
            list.into_iter().for_each(|list| list.reverse());
        }
        documents[1..].reverse();
    }
    documents
}

#[test]
fn another_order_of_what_has_none_changes_no_template() {
    for (case, documents) in cases() {
        let before = templates(in_order(documents.clone(), false));
        assert_eq!(templates(in_order(documents, true)), before, "{case}");
    }
}

#[test]
fn labels_and_annotations_of_an_object_change_no_template() {
    for (case, documents) in cases() {
        let before = templates(documents.clone());
        let mut labelled = documents;
        for key in ["labels", "annotations"] {
            let metadata = labelled[0]["metadata"].as_object_mut().unwrap();
            let all = metadata.entry(key).or_insert_with(|| json!({}));
            all["example.com/tier"] = json!("gold");
        }
        assert_eq!(templates(labelled), before, "{case}");
    }
}
