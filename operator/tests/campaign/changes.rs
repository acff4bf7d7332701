//! What a user may do to a spec, one field at a time: values of the field's type and at its edges, its removal, and what its name says
//! that it means.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use opensdn_crds::component::Component;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fields::{DEFINITIONS, spec_of};

/// The value of a field that is secret begins so: where it shows, it was given away.
pub(super) const SECRET: &str = "secret-of-the-campaign";

/// One change of a spec.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    /// Which field, as a JSON pointer below the object.
    pub(super) pointer: String,
    /// What it has then. None: it is taken out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Value>,
}

impl Change {
    /// The object after it; as it was, where there is no such place.
    pub(super) fn of(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let Some((parents, last)) = self.pointer.rsplit_once('/') else { return object };
        let mut place = &mut object;
        for key in parents.split('/').skip(1) {
            if place.is_null() {
                *place = json!({});
            }
            place = match place {
                Value::Object(fields) => fields.entry(key).or_insert(Value::Null),
                Value::Array(items) => match key.parse::<usize>() {
                    Ok(at) if at < items.len() => &mut items[at],
                    _ => return object,
                },
                _ => return object,
            };
        }
        if place.is_null() {
            *place = json!({});
        }
        match (place, &self.value) {
            (Value::Object(fields), Some(value)) => {
                drop(fields.insert(last.to_owned(), value.clone()))
            }
            (Value::Object(fields), None) => drop(fields.remove(last)),
            _ => {}
        }
        object
    }

    /// Whether one of the two is within the other, so that their order counts.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let is_within = |one: &str, other: &str| {
            one.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        is_within(&self.pointer, &other.pointer) || is_within(&other.pointer, &self.pointer)
    }

    /// The names of the fields that it is about, those around it among them.
    pub(super) fn names(&self) -> Vec<String> {
        const OF_ALL: [&str; 5] = ["", "spec", "services", "serviceConfiguration", "metadata"];
        let path = self.pointer.split('/').filter(|key| !OF_ALL.contains(key));
        let path = path.filter(|key| key.parse::<usize>().is_err());
        let mut names: Vec<String> = path.map(str::to_owned).collect();
        // Also where that is all of them.
        names.extend(self.pointer.rsplit('/').next().map(str::to_owned));
        names_in(self.value.as_ref().unwrap_or(&Value::Null), &mut names);
        names
    }
}

fn names_in(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                all.push(name.clone());
                names_in(value, all);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names_in(item, all)),
        _ => {}
    }
}

/// All that may be done to the spec of an object.
pub(super) fn changes(object: &Value) -> Vec<Change> {
    static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
        let kinds = DEFINITIONS.iter().map(|one| one.spec.names.kind.as_str());
        let of_ours = kinds.filter(|kind| *kind == "Manager" || Component::of_kind(kind).is_some());
        of_ours.map(|kind| (kind.to_owned(), spec_of(kind))).collect()
    });
    let kind = object["kind"].as_str().unwrap_or_default();
    let mut all = Vec::new();
    below(&SCHEMAS[kind], "/spec", object, &mut all);
    all
}

fn below(schema: &Value, pointer: &str, object: &Value, all: &mut Vec<Change>) {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let pointer = format!("{pointer}/{name}");
        let there = object.pointer(&pointer);
        let mut values = values(name, schema, there);
        // To change a field back is a change, too.
        values.extend(there.cloned());
        all.extend(
            values.into_iter().map(|value| Change { pointer: pointer.clone(), value: Some(value) }),
        );
        all.push(Change { pointer: pointer.clone(), value: None });
        match schema["type"].as_str() {
            Some("object") => below(schema, &pointer, object, all),
            Some("array") => {
                let items = there.and_then(Value::as_array).map_or(0, Vec::len);
                for item in 0..items {
                    below(&schema["items"], &format!("{pointer}/{item}"), object, all);
                }
            }
            _ => {}
        }
    }
}

fn values(name: &str, schema: &Value, there: Option<&Value>) -> Vec<Value> {
    let known = meant(name, there);
    if !known.is_empty() {
        return known;
    }
    match schema["type"].as_str() {
        Some("boolean") => vec![json!(true), json!(false)],
        Some("integer" | "number") => numbers(schema, there),
        Some("string") => match schema["enum"].as_array() {
            Some(all) => all.iter().cloned().chain([json!("changed")]).collect(),
            None => texts(name),
        },
        Some("array") => {
            let item = an_item(&schema["items"]);
            let mut fewer = there.and_then(Value::as_array).cloned().unwrap_or_default();
            let more: Vec<Value> = fewer.iter().cloned().chain([item.clone()]).collect();
            fewer.pop();
            vec![json!([]), json!([item]), json!([item, item]), json!(fewer), json!(more)]
        }
        Some("object") if schema["properties"].is_object() => vec![json!({}), an_item(schema)],
        Some("object") => vec![json!({}), json!({"changed": "value"})],
        _ => Vec::new(),
    }
}

fn numbers(schema: &Value, there: Option<&Value>) -> Vec<Value> {
    let there = there.and_then(Value::as_i64).unwrap_or(8);
    let bound = |key: &str| schema[key].as_f64().map(|bound| bound as i64);
    let edges = [bound("minimum"), bound("maximum")].into_iter().flatten();
    let edges = edges.flat_map(|edge| [edge.saturating_sub(1), edge, edge.saturating_add(1)]);
    [
        0,
        -1,
        1,
        there.saturating_mul(2),
        there / 2,
        there + 2,
        1024,
        65_535,
        65_536,
        i64::from(i32::MAX),
        i64::MAX,
    ]
    .into_iter()
    .chain(edges)
    .map(Value::from)
    .collect()
}

