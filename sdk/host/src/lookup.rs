//! What policies may know about the cluster: the trait that the host's user implements, and
//! implementations over documents at hand and over a record.

use std::{future::Future, pin::Pin};

use serde::{Deserialize, Serialize};
use serde_json::Value;

mod record;
mod secret;

pub use record::{Answered, Call, Question, Record, Recording, Replay};
pub use secret::{is_secret, without_secrets};

pub use crate::contract::Index;
use crate::engine::MAX_LOOKUP_BYTES;

/// An object that a lookup found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundObject {
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID; empty for a document that was never in a cluster.
    pub uid: String,
    /// JSON text of the parts, in the order of [`Index::reads`].
    pub parts: Vec<Option<String>>,
}

impl FoundObject {
    /// Bytes of its texts.
    #[must_use]
    pub fn size(&self) -> usize {
        let parts = self.parts.iter().flatten().map(String::len);
        self.namespace.len() + self.name.len() + self.uid.len() + parts.sum::<usize>()
    }
}

/// The objects up to the one with which they are more than an evaluation may look up: it ends with
/// that, so the rest need not be copied.
pub fn up_to_the_limit(objects: impl Iterator<Item = FoundObject>) -> Vec<FoundObject> {
    let mut size = 0_usize;
    let mut found = Vec::new();
    for object in objects {
        size = size.saturating_add(object.size());
        found.push(object);
        if size > MAX_LOOKUP_BYTES {
            break;
        }
    }
    found
}

/// For [`Lookup::find`]: as many as there are.
pub const ALL: usize = usize::MAX;

/// Why a lookup cannot be answered. That is never the same as "nothing found".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LookupError(pub String);

/// An answer that may take a while. The evaluation's deadline ends the wait.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, LookupError>> + Send + 'a>>;

/// Answers the lookups of policies.
pub trait Lookup: Send + Sync {
    /// The object of that name among those of the index' kind.
    fn get<'a>(
        &'a self,
        index: &'a Index,
        namespace: &'a str,
        name: &'a str,
    ) -> Answer<'a, Option<FoundObject>>;

    /// The first objects that have the key, ordered by namespace and name, at most so many; those of
    /// [`up_to_the_limit`] are enough.
    fn find<'a>(
        &'a self,
        index: &'a Index,
        key: &'a str,
        most: usize,
    ) -> Answer<'a, Vec<FoundObject>>;
}

/// No cluster at hand: every lookup is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLookup;

impl Lookup for NoLookup {
    fn get<'a>(
        &'a self,
        index: &'a Index,
        _: &'a str,
        _: &'a str,
    ) -> Answer<'a, Option<FoundObject>> {
        Box::pin(async move { Err(no_cluster(index)) })
    }

    fn find<'a>(&'a self, index: &'a Index, _: &'a str, _: usize) -> Answer<'a, Vec<FoundObject>> {
        Box::pin(async move { Err(no_cluster(index)) })
    }
}

fn no_cluster(index: &Index) -> LookupError {
    LookupError(format!("there is no cluster to look up {} in", index.kind))
}

/// Answers from documents at hand: test cases, files.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    objects: Vec<Value>,
}

impl Documents {
    /// Answers from these objects.
    #[must_use]
    pub fn new(mut objects: Vec<Value>) -> Self {
        let place = |object: &Value| {
            let text =
                |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            (text("/metadata/namespace").to_owned(), text("/metadata/name").to_owned())
        };
        objects.sort_by_key(place);
        Self { objects }
    }

    fn of_kind(&self, index: &Index) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |object| is_of_kind(object, index))
    }
}

impl Lookup for Documents {
    fn get<'a>(
        &'a self,
        index: &'a Index,
        namespace: &'a str,
        name: &'a str,
    ) -> Answer<'a, Option<FoundObject>> {
        let is_it = move |found: &FoundObject| found.namespace == namespace && found.name == name;
        let found = self.of_kind(index).map(|object| extract(index, object)).find(is_it);
        Box::pin(async move { Ok(found) })
    }

    fn find<'a>(
        &'a self,
        index: &'a Index,
        key: &'a str,
        most: usize,
    ) -> Answer<'a, Vec<FoundObject>> {
        let has_key = move |object: &&Value| keys(index, object).iter().any(|other| other == key);
        let found = self.of_kind(index).filter(has_key).map(|object| extract(index, object));
        let found = up_to_the_limit(found.take(most));
        Box::pin(async move { Ok(found) })
    }
}

