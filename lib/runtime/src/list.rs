//! One page of a list, as the API server writes it. Deliberately not here: the calls, which differ
//! in headers and in what they do about a position that is lost.

use kube::core::ListMeta;
use serde::Deserialize;
use serde_json::Value;

/// The media type of a list of metadata alone.
pub const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// One page of a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct List {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    /// Without it the answer is no list, however empty.
    metadata: ListMeta,
    /// An empty list of metadata has `null` here.
    #[serde(default)]
    items: Option<Vec<Value>>,
}

impl List {
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
        items.into_iter().flatten().map(move |mut item| {
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