/// Whether what it has is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    const ENDS: [&str; 6] =
        ["Password", "password", "erlangCookie", "rndckey", "metadataProxySecret", "k8sToken"];
    ENDS.iter().any(|end| name.ends_with(end))
}

fn texts(name: &str) -> Vec<Value> {
    if is_secret(name) {
        return [
            "",
            SECRET,
            "secret-of-the-campaign-two",
            "secret-of-the-campaign with '\"$\\ in it",
        ]
        .map(Value::from)
        .to_vec();
    }
    let mut all: Vec<Value> = [
        "",
        "changed",
        "Changed_2",
        "192.0.2.77",
        "192.0.2.128/25",
        "2001:db8::1",
        "1g",
        "10",
        "http",
        " ",
        "a b",
        "\u{e4}\u{fc}",
        "a\nb",
        "../../etc",
        "/etc/..",
        "opensdn-ca",
        "control1",
        "@credentials/own/password@",
    ]
    .map(Value::from)
    .to_vec();
    all.push("x".repeat(300).into());
    all
}

/// What a field of that name means to Kubernetes, or to the operator.
fn meant(name: &str, there: Option<&Value>) -> Vec<Value> {
    match name {
        "nodeSelector" => vec![
            json!({}),
            json!({"node-role.kubernetes.io/control-plane": ""}),
            json!({"kubernetes.io/os": "linux"}),
            json!({"zone": "a b"}),
            json!({"a/b/c": "x"}),
            json!({"zone": "x".repeat(64)}),
        ],
        "tolerations" => vec![
            json!([]),
            json!([{"operator": "Exists"}]),
            json!([{"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}]),
            json!([{"key": "a", "effect": "NoExecute", "operator": "Exists", "tolerationSeconds": 5}]),
            json!([{"key": "a", "value": "b c"}]),
            json!([{"key": "a/b/c", "operator": "Exists"}]),
            json!([{"key": "x".repeat(64), "operator": "Exists"}]),
            json!([{"effect": "", "key": "", "operator": "Exists", "value": ""}]),
        ],
        "imagePullSecrets" => {
            vec![json!([]), json!(["registry"]), json!(["a", "b"]), json!(["a", "a"]), json!([""])]
        }
        "envVariablesConfig" | "moreConfig" => vec![
            json!({}),
            json!({"A": "b", "B": ""}),
            json!({"POD_IP": "192.0.2.1", "LOG_LEVEL": "x", "NODE_TYPE": "y"}),
            json!({"a b": "c"}),
            json!({"A=B": "c"}),
            json!({"": "c"}),
            json!({"1A": "c\nd"}),
        ],
        "labels" => vec![
            json!({}),
            json!({"a": "b", "tf_manager": "x", "app.kubernetes.io/managed-by": "x"}),
            json!({"a": "b c"}),
            json!({"a b": "c"}),
        ],
        "storage" => vec![
            json!({"size": "10Gi"}),
            json!({"size": "40Gi", "class": "fast"}),
            json!({"size": "40Gi", "class": "slow"}),
            json!({"size": "1Mi"}),
            json!({"size": "0"}),
        ],
        "containers" => containers(there),
        _ => Vec::new(),
    }
}

/// Without one, without any, with another image, with none, twice, with a command, and with one more.
fn containers(there: Option<&Value>) -> Vec<Value> {
    let all = there.and_then(Value::as_array).cloned().unwrap_or_default();
    let with = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut all = all.clone();
        change(&mut all);
        Value::from(all)
    };
    let mut values = vec![
        json!([]),
        with(&|all| drop(all.pop())),
        with(&|all| all.reverse()),
        with(&|all| {
            all.push(json!({"name": "unknown", "image": "registry.example.com/unknown:R24.1"}))
        }),
        with(&|all| all.push(json!({}))),
    ];
    if !all.is_empty() {
        let images = [
            "registry.example.com/other:R25.1",
            "registry.example.com/other:latest",
            "",
            " ",
            "a b",
            "other@sha256:00",
        ];
        values.extend(images.map(|image| with(&|all| all[0]["image"] = image.into())));
        values.push(with(&|all| all[0]["command"] = json!(["sleep", "1"])));
        values.push(with(&|all| all[0]["command"] = json!([])));
        values.push(with(&|all| all.push(all[0].clone())));
        values.push(with(&|all| all[0]["name"] = Value::Null));
    }
    values
}

/// Something that fits into a list.
fn an_item(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().cloned().unwrap_or_default();
            let fields = properties.iter().filter(|(_, schema)| schema["type"] != "array");
            fields.map(|(name, schema)| (name.clone(), an_item(schema))).collect()
        }
        Some("boolean") => json!(true),
        Some("integer" | "number") => {
            schema["minimum"].as_f64().map_or(json!(7), |least| json!(least as i64 + 1))
        }
        Some("array") => json!([an_item(&schema["items"])]),
        _ => schema["enum"]
            .as_array()
            .and_then(|all| all.first().cloned())
            .unwrap_or(json!("changed")),
    }
}
