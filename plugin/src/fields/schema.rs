//! What a schema says of a field, and of the fields that it has.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, ValidationRule,
};
use serde_json::{Value, json};

use super::resource::{Found, content, description, within};
use super::{Depth, Field, FieldRule};

/// The field, whose kind is written so, with its fields.
pub(super) fn field(kind: &str, found: &Found<'_>, depth: Depth) -> Field {
    let path = [&[kind.to_owned()], found.path.as_slice()].concat().join(".");
    let name = found.path.last().map(String::as_str).unwrap_or_default();
    with_fields(one(path, name, found.schema, found.parent), found.schema, depth, 0)
}

fn with_fields(mut field: Field, schema: &JSONSchemaProps, depth: Depth, level: usize) -> Field {
    if depth == Depth::One && level > 0 {
        return field;
    }
    let parent = content(schema);
    let fields = parent.properties.iter().flatten().map(|(name, schema)| {
        let path = format!("{}.{name}", field.path);
        with_fields(one(path, name, schema, Some(parent)), schema, depth, level + 1)
    });
    field.fields = fields.collect();
    field
}

fn one(
    path: String,
    name: &str,
    schema: &JSONSchemaProps,
    parent: Option<&JSONSchemaProps>,
) -> Field {
    let required = parent.and_then(|parent| parent.required.as_ref());
    let mut bounds = BTreeMap::new();
    collect_bounds(schema, "", &mut bounds);
    Field {
        path,
        type_name: type_name(schema),
        description: description(schema),
        required: required.is_some_and(|names| names.iter().any(|one| one == name)),
        default: schema.default.as_ref().map(|value| value.0.clone()),
        allowed: allowed(schema),
        bounds,
        rules: rules(name, schema, parent),
        fields: Vec::new(),
    }
}

/// As `kubectl explain` writes it.
fn type_name(schema: &JSONSchemaProps) -> String {
    let inner = |schema| within(schema).map_or_else(|| "any".to_owned(), type_name);
    if schema.x_kubernetes_int_or_string == Some(true) {
        return "IntOrString".to_owned();
    }
    match schema.type_.as_deref() {
        Some("array") => format!("[]{}", inner(schema)),
        Some("object") if schema.properties.is_none() && within(schema).is_some() => {
            format!("map[string]{}", inner(schema))
        }
        Some("object") => "Object".to_owned(),
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

/// Of the field, or of the items of a list and the values of a mapping.
fn allowed(schema: &JSONSchemaProps) -> Vec<Value> {
    let own: Vec<Value> = schema.enum_.iter().flatten().map(|value| value.0.clone()).collect();
    match within(schema) {
        Some(inner) if own.is_empty() => allowed(inner),
        _ => own,
    }
}

fn collect_bounds(schema: &JSONSchemaProps, prefix: &str, bounds: &mut BTreeMap<String, Value>) {
    let number = |value: Option<f64>| value.map(whole);
    let count = |value: Option<i64>| value.map(|value| json!(value));
    let text = |value: &Option<String>| value.as_ref().map(|value| json!(value));
    let yes = |value: Option<bool>| value.filter(|value| *value).map(|value| json!(value));
    let keys = schema.x_kubernetes_list_map_keys.as_ref();
    let all = [
        ("minimum", number(schema.minimum)),
        ("exclusiveMinimum", yes(schema.exclusive_minimum)),
        ("maximum", number(schema.maximum)),
        ("exclusiveMaximum", yes(schema.exclusive_maximum)),
        ("multipleOf", number(schema.multiple_of)),
        ("minLength", count(schema.min_length)),
        ("maxLength", count(schema.max_length)),
        ("minItems", count(schema.min_items)),
        ("maxItems", count(schema.max_items)),
        ("minProperties", count(schema.min_properties)),
        ("maxProperties", count(schema.max_properties)),
        ("pattern", text(&schema.pattern)),
        ("format", text(&schema.format)),
        ("listMapKeys", keys.map(|keys| json!(keys))),
    ];
    for (keyword, value) in all {
        bounds.extend(value.map(|value| (format!("{prefix}{keyword}"), value)));
    }
    if let Some(inner) = within(schema).filter(|inner| inner.properties.is_none()) {
        let of = if schema.items.is_some() { "items" } else { "values" };
        collect_bounds(inner, &format!("{prefix}{of}."), bounds);
    }
}

/// A whole number without a fraction, as people write it.
fn whole(value: f64) -> Value {
    const MOST: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "a whole number in its range")]
    let integer = value as i64;
    if value.fract() == 0.0 && value.abs() < MOST { json!(integer) } else { json!(value) }
}

/// Those of the field, of what is in it, and those of the object around it that are about it.
fn rules(name: &str, schema: &JSONSchemaProps, parent: Option<&JSONSchemaProps>) -> Vec<FieldRule> {
    let own = schema.x_kubernetes_validations.iter().flatten();
    let inner = within(schema).and_then(|inner| inner.x_kubernetes_validations.as_ref());
    let around = parent.and_then(|parent| parent.x_kubernetes_validations.as_ref());
    let around = around.into_iter().flatten().filter(|rule| is_about(rule, name));
    let mut rules: Vec<FieldRule> = Vec::new();
    for rule in own.chain(inner.into_iter().flatten()).chain(around) {
        let rule = said(rule);
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}

/// By its field, or because it reads it: `self.minHeapSize`.
fn is_about(rule: &ValidationRule, name: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut read = rule.rule.split("self.").skip(1).filter_map(|rest| {
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        rest.get(..end)
    });
    rule.field_path.as_deref().is_some_and(|path| path.strip_prefix('.') == Some(name))
        || read.any(|read| read == name)
}

fn said(rule: &ValidationRule) -> FieldRule {
    let said = rule.message.clone().unwrap_or_else(|| format!("must be so: {}", rule.rule));
    let is_code =
        |word: &str| word.strip_prefix("OSDN").is_some_and(|number| number.parse::<u16>().is_ok());
    let (code, message) = match said.split_once(' ') {
        Some((code, message)) if is_code(code) => (Some(code.to_owned()), message.to_owned()),
        _ => (None, said),
    };
    FieldRule { code, message, rule: rule.rule.clone() }
}
