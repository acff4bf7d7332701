//! Metadata of objects: the names, labels and annotations that the API server takes.

use serde_json::{Map, Value};

use super::found::Found;
use super::unknown::unknown_metadata;
use crate::problem::{Problem, codes};
use crate::source_map::join;
use crate::syntax::kind_of;

/// The fields of metadata.
pub(crate) const FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// What all annotations of an object may add up to in bytes.
const MOST_ANNOTATIONS: usize = 256 << 10;

/// Checks the metadata of an object.
pub(crate) fn check(object: &Value, namespaced: bool, found: &mut Found) {
    let metadata = match object.get("metadata") {
        Some(Value::Object(metadata)) => metadata,
        None | Some(Value::Null) => {
            let message = "metadata.name or metadata.generateName is required";
            found.block(Problem::error(codes::METADATA, message).pointer("/metadata"));
            return;
        }
        Some(other) => {
            let message = format!("metadata must be a mapping, and is {}", kind_of(other));
            found.block(Problem::error(codes::METADATA, message).pointer("/metadata"));
            return;
        }
    };
    for name in metadata.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
        found.push(unknown_metadata(name).pointer(join("/metadata", name)));
    }
    check_names(metadata, namespaced, found);
    check_labels(metadata, found);
    check_annotations(metadata, found);
    for (name, wanted) in [("finalizers", "a list"), ("ownerReferences", "a list")] {
        match metadata.get(name) {
            None | Some(Value::Null | Value::Array(_)) => {}
            Some(other) => found.block(wrong_type(name, wanted, other)),
        }
    }
}

fn check_names(metadata: &Map<String, Value>, namespaced: bool, found: &mut Found) {
    let name = text(metadata, "name", found);
    let generated = text(metadata, "generateName", found);
    match (name, generated) {
        (Some(name), _) => subdomain("name", name, name, found),
        (None, None) if metadata.get("name").is_none_or(is_unset) => {
            let message = "metadata.name or metadata.generateName is required";
            found.block(Problem::error(codes::METADATA, message).pointer("/metadata"));
        }
        (None, _) => {}
    }
    if let Some(generated) = generated {
        // A dash at the end is right here: the rest of the name follows.
        let checked = generated.strip_suffix('-').map(|start| format!("{start}a"));
        subdomain("generateName", checked.as_deref().unwrap_or(generated), generated, found);
    }
    let Some(namespace) = text(metadata, "namespace", found) else { return };
    if !namespaced {
        let message = "the namespace has no effect: objects of this kind are in none";
        let problem = Problem::warning(codes::METADATA, message).hint("remove it");
        found.push(problem.pointer("/metadata/namespace"));
    } else if let Some(wrong) = not_a_label(namespace) {
        let message = format!("metadata.namespace `{namespace}` {wrong}");
        found.push(Problem::error(codes::METADATA, message).pointer("/metadata/namespace"));
    }
}

fn is_unset(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

/// A text that is given and not empty.
fn text<'a>(metadata: &'a Map<String, Value>, name: &str, found: &mut Found) -> Option<&'a str> {
    match metadata.get(name)? {
        Value::String(text) => Some(text.as_str()).filter(|text| !text.is_empty()),
        Value::Null => None,
        other => {
            found.block(wrong_type(name, "a string", other));
            None
        }
    }
}

fn wrong_type(name: &str, wanted: &str, value: &Value) -> Problem {
    let message = format!("metadata.{name} must be {wanted}, and is {}", kind_of(value));
    Problem::error(codes::METADATA, message)
        .pointer(join("/metadata", name))
        .hint(if wanted == "a string" { "put it into quotes" } else { "" })
}

