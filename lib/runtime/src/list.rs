//! One page of a list, as the API server writes it. Deliberately not here: the calls, which differ
//! in headers and in what they do about a position that is lost.

use std::fmt;

use kube::core::ListMeta;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The media type of a list of metadata alone.
pub const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// One page of a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "I: Deserialize<'de>"))]
pub struct List<I = Value> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    /// Without it the answer is no list, however empty.
    metadata: ListMeta,
    /// An empty list of metadata has `null` here.
    #[serde(default)]
    items: Option<Vec<I>>,
}

/// An object without `metadata.managedFields`. These may be most of it, and what is a byte of JSON there is a
/// hundred in memory.
#[derive(Debug)]
pub struct Lean(Value);

impl From<Lean> for Value {
    fn from(Lean(object): Lean) -> Self {
        object
    }
}

impl<'de> Deserialize<'de> for Lean {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Value::Object(deserializer.deserialize_map(ObjectVisitor { of_metadata: false })?)))
    }
}

/// Reads an object, or the metadata of one.
struct ObjectVisitor {
    of_metadata: bool,
}

impl<'de> DeserializeSeed<'de> for ObjectVisitor {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if self.of_metadata && key == "managedFields" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = if !self.of_metadata && key == "metadata" {
                Value::Object(map.next_value_seed(Self { of_metadata: true })?)
            } else {
                map.next_value()?
            };
            object.insert(key, value);
        }
        Ok(object)
    }
}

impl<I: Into<Value>> List<I> {
    /// Where the next page starts; empty where this is the last one.
    #[must_use]
    pub fn next(&self) -> &str {
        self.metadata.continue_.as_deref().unwrap_or_default()
    }

    /// The version of the whole list, from which a watch continues.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }

    /// The objects, each with its `apiVersion` and `kind`, which a list says only once.
    pub fn into_objects(self) -> impl Iterator<Item = Value> {
        let Self { api_version, kind, items, .. } = self;
        let kind = kind.strip_suffix("List").unwrap_or(&kind).to_owned();
        items.into_iter().flatten().map(move |item| {
            let mut item = item.into();
            if let Value::Object(map) = &mut item {
                map.entry("apiVersion").or_insert_with(|| api_version.clone().into());
                map.entry("kind").or_insert_with(|| kind.clone().into());
            }
            item
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_list_may_say_null() {
        for items in [json!({"items": null}), json!({"items": []}), json!({})] {
            let mut list = json!({"kind": "PartialObjectMetadataList", "metadata": {}});
            list.as_object_mut().unwrap().extend(items.as_object().unwrap().clone());
            let list: List = serde_json::from_value(list).unwrap();
            assert_eq!(list.next(), "");
            assert_eq!(list.into_objects().count(), 0);
        }
    }

    #[test]
    fn a_lean_object_lacks_nothing_but_its_managed_fields() {
        let list = json!({"kind": "ZookeeperList", "apiVersion": "g/v1", "metadata": {}, "items": [{
            "metadata": {"name": "a", "managedFields": [{"manager": "m"}], "labels": {"managedFields": "b"}},
            "spec": {"metadata": {"managedFields": 1}, "list": [1, null]}}]});
        let list: List<Lean> = serde_json::from_value(list).unwrap();
        let objects: Vec<_> = list.into_objects().collect();
        let expected = json!({"kind": "Zookeeper", "apiVersion": "g/v1",
            "metadata": {"name": "a", "labels": {"managedFields": "b"}},
            "spec": {"metadata": {"managedFields": 1}, "list": [1, null]}});
        assert_eq!(objects, [expected]);
    }

    #[test]
    fn objects_of_a_list_say_what_they_are() {
        let list = json!({
            "apiVersion": "v1", "kind": "NodeList",
            "metadata": {"continue": "next", "resourceVersion": "7"},
            "items": [{"metadata": {"name": "a"}}, {"apiVersion": "v2", "kind": "Other"}],
        });
        let list: List = serde_json::from_value(list).unwrap();
        assert_eq!((list.next(), list.resource_version()), ("next", "7"));
        let objects: Vec<_> = list.into_objects().collect();
        let named = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}});
        assert_eq!(objects, [named, json!({"apiVersion": "v2", "kind": "Other"})]);
    }
}
