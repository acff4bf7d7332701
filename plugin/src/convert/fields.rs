//! Fields by their paths, `serviceConfiguration.port`.

use serde_json::{Map, Value};

/// Takes the field out. A mapping that it leaves empty goes too.
pub(super) fn take(object: &mut Value, path: &str) -> Option<Value> {
    let fields = object.as_object_mut()?;
    let Some((first, rest)) = path.split_once('.') else { return fields.remove(path) };
    let below = fields.get_mut(first)?;
    let taken = take(below, rest)?;
    if below.as_object().is_some_and(Map::is_empty) {
        fields.remove(first);
    }
    Some(taken)
}

/// Puts the value there, unless there is one already.
pub(super) fn put(object: &mut Value, path: &str, value: Value) -> Result<(), Value> {
    let Some(fields) = object.as_object_mut() else { return Err(value) };
    match path.split_once('.') {
        Some((first, rest)) => put(fields.entry(first).or_insert_with(super::empty), rest, value),
        None if fields.get(path).is_none_or(Value::is_null) => {
            fields.insert(path.to_owned(), value);
            Ok(())
        }
        None => Err(value),
    }
}
