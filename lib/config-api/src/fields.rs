//! What is read of every object of the Config API: its names, and what it refers to.

use serde_json::{Map, Value};

/// The properties of an object.
pub type Fields = Map<String, Value>;

/// The fully qualified name, with colons: `default-domain:demo:vms`.
#[must_use]
pub fn full_name(object: &Fields) -> String {
    joined(items(object, "fq_name"))
}

/// The last part of it.
#[must_use]
pub fn own_name(object: &Fields) -> String {
    let name = items(object, "fq_name").filter_map(Value::as_str).next_back();
    name.unwrap_or_default().to_owned()
}

/// A text; empty where there is none.
#[must_use]
pub fn text<'a>(object: &'a Fields, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The elements of a list; none where there is no list.
pub fn items<'a>(
    object: &'a Fields,
    field: &str,
) -> impl DoubleEndedIterator<Item = &'a Value> + use<'a> {
    object.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter()
}

/// The uuids of what it refers to.
pub fn references<'a>(object: &'a Fields, field: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    items(object, field).filter_map(|one| one.get("uuid")?.as_str())
}

/// The names of what it refers to, with colons.
#[must_use]
pub fn reference_names(object: &Fields, field: &str) -> Vec<String> {
    items(object, field).filter_map(|one| Some(joined(one.get("to")?.as_array()?.iter()))).collect()
}

fn joined<'a>(parts: impl Iterator<Item = &'a Value>) -> String {
    parts.filter_map(Value::as_str).collect::<Vec<&str>>().join(":")
}
