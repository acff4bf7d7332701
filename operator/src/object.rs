//! What is read alike of objects of every kind.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;
use time::OffsetDateTime;

/// The object that has made this one.
#[must_use]
pub fn controller_of(object: &DynamicObject) -> Option<&OwnerReference> {
    object.owner_references().iter().find(|owner| owner.controller == Some(true))
}

/// Whether that one is its controller.
pub(crate) fn is_controlled_by(object: &DynamicObject, uid: &str) -> bool {
    controller_of(object).is_some_and(|owner| owner.uid == uid)
}

/// When an object was made, by the clock of the API server.
#[must_use]
pub fn created(object: &DynamicObject) -> Option<OffsetDateTime> {
    let seconds = object.metadata.creation_timestamp.as_ref()?.0.as_second();
    OffsetDateTime::from_unix_timestamp(seconds).ok()
}

/// A text in it, empty where there is none.
#[must_use]
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A whole number in it.
#[must_use]
pub fn number(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer)?.as_i64()
}

/// Its condition of that type.
#[must_use]
pub fn condition<'a>(object: &'a DynamicObject, type_: &str) -> Option<&'a Value> {
    list(&object.data, "/status/conditions").find(|one| text(one, "/type") == type_)
}

/// The items of a list in it.
pub fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The first field below a value whose name or text is such, as `.a[0].b`. What a container runs may be anything.
pub(crate) fn field_with(value: &Value, is_such: &impl Fn(&str) -> bool) -> Option<String> {
    let below = |field: String, value: &Value| Some(field + &field_with(value, is_such)?);
    match value {
        Value::String(text) => is_such(text).then(String::new),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| below(format!("[{at}]"), item))
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| *name != "command");
            let mut fields = fields.map(|(name, value)| (format!(".{name}"), is_such(name), value));
            fields.find_map(|(name, is_such, value)| match is_such {
                true => Some(name),
                false => below(name, value),
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}