fn subdomain(field: &str, checked: &str, shown: &str, found: &mut Found) {
    let wrong = if checked.len() > 253 {
        Some("is longer than 253 characters")
    } else if checked.split('.').all(is_label_text) {
        None
    } else {
        Some(
            "must consist of lower case letters, digits, `-` and `.`, and begin and end with a \
             letter or digit",
        )
    };
    if let Some(wrong) = wrong {
        let message = format!("metadata.{field} `{shown}` {wrong}");
        found.push(Problem::error(codes::METADATA, message).pointer(join("/metadata", field)));
    }
}

/// What keeps a text from being a label of DNS.
fn not_a_label(text: &str) -> Option<&'static str> {
    if text.len() > 63 {
        return Some("is longer than 63 characters");
    }
    (!is_label_text(text)).then_some(
        "must consist of lower case letters, digits and `-`, and begin and end with a letter or \
         digit",
    )
}

fn is_label_text(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| inside(*byte))
        && bytes.last().is_some_and(|byte| inside(*byte))
        && bytes.iter().all(|byte| inside(*byte) || *byte == b'-')
}

/// The body of a label's name or value: letters, digits, and `-`, `_`, `.` within.
fn is_qualified_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.len() <= 63
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn is_qualified_name(name: &str) -> bool {
    match name.split_once('/') {
        Some((prefix, name)) => {
            prefix.len() <= 253 && prefix.split('.').all(is_label_text) && is_qualified_text(name)
        }
        None => is_qualified_text(name),
    }
}

/// The texts of a mapping of texts; anything else is reported.
fn texts<'a>(
    metadata: &'a Map<String, Value>,
    field: &str,
    found: &mut Found,
) -> Vec<(&'a str, &'a str)> {
    let fields = match metadata.get(field) {
        Some(Value::Object(fields)) => fields,
        None | Some(Value::Null) => return Vec::new(),
        Some(other) => {
            found.block(wrong_type(field, "a mapping", other));
            return Vec::new();
        }
    };
    let mut texts = Vec::new();
    for (key, value) in fields {
        match value {
            Value::String(text) => texts.push((key.as_str(), text.as_str())),
            Value::Null => texts.push((key.as_str(), "")),
            other => {
                let pointer = join(&join("/metadata", field), key);
                let message =
                    format!("metadata.{field} `{key}` must be a string, and is {}", kind_of(other));
                let problem = Problem::error(codes::METADATA, message).hint("put it into quotes");
                found.block(problem.pointer(pointer));
            }
        }
    }
    texts
}

fn check_labels(metadata: &Map<String, Value>, found: &mut Found) {
    for (key, value) in texts(metadata, "labels", found) {
        let wrong = if !is_qualified_name(key) {
            format!("`{key}` is no name of a label")
        } else if !value.is_empty() && !is_qualified_text(value) {
            format!("`{value}` is no value of a label")
        } else {
            continue;
        };
        let hint = "up to 63 letters, digits, `-`, `_` and `.`, a letter or digit at both ends; a \
                    name may have a domain and `/` before it";
        let problem = Problem::error(codes::METADATA, wrong).hint(hint);
        found.push(problem.pointer(join("/metadata/labels", key)));
    }
}

fn check_annotations(metadata: &Map<String, Value>, found: &mut Found) {
    let mut size = 0;
    for (key, value) in texts(metadata, "annotations", found) {
        size += key.len() + value.len();
        if !is_qualified_name(&key.to_lowercase()) {
            let message = format!("`{key}` is no name of an annotation");
            let hint = "up to 63 letters, digits, `-`, `_` and `.`, with or without a domain and \
                        `/` before it";
            let problem = Problem::error(codes::METADATA, message).hint(hint);
            found.push(problem.pointer(join("/metadata/annotations", key)));
        }
    }
    if size > MOST_ANNOTATIONS {
        let message = format!("all annotations together have {size} bytes, more than 262144");
        found.push(
            Problem::error(codes::METADATA, message)
                .pointer("/metadata/annotations")
                .hint("kubectl apply --server-side writes no last-applied annotation"),
        );
    }
}
