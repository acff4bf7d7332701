//! The fields of the specs of all kinds, as their schemas have them.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

/// All of ours. They take their time to be made.
pub(super) static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> =
    LazyLock::new(opensdn_crds::all);

/// A field, and values of its type that differ.
pub(super) struct Field {
    /// As a JSON pointer below the object.
    pub(super) pointer: String,
    pub(super) values: Vec<Value>,
    pub(super) is_text: bool,
}

/// The fields below a schema, but for containers, which have a rule of their own.
pub(super) fn fields(schema: &Value, pointer: &str, all: &mut Vec<Field>) {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let pointer = format!("{pointer}/{name}");
        if name == "containers" {
            continue;
        }
        let (mut values, mut is_text) = (Vec::new(), false);
        match schema["type"].as_str() {
            Some("object") if schema["properties"].is_object() => {
                fields(schema, &pointer, all);
                continue;
            }
            Some("object") => values.push(json!({"changed": "value"})),
            Some("boolean") => values = vec![json!(true), json!(false)],
            Some("integer" | "number") => {
                let bound = |key: &str| schema[key].as_f64();
                let least = bound("minimum").unwrap_or(1.0);
                let most = bound("maximum").unwrap_or(60_000.0);
                values = [least + 1.0, (least + most) / 2.0, most - 1.0]
                    .map(|value| json!(value as i64))
                    .to_vec();
            }
            Some("string") if schema["enum"].is_array() => {
                values = schema["enum"].as_array().unwrap().clone();
            }
            Some("string") => {
                values =
                    ["changed", "192.0.2.128/25", "1g", "192.0.2.77"].map(Value::from).to_vec();
                is_text = true;
            }
            Some("array") => values.push(json!([item(&schema["items"])])),
            _ => {}
        }
        all.push(Field { pointer, values, is_text });
    }
}

/// Something that fits into a list.
fn item(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().cloned().unwrap_or_default();
            properties.iter().map(|(name, schema)| (name.clone(), item(schema))).collect()
        }
        Some("boolean") => json!(true),
        Some("integer" | "number") => {
            schema["minimum"].as_f64().map_or(json!(7), |least| json!(least as i64 + 1))
        }
        Some("array") => json!([item(&schema["items"])]),
        _ => schema["enum"]
            .as_array()
            .and_then(|all| all.first().cloned())
            .unwrap_or(json!("changed")),
    }
}

/// The schema of the spec of a kind.
pub(super) fn spec_of(kind: &str) -> Value {
    let crd = DEFINITIONS.iter().find(|one| one.spec.names.kind == kind).unwrap();
    let schema = crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
    serde_json::to_value(schema).unwrap()["properties"]["spec"].clone()
}

pub(super) fn with(object: &Value, pointer: &str, value: Value) -> Value {
    let mut object = object.clone();
    let mut place = &mut object;
    for key in pointer.trim_start_matches('/').split('/') {
        if !place.is_object() {
            *place = json!({});
        }
        place = place.as_object_mut().unwrap().entry(key).or_insert(Value::Null);
    }
    *place = value;
    object
}

/// The folders with an object of a component, and what is around it.
pub(super) fn cases() -> Vec<PathBuf> {
    let cases = std::fs::read_dir(Path::new(super::FOLDER).join("golden")).unwrap();
    let mut cases: Vec<_> = cases.map(|case| case.unwrap().path()).collect();
    cases.sort();
    cases
}
