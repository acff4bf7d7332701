//! How much of the objects a watch asks for, and how a list of it is read. What is not wanted is not
//! held: Secrets weigh up to a megabyte each, and a namespace may have hundreds of them. Nor is more of a
//! list than a page, which is bounded in bytes.
//!
//! The API server can leave the data of Secrets out, but gives the type only in the columns that it
//! makes for people (`Table`). The names of keys it gives in whole Secrets only; those come a few at a
//! time, and their values are skipped as they are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use kube::core::ListMeta;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::event::WatchEvent;
use crate::declared::Declared;
use crate::levels::Part;
use crate::list::{List, METADATA_LIST, PageError, read_bounded, read_objects};

/// How much of the objects is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Everything but `metadata.managedFields`, which may be most of an object.
    All,
    /// Everything, and so who has written which field.
    WithManagers,
    /// What is declared. All else is passed over as it is read, so that an object costs what is wanted of it and not
    /// what it weighs.
    Declared(Arc<Declared>),
    /// Metadata only.
    Metadata,
    /// Of Secrets: metadata and the type.
    SecretType,
    /// Of Secrets: metadata, the type, and the names of the keys, each with `null`.
    SecretKeys,
}

/// One page of a list.
pub(super) struct Page {
    pub(super) next: String,
    pub(super) version: String,
    pub(super) objects: Vec<Value>,
}

/// Annotations, which come with metadata, may be 256 KiB an object, Secrets 1 MiB, in base64: a page of
/// the largest stays below this.
const LARGEST: u64 = 64 << 20;
/// Where the API server says the type of a Secret.
const TYPE_COLUMN: &str = "Type";

impl Parts {
    /// How many objects a page has, unless they are larger than a page may be: then it is halved.
    pub(super) fn page(&self) -> u32 {
        match self {
            Self::All
            | Self::WithManagers
            | Self::Declared(_)
            | Self::Metadata
            | Self::SecretType => 100,
            Self::SecretKeys => 10,
        }
    }

