//! What of the Helm chart is made from the kustomize files and the types of the values: its objects, its values and their
//! schema. `UPDATE=1` writes them again. That the chart renders what the plugin does is shown with Helm itself
//! (`tests/tests/deploy/helm.rs`).

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use opensdn_deploy::values::{Platform, Policies, Values};
use opensdn_deploy::{Step, operator_on, render, webhook_on};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

const COMMAND: &str = "UPDATE=1 cargo test -p opensdn-deploy --test chart_is_current";
const WIDTH: usize = 120;

fn chart(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("helm/opensdn").join(file)
}

#[track_caller]
fn is_current(file: &str, made: &str) {
    let path = chart(file);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, made, "{} is out of date: run {COMMAND}", path.display());
}

fn schema() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.into_generator().into_root_schema_for::<Values>().to_value()
}

/// An object with the platforms on which it is wanted, and the value by which.
fn add(entries: &mut Vec<Value>, part: &str, platform: &Value, object: Value) {
    let is = |entry: &&mut Value| entry["part"] == part && entry["object"] == object;
    match entries.iter_mut().find(is) {
        Some(entry) => entry["platforms"].as_array_mut().unwrap().push(platform.clone()),
        None => entries.push(json!({"part": part, "platforms": [platform], "object": object})),
    }
}

fn objects(steps: Vec<Step>, without: &str) -> impl Iterator<Item = Value> {
    let objects = steps.into_iter().flat_map(|step| step.objects);
    objects.filter(move |object| object["kind"] != without)
}

fn is_policy(object: &Value) -> bool {
    object["kind"] == "AdmissionPolicy"
}

fn more_policies(policies: Policies) -> Vec<Value> {
    let values = Values { policies: Policies { enabled: false, ..policies }, ..Values::default() };
    render(&values).unwrap().into_iter().flat_map(|step| step.objects).filter(is_policy).collect()
}

#[test]
fn the_objects_of_the_chart_are_those_of_the_kustomizations() {
    let mut entries = Vec::new();
    let tf_operator = more_policies(Policies { tf_operator: true, ..Policies::default() });
    let secret_keys = more_policies(Policies { secret_keys: true, ..Policies::default() });
    for platform in [Platform::Kubernetes, Platform::Openshift, Platform::Openstack] {
        let word = serde_json::to_value(platform).unwrap();
        for object in objects(webhook_on(platform).unwrap(), "CustomResourceDefinition") {
            let part = if is_policy(&object) { "policies" } else { "webhook" };
            add(&mut entries, part, &word, object);
        }
        for object in objects(operator_on(platform).unwrap(), "CustomResourceDefinition") {
            add(&mut entries, "operator", &word, object);
        }
        for (part, policies) in [("tfOperator", &tf_operator), ("secretKeys", &secret_keys)] {
            policies.iter().for_each(|object| add(&mut entries, part, &word, object.clone()));
        }
    }
    for entry in &mut entries {
        let name = &entry["object"]["metadata"]["name"];
        let is_replaced = tf_operator.iter().any(|object| object["metadata"]["name"] == *name);
        if entry["part"] == "policies" && is_replaced {
            entry["unless"] = json!("tfOperator");
        }
    }
    let made = serde_saphyr::to_string(&entries).unwrap();
    is_current("files/objects.yaml", &format!("# Made by: {COMMAND}\n{made}"));
}

#[test]
fn the_schema_of_the_chart_is_that_of_the_values() {
    let made = serde_json::to_string_pretty(&schema()).unwrap();
    is_current("values.schema.json", &format!("{made}\n"));
}

#[test]
fn the_values_of_the_chart_are_the_defaults_with_what_each_is() {
    let mut made = format!("# The values, with their defaults. Made by: {COMMAND}\n");
    let defaults = serde_json::to_value(Values::default()).unwrap();
    write_values(&mut made, &schema(), &defaults, "");
    is_current("values.yaml", &made);
    let read: Value = serde_saphyr::from_str(&made).unwrap();
    let read: Values = serde_json::from_value(read).unwrap();
    assert_eq!(read, Values::default());
}

fn write_values(out: &mut String, schema: &Value, defaults: &Value, indent: &str) {
    let none = Map::new();
    for (name, field) in schema["properties"].as_object().unwrap_or(&none) {
        let words = field["description"].as_str().unwrap_or_default();
        write_comment(out, words, indent);
        match &defaults[name] {
            Value::Object(_) => {
                let mut below = String::new();
                let deeper = format!("{indent}  ");
                write_values(&mut below, field, &defaults[name], &deeper);
                let has_values = below.lines().any(|line| !line.trim_start().starts_with('#'));
                let empty = if has_values { "" } else { " {}" };
                writeln!(out, "{indent}{name}:{empty}\n{}", below.trim_end()).unwrap();
            }
            // What has no default: it is there to be seen.
            Value::Null => writeln!(out, "{indent}# {name}:").unwrap(),
            value => writeln!(out, "{indent}{name}: {value}").unwrap(),
        }
    }
}

fn write_comment(out: &mut String, words: &str, indent: &str) {
    let mut line = format!("{indent}#");
    for word in words.split_whitespace() {
        if line.len() + word.len() >= WIDTH {
            writeln!(out, "{line}").unwrap();
            line = format!("{indent}#");
        }
        line = format!("{line} {word}");
    }
    writeln!(out, "{line}").unwrap();
}

#[test]
fn the_chart_has_the_version_of_what_it_installs() {
    let text = std::fs::read_to_string(chart("Chart.yaml")).unwrap();
    let chart: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}