fn is_of_kind(object: &Value, index: &Index) -> bool {
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    object.get("kind").and_then(Value::as_str) == Some(&index.kind) && group == index.group
}

/// What a lookup by this index returns of the object.
#[must_use]
pub fn extract(index: &Index, object: &Value) -> FoundObject {
    let object = &*without_secrets(&index.group, &index.kind, object);
    let text =
        |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    FoundObject {
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
        uid: text("/metadata/uid"),
        parts: index.reads.iter().map(|pointer| part(object, pointer)).collect(),
    }
}

fn part(object: &Value, pointer: &str) -> Option<String> {
    object.pointer(pointer).map(Value::to_string)
}

/// The keys under which the index has the object. Strings are used as they are, other scalars as
/// their JSON text; objects and arrays are no keys.
#[must_use]
pub fn keys(index: &Index, object: &Value) -> Vec<String> {
    if index.key.is_empty() {
        return vec![String::new()];
    }
    let object = &*without_secrets(&index.group, &index.kind, object);
    let mut found = Vec::new();
    let segments: Vec<String> = index
        .key
        .split('/')
        .skip(1)
        .map(|segment| segment.replace("~1", "/").replace("~0", "~"))
        .collect();
    collect(object, &segments, &mut found);
    found.sort();
    found.dedup();
    found
}

fn collect(value: &Value, segments: &[String], found: &mut Vec<String>) {
    let Some((first, rest)) = segments.split_first() else {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Bool(_) | Value::Number(_) => found.push(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {}
        }
        return;
    };
    match (value, first.as_str()) {
        (Value::Array(items), "*") => items.iter().for_each(|item| collect(item, rest, found)),
        (Value::Object(map), "*") => map.values().for_each(|item| collect(item, rest, found)),
        (Value::Array(items), number) => {
            if let Some(item) = number.parse().ok().and_then(|number: usize| items.get(number)) {
                collect(item, rest, found);
            }
        }
        (Value::Object(map), key) => {
            if let Some(item) = map.get(key) {
                collect(item, rest, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ALL, Documents, Lookup, keys};
    use crate::contract::Index;

    fn index(key: &str) -> Index {
        Index {
            name: "by-key".into(),
            group: "g".into(),
            kind: "Thing".into(),
            key: key.into(),
            reads: vec!["/spec/value".into()],
        }
    }

    #[test]
    fn a_star_means_every_element() {
        let object =
            json!({"spec": {"items": [{"ip": "a"}, {"ip": "b"}, {"ip": "a"}, {"ip": null}]}});
        assert_eq!(keys(&index("/spec/items/*/ip"), &object), ["a", "b"]);
        assert_eq!(keys(&index("/spec/*/1/ip"), &object), ["b"]);
        assert_eq!(keys(&index(""), &object), [""]);
    }

    #[tokio::test]
    async fn of_a_secret_no_lookup_returns_a_value() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "a", "namespace": "n"}, "data": {"key": "value"}});
        let documents = Documents::new(vec![secret]);
        let index = |key: &str| Index {
            name: "i".into(),
            group: String::new(),
            kind: "Secret".into(),
            key: key.into(),
            reads: vec![String::new(), "/data".into(), "/data/key".into()],
        };
        let found = documents.get(&index(""), "n", "a").await.unwrap().unwrap();
        assert!(!format!("{found:?}").contains("value"), "{found:?}");
        assert_eq!(found.parts[1..], [Some(r#"{"key":null}"#.into()), Some("null".into())]);
        assert_eq!(documents.find(&index("/data/key"), "value", ALL).await.unwrap(), []);
    }

    #[tokio::test]
    async fn documents_are_found_by_kind_key_and_name_in_order() {
        let thing = |name: &str, kind: &str, key: u32| {
            json!({"apiVersion": "g/v1", "kind": kind,
                "metadata": {"name": name, "namespace": "n"}, "spec": {"key": key, "value": key}})
        };
        let documents = Documents::new(vec![
            thing("b", "Thing", 1),
            thing("a", "Thing", 1),
            thing("c", "Other", 1),
        ]);
        let index = index("/spec/key");
        for (most, names) in [(ALL, &["a", "b"][..]), (1, &["a"]), (0, &[])] {
            let found = documents.find(&index, "1", most).await.unwrap();
            assert_eq!(found.iter().map(|found| &*found.name).collect::<Vec<_>>(), names);
        }
        let one = documents.get(&index, "n", "b").await.unwrap().unwrap();
        assert_eq!(one.parts, [Some("1".to_owned())]);
        assert_eq!(documents.get(&index, "n", "c").await.unwrap(), None);
    }
}