    /// The media type to ask for.
    pub(super) fn accept(&self, is_list: bool) -> &'static str {
        match (self, is_list) {
            (Self::All | Self::WithManagers | Self::Declared(_) | Self::SecretKeys, _) => {
                "application/json"
            }
            (Self::Metadata, true) => METADATA_LIST,
            (Self::Metadata, false) => {
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
            }
            (Self::SecretType, _) => "application/json;as=Table;g=meta.k8s.io;v=v1",
        }
    }

    /// What else the request has to say.
    pub(super) fn query(&self) -> &'static str {
        match self {
            Self::SecretType => "&includeObject=Metadata",
            Self::All
            | Self::WithManagers
            | Self::Declared(_)
            | Self::Metadata
            | Self::SecretKeys => "",
        }
    }

    /// How much of an object is read.
    fn part(&self) -> Part<'_> {
        match self {
            Self::Declared(declared) => Part::Declared(declared),
            Self::WithManagers => Part::Whole,
            Self::All | Self::Metadata | Self::SecretType | Self::SecretKeys => Part::Lean,
        }
    }

    /// Reads one page.
    pub(super) async fn read_page(
        &self,
        client: &Client,
        request: http::Request<Vec<u8>>,
        limit: u32,
    ) -> Result<Page, PageError> {
        let part = self.part();
        if matches!(self, Self::All | Self::WithManagers | Self::Declared(_)) {
            return Ok(page_of(read_objects(client, request, limit, part).await?));
        }
        let text = read_bounded(client, request, LARGEST).await?;
        match self {
            Self::SecretType => page_of_table(&text),
            Self::SecretKeys => page_of_secrets(&text),
            _ => List::read(&text, part, usize::MAX).map(page_of),
        }
    }

    /// Reads an event of a watch.
    pub(super) fn read_event(&self, text: &[u8]) -> serde_json::Result<WatchEvent> {
        Ok(match WatchEvent::read(text, self.part())? {
            WatchEvent::Applied(object) => WatchEvent::Applied(self.object(object)),
            WatchEvent::Deleted(object) => WatchEvent::Deleted(self.object(object)),
            other => other,
        })
    }

    fn object(&self, object: Value) -> Value {
        match self {
            Self::WithManagers | Self::All | Self::Declared(_) | Self::Metadata => object,
            // What was read of the values is dropped here, not when somebody takes the event.
            Self::SecretKeys => {
                serde_json::from_value::<Secret>(object).map(Secret::object).unwrap_or_default()
            }
            // A table of one row. What is none stays as it is: there is no type in it then.
            Self::SecretType => serde_json::from_value::<Table>(object.clone())
                .ok()
                .and_then(|table| table.objects().next())
                .unwrap_or(object),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    metadata: ListMeta,
    /// In a watch only the first event has them; they are the same in all.
    #[serde(default)]
    column_definitions: Option<Vec<Column>>,
    #[serde(default)]
    rows: Option<Vec<Row>>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
}

#[derive(Deserialize)]
struct Row {
    cells: Vec<Value>,
    object: PartialObject,
}

/// What is taken of an object's metadata.
#[derive(Deserialize)]
struct PartialObject {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct SecretList {
    metadata: ListMeta,
    #[serde(default)]
    items: Option<Vec<Secret>>,
}

#[derive(Deserialize)]
struct Secret {
    metadata: Metadata,
    #[serde(rename = "type", default)]
    of_type: Option<String>,
    /// The values are passed over, not kept.
    #[serde(default)]
    data: Option<BTreeMap<String, IgnoredAny>>,
}

fn page_of(list: List) -> Page {
    let (next, version) = (list.next().to_owned(), list.resource_version().to_owned());
    Page { next, version, objects: list.into_objects().collect() }
}

fn page_of_table(text: &[u8]) -> Result<Page, PageError> {
    let table: Table = serde_json::from_slice(text).map_err(PageError::NoList)?;
    let (next, version) = position(&table.metadata);
    Ok(Page { next, version, objects: table.objects().collect() })
}

fn page_of_secrets(text: &[u8]) -> Result<Page, PageError> {
    let list: SecretList = serde_json::from_slice(text).map_err(PageError::NoList)?;
    let (next, version) = position(&list.metadata);
    let objects = list.items.into_iter().flatten().map(Secret::object).collect();
    Ok(Page { next, version, objects })
}

fn position(metadata: &ListMeta) -> (String, String) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (text(&metadata.continue_), text(&metadata.resource_version))
}

impl Secret {
    fn object(self) -> Value {
        let keys = self.data.unwrap_or_default();
        let keys: Map<String, Value> = keys.into_keys().map(|key| (key, Value::Null)).collect();
        object(&self.metadata, self.of_type.map(Value::from), Some(Value::Object(keys)))
    }
}

impl Table {
    fn objects(self) -> impl Iterator<Item = Value> {
        // Without definitions it is where it has always been: after the name.
        let place = match &self.column_definitions {
            Some(columns) => columns.iter().position(|column| column.name == TYPE_COLUMN),
            None => Some(1),
        };
        self.rows.into_iter().flatten().map(move |row| {
            let of_type = place.and_then(|place| row.cells.get(place).cloned());
            object(&row.object.metadata, of_type, None)
        })
    }
}

fn object(metadata: &Metadata, of_type: Option<Value>, data: Option<Value>) -> Value {
    let Metadata { name, namespace, uid, resource_version, labels } = metadata;
    let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
        "name": name, "namespace": namespace, "uid": uid, "resourceVersion": resource_version}});
    let mut add = |place: &str, key: &str, value: Option<Value>| {
        if let (Some(Value::Object(map)), Some(value)) = (object.pointer_mut(place), value) {
            map.insert(key.to_owned(), value);
        }
    };
    add("/metadata", "labels", labels.as_ref().map(|labels| json!(labels)));
    add("", "type", of_type);
    add("", "data", data);
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_list_of_secrets_the_names_of_keys_are_kept_and_no_value() {
        let text = json!({"metadata": {"continue": "c", "resourceVersion": "7"}, "items": [
            {"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5",
                "labels": {"l": "1"}, "annotations": {"last-applied": "hunter2"}},
             "type": "Opaque", "data": {"password": "hunter2", "user": "hunter2"}},
            {"metadata": {"name": "b"}}]});
        let page = page_of_secrets(text.to_string().as_bytes()).unwrap();
        assert_eq!((page.next.as_str(), page.version.as_str()), ("c", "7"));
        let first = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5",
                "labels": {"l": "1"}},
            "data": {"password": null, "user": null}});
        assert_eq!(page.objects[0], first);
        assert_eq!(page.objects[1]["data"], json!({}));
        let mut event = text["items"][0].clone();
        event["data"]["user"] = json!("changed");
        assert_eq!(Parts::SecretKeys.object(event), first, "nor of an event");
    }

    #[test]
    fn the_type_of_a_secret_is_read_in_its_column_with_and_without_definitions() {
        let row = |name: &str| {
            json!({"cells": [name, "kubernetes.io/tls", 2, "1d"],
                "object": {"metadata": {"name": name, "namespace": "n", "resourceVersion": "5"}}})
        };
        let columns = json!([{"name": "Name"}, {"name": "Type"}, {"name": "Data"}]);
        let list = json!({"kind": "Table", "metadata": {"resourceVersion": "7"},
            "columnDefinitions": columns, "rows": [row("a"), row("b")]});
        let page = page_of_table(list.to_string().as_bytes()).unwrap();
        assert_eq!((page.next.as_str(), page.version.as_str()), ("", "7"));
        assert_eq!(page.objects.len(), 2);
        assert_eq!(page.objects[1]["metadata"]["name"], "b");
        let event = json!({"kind": "Table", "metadata": {}, "rows": [row("c")]});
        for object in [page.objects[0].clone(), Parts::SecretType.object(event)] {
            assert_eq!(object["type"], "kubernetes.io/tls");
            assert_eq!(object["metadata"]["resourceVersion"], "5");
        }
        let empty = json!({"metadata": {}, "columnDefinitions": columns, "rows": null});
        assert!(page_of_table(empty.to_string().as_bytes()).unwrap().objects.is_empty());
    }
}
