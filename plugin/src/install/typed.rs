//! Values against their JSON Schema: what is in the wrong place or of the wrong type, by its path; and from the text of
//! `--set` to a value of the type that its field has. Pure.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::config::keys::nearest;

/// The schema of the values with everything in its place, so that it can be walked.
pub(crate) fn schema() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.into_generator().into_root_schema_for::<opensdn_deploy::Values>().to_value()
}

/// What is wrong with the values of a file: `webhook.replica: there is no such value, ...`.
pub(crate) fn problems(value: &Value, schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(value, schema, "", &mut found);
    found
}

fn walk(value: &Value, schema: &Value, path: &str, found: &mut Vec<String>) {
    let types = types(schema);
    match value {
        Value::Object(fields) if types.contains(&"object") => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match field(schema, name) {
                    Some(schema) => walk(value, schema, &path, found),
                    None => found.push(unknown(&path, name, schema)),
                }
            }
        }
        Value::Array(items) if types.contains(&"array") => {
            let of_items = schema.get("items").unwrap_or(&Value::Null);
            items.iter().for_each(|item| walk(item, of_items, path, found));
        }
        Value::String(text) if !choices(schema).is_empty() => {
            let choices = choices(schema);
            if !choices.contains(&text.as_str()) {
                found.push(format!("{path}: must be one of {}", choices.join(", ")));
            }
        }
        _ if types.contains(&type_of(value)) => {}
        _ => found.push(format!("{path}: must be {}", expected(schema))),
    }
}

fn unknown(path: &str, name: &str, schema: &Value) -> String {
    let names = names(schema);
    let meant = nearest(name, names.iter().copied());
    let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
    format!("{path}: there is no such value{meant} (there are {})", names.join(", "))
}

fn field<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

fn names(schema: &Value) -> Vec<&str> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys).map(String::as_str).collect()
}

/// The words that an enumeration takes.
fn choices(schema: &Value) -> Vec<&str> {
    let of = |schema: &Value| schema.get("const").and_then(Value::as_str).map(str::len).is_some();
    let alternatives = ["oneOf", "anyOf"].iter().filter_map(|key| schema.get(*key)?.as_array());
    let mut found: Vec<&str> = Vec::new();
    for one in alternatives.flatten() {
        if of(one) {
            found.extend(one.get("const").and_then(Value::as_str));
        } else {
            found.extend(choices(one));
        }
    }
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    found.extend(listed.filter_map(Value::as_str));
    found
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => vec!["string"],
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn expected(schema: &Value) -> String {
    let choices = choices(schema);
    if !choices.is_empty() {
        return format!("one of {}", choices.join(", "));
    }
    let words = types(schema).into_iter().filter(|one| *one != "null").map(|one| match one {
        "boolean" => "true or false",
        "integer" => "a whole number that is not negative",
        "array" => "a list",
        "object" => "a mapping",
        _ => "a text",
    });
    words.collect::<Vec<_>>().join(" or ")
}

/// Writes `webhook.replicas=3` into the values.
///
/// # Errors
/// There is no such value, or the text does not fit its type; in words.
pub(crate) fn set(values: &mut Value, assignment: &str, schema: &Value) -> Result<(), String> {
    let (path, text) = assignment
        .split_once('=')
        .ok_or_else(|| format!("--set {assignment}: must be PATH=VALUE, as webhook.replicas=3"))?;
    let (mut within, mut place) = (schema, values);
    for name in path.split('.') {
        within =
            field(within, name).ok_or_else(|| format!("--set {}", unknown(path, name, within)))?;
        if !place.is_object() {
            *place = json!({});
        }
        place = match place {
            Value::Object(fields) => fields.entry(name).or_insert(Value::Null),
            other => other,
        };
    }
    *place = typed(text, within).map_err(|expected| format!("--set {path}: must be {expected}"))?;
    Ok(())
}

fn typed(text: &str, schema: &Value) -> Result<Value, String> {
    let types = types(schema);
    let expected = || expected(schema);
    if types.contains(&"boolean") {
        return text.parse().map(Value::Bool).map_err(|_| expected());
    }
    if types.contains(&"integer") {
        return text.parse::<u64>().map(|number| json!(number)).map_err(|_| expected());
    }
    if types.contains(&"array") {
        let of_items = schema.get("items").unwrap_or(&Value::Null);
        let items = text.split(',').filter(|item| !item.is_empty());
        return items.map(|item| typed(item, of_items)).collect();
    }
    if types.contains(&"object") {
        return Err(format!("one of its own values: {}", names(schema).join(", ")));
    }
    let choices = choices(schema);
    if choices.is_empty() || choices.contains(&text) { Ok(json!(text)) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_what_its_field_takes() {
        let (schema, mut values) = (schema(), json!({}));
        for assignment in [
            "webhook.replicas=5",
            "webhook.image.tag=1.10",
            "policies.tfOperator=true",
            "operator.watchedNamespaces=tf,other",
            "apiServerPorts=16443",
            "profile=single-node",
            "webhook.logLevel=debug",
            "registry=registry.local:5000/a=b",
        ] {
            set(&mut values, assignment, &schema).unwrap();
        }
        let expected = json!({
            "webhook": {"replicas": 5, "image": {"tag": "1.10"}, "logLevel": "debug"},
            "policies": {"tfOperator": true},
            "operator": {"watchedNamespaces": ["tf", "other"]},
            "apiServerPorts": [16443],
            "profile": "single-node",
            "registry": "registry.local:5000/a=b",
        });
        assert_eq!(values, expected);
        assert_eq!(problems(&values, &schema), [""; 0]);
        serde_json::from_value::<opensdn_deploy::Values>(values).unwrap();
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_does() {
        let schema = schema();
        for (assignment, part) in [
            ("webhook.replica=3", "did you mean replicas?"),
            ("webhook.replicas=three", "a whole number"),
            ("webhook.replicas=-1", "a whole number"),
            ("policies.tfOperator=yes", "true or false"),
            ("profile=huge", "one of default, ha, single-node"),
            ("webhook=1", "one of its own values: configurationReplicas, image"),
            ("webhook.replicas", "PATH=VALUE"),
            ("namespace.x=1", "no such value"),
        ] {
            let problem = set(&mut json!({}), assignment, &schema).unwrap_err();
            assert!(problem.contains(part), "{assignment}: {problem}");
        }
    }

    #[test]
    fn all_that_is_wrong_in_a_file_is_found_with_its_path() {
        let file = json!({"webhook": {"replicas": "3", "imag": {}}, "profile": "x", "namespace": 1,
            "operator": {"watchedNamespaces": [1]}});
        let found = problems(&file, &schema());
        let begin: Vec<&str> = found.iter().filter_map(|one| one.split(':').next()).collect();
        let expected = [
            "namespace",
            "operator.watchedNamespaces",
            "profile",
            "webhook.imag",
            "webhook.replicas",
        ];
        let mut begin = begin;
        begin.sort_unstable();
        assert_eq!(begin, expected, "{found:?}");
    }
}
