//! What is read alike of objects as the API server has them.

use serde_json::Value;

/// Its condition of that type.
pub(crate) fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    list(object, "/status/conditions").find(|one| text(one, "/type") == type_)
}

/// The items of a list in it.
pub(crate) fn list<'a>(
    object: &'a Value,
    pointer: &str,
) -> impl Iterator<Item = &'a Value> + Clone + use<'a> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// A text in it, empty where there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
