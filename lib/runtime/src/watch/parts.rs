//! How much of the objects a watch asks for, and how a list of it is read. What is not wanted is not
//! held: Secrets weigh up to a megabyte each, and a namespace may have hundreds of them. Nor is more of a
//! list than a page, which is bounded in bytes.
//!
//! The API server can leave the data of Secrets out, but gives the type only in the columns that it
//! makes for people (`Table`). The names of keys it gives in whole Secrets only; those come a few at a
//! time, and their values are skipped as they are read.

use std::sync::Arc;

use kube::Client;
use serde_json::{Value, json};

use super::event::WatchEvent;
use crate::declared::Declared;
use crate::levels::Part;
use crate::list::{List, METADATA_LIST, PageError, read_objects, read_table};

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
    /// What is declared of the metadata.
    DeclaredMetadata(Arc<Declared>),
    /// Of Secrets: what is declared of their metadata, and the type. See [`Parts::secret_type`].
    SecretType(Arc<Declared>),
    /// Of Secrets: what is declared, and of `data` the names of the keys, each with `null`.
    SecretKeys(Arc<Declared>),
}

/// One page of a list.
pub(super) struct Page {
    pub(super) next: String,
    pub(super) version: String,
    pub(super) objects: Vec<Value>,
}

/// Where the API server says the type of a Secret.
const TYPE_COLUMN: &str = "Type";
/// What is read of a table besides the objects in its rows.
const OF_TABLE: [&str; 7] = [
    "/metadata/continue",
    "/columnDefinitions/*/name",
    "/rows/*/cells",
    "/rows/*/object/metadata/name",
    "/rows/*/object/metadata/namespace",
    "/rows/*/object/metadata/uid",
    "/rows/*/object/metadata/resourceVersion",
];

impl Parts {
    /// Of Secrets the type, and what these JSON pointers are of their metadata. They come in the rows of a table.
    #[must_use]
    pub fn secret_type<'p>(pointers: impl IntoIterator<Item = &'p str>) -> Self {
        let of_rows: Vec<String> =
            pointers.into_iter().map(|pointer| format!("/rows/*/object{pointer}")).collect();
        let keys = OF_TABLE.into_iter().chain(of_rows.iter().map(String::as_str));
        Self::SecretType(Arc::new(Declared::new([], keys)))
    }

    /// How many objects a page has, unless they are larger than a page may be: then it is halved.
    pub(super) fn page(&self) -> u32 {
        match self {
            Self::All
            | Self::WithManagers
            | Self::Declared(_)
            | Self::Metadata
            | Self::DeclaredMetadata(_)
            | Self::SecretType(_) => 100,
            Self::SecretKeys(_) => 10,
        }
    }

    /// The media type to ask for.
    pub(super) fn accept(&self, is_list: bool) -> &'static str {
        match (self, is_list) {
            (Self::All | Self::WithManagers | Self::Declared(_) | Self::SecretKeys(_), _) => {
                "application/json"
            }
            (Self::Metadata | Self::DeclaredMetadata(_), true) => METADATA_LIST,
            (Self::Metadata | Self::DeclaredMetadata(_), false) => {
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
            }
            (Self::SecretType(_), _) => "application/json;as=Table;g=meta.k8s.io;v=v1",
        }
    }

    /// What else the request has to say.
    pub(super) fn query(&self) -> &'static str {
        if matches!(self, Self::SecretType(_)) { "&includeObject=Metadata" } else { "" }
    }

    /// How much is read of an object, or of a table.
    fn part(&self) -> Part<'_> {
        match self {
            Self::Declared(declared)
            | Self::DeclaredMetadata(declared)
            | Self::SecretType(declared) => Part::Declared(declared),
            Self::SecretKeys(declared) => Part::DeclaredWithNames(declared),
            Self::WithManagers => Part::Whole,
            Self::All | Self::Metadata => Part::Lean,
        }
    }

    /// Reads one page. All are bounded alike, in bytes and in values that are read.
    pub(super) async fn read_page(
        &self,
        client: &Client,
        request: http::Request<Vec<u8>>,
        limit: u32,
    ) -> Result<Page, PageError> {
        let part = self.part();
        if matches!(self, Self::SecretType(_)) {
            return read_table(client, request, limit, part).await.map(page_of_table);
        }
        Ok(page_of(read_objects(client, request, limit, part).await?))
    }

    /// Reads an event of a watch.
    pub(super) fn read_event(&self, text: &[u8]) -> serde_json::Result<WatchEvent> {
        Ok(match WatchEvent::read(text, self.part())? {
            WatchEvent::Applied(object) => WatchEvent::Applied(self.object(object)),
            WatchEvent::Deleted(object) => WatchEvent::Deleted(self.object(object)),
            other => other,
        })
    }

    /// A table has one row in an event. What is none has no type.
    fn object(&self, object: Value) -> Value {
        match self {
            Self::SecretType(_) => objects_of_table(object).next().unwrap_or_default(),
            _ => object,
        }
    }
}

