//! What lookups may know of a Secret: name, namespace, UID, labels, type and the names of the keys of
//! its data. Nothing else of it is ever in an index, whatever a policy declares.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// Whether objects of that kind are Secrets.
#[must_use]
pub fn is_secret(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Secret"
}

/// The object as lookups may know it: a Secret without its values, each of which is `null`, and
/// without annotations, where `kubectl apply` keeps a copy of the whole; any other object as it is.
#[must_use]
pub fn without_secrets<'o>(group: &str, kind: &str, object: &'o Value) -> Cow<'o, Value> {
    if !is_secret(group, kind) {
        return Cow::Borrowed(object);
    }
    let mut metadata = Map::new();
    for name in ["name", "namespace", "uid", "labels"] {
        if let Some(value) = object.get("metadata").and_then(|metadata| metadata.get(name)) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    let mut known = Map::from_iter([("metadata".to_owned(), Value::Object(metadata))]);
    if let Some(of_type) = object.get("type") {
        known.insert("type".to_owned(), of_type.clone());
    }
    // What is written to `stringData` the API server stores in `data`.
    let values = ["data", "stringData"].map(|place| object.get(place).and_then(Value::as_object));
    let keys = values.iter().flatten().flat_map(|values| values.keys());
    let keys: Map<String, Value> = keys.map(|key| (key.clone(), json!(null))).collect();
    if !keys.is_empty() {
        known.insert("data".to_owned(), Value::Object(keys));
    }
    Cow::Owned(Value::Object(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_secret_the_values_and_annotations_are_not_known_and_of_others_everything_is() {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"l": "1"},
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"},
                "managedFields": [{"manager": "kubectl"}]},
            "data": {"password": "aHVudGVyMg=="}, "stringData": {"user": "jane"}});
        let known = without_secrets("", "Secret", &object).into_owned();
        assert_eq!(
            known,
            json!({
            "type": "Opaque",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"l": "1"}},
            "data": {"password": null, "user": null}})
        );
        assert_eq!(*without_secrets("g", "Secret", &object), object);
        assert_eq!(*without_secrets("", "ConfigMap", &object), object);
    }
}