fn page_of(list: List) -> Page {
    let (next, version) = (list.next().to_owned(), list.resource_version().to_owned());
    Page { next, version, objects: list.into_objects().collect() }
}

fn page_of_table(table: Value) -> Page {
    let text = |pointer| table.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (next, version) = (text("/metadata/continue"), text("/metadata/resourceVersion"));
    let (next, version) = (next.to_owned(), version.to_owned());
    Page { next, version, objects: objects_of_table(table).collect() }
}

fn objects_of_table(mut table: Value) -> impl Iterator<Item = Value> {
    let columns = table.get("columnDefinitions").and_then(Value::as_array);
    // In a watch only the first event has them; they are the same in all: the type comes after the name.
    let place = columns.map_or(Some(1), |columns| {
        columns.iter().position(|column| column.get("name") == Some(&json!(TYPE_COLUMN)))
    });
    let rows = match table.get_mut("rows").map(Value::take) {
        Some(Value::Array(rows)) => rows,
        _ => Vec::new(),
    };
    rows.into_iter().map(move |mut row| {
        let of_type = place.and_then(|place| row.get_mut("cells")?.get_mut(place).map(Value::take));
        let mut object = row.get_mut("object").map(Value::take).unwrap_or_default();
        if let (Value::Object(fields), Some(of_type)) = (&mut object, of_type) {
            fields.insert("type".to_owned(), of_type);
        }
        object
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde::de::DeserializeSeed as _;

    use super::*;
    use crate::levels::ObjectReader;

    /// Of one object, or of a table.
    fn read(parts: &Parts, text: &Value) -> Value {
        let text = text.to_string();
        let mut text = serde_json::Deserializer::from_str(&text);
        let values = Cell::new(usize::MAX);
        ObjectReader::new(parts.part(), &values).deserialize(&mut text).unwrap()
    }

    #[test]
    fn of_secrets_the_names_of_keys_are_kept_and_no_value_and_no_more_than_is_declared() {
        let secret = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5",
                "labels": {"l": "1"}, "annotations": {"last-applied": "hunter2"}},
             "type": "Opaque", "data": {"password": "hunter2", "user": "hunter2"}});
        let named = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5"});
        let parts = |pointers: &[&str]| {
            let declared = Declared::new(pointers.iter().copied(), []);
            read(&Parts::SecretKeys(Arc::new(declared)), &secret)
        };
        let data = json!({"password": null, "user": null});
        assert_eq!(parts(&["/data"]), json!({"metadata": named, "data": data}));
        assert_eq!(parts(&["/type"]), json!({"metadata": named, "type": "Opaque"}));
        let all = parts(&["/type", "/data", "/metadata/labels"]);
        assert_eq!((&all["data"], &all["type"]), (&data, &json!("Opaque")));
        assert_eq!(all["metadata"]["labels"], json!({"l": "1"}));
        // By no pointer is a value read.
        assert_eq!(parts(&[""])["data"], data);
        assert_eq!(parts(&["/data/password"])["data"], data);
    }

    #[test]
    fn the_type_of_a_secret_is_read_in_its_column_with_and_without_definitions() {
        let row = |name: &str| {
            json!({"cells": [name, "kubernetes.io/tls", 2, "1d"], "object": {"metadata": {"name": name,
                "namespace": "n", "resourceVersion": "5", "labels": {"l": "1"}, "annotations": {"a": "b"}}}})
        };
        let columns = json!([{"name": "Name"}, {"name": "Type"}, {"name": "Data"}]);
        let list = json!({"kind": "Table", "metadata": {"resourceVersion": "7", "continue": "c"},
            "columnDefinitions": columns, "rows": [row("a"), row("b")]});
        let parts = Parts::secret_type(["/type"]);
        let page = page_of_table(read(&parts, &list));
        assert_eq!((page.next.as_str(), page.version.as_str()), ("c", "7"));
        let named = |name: &str| json!({"name": name, "namespace": "n", "resourceVersion": "5"});
        let object = |name: &str| json!({"type": "kubernetes.io/tls", "metadata": named(name)});
        assert_eq!(page.objects, [object("a"), object("b")]);
        let event = json!({"kind": "Table", "metadata": {}, "rows": [row("c")]});
        assert_eq!(parts.object(read(&parts, &event)), object("c"));
        let labels = Parts::secret_type(["/type", "/metadata/labels"]);
        let labelled = labels.object(read(&labels, &event));
        assert_eq!(labelled["metadata"]["labels"], json!({"l": "1"}));
        let empty = json!({"metadata": {}, "columnDefinitions": columns, "rows": null});
        assert!(page_of_table(read(&parts, &empty)).objects.is_empty());
    }
}
