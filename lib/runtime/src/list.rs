//! One page of a list, as the API server writes it, and how it is read: not more of it than a bound in bytes.
//! Deliberately not here: what is asked for, and what is done about a position that is lost.

use std::cell::Cell;
use std::fmt;

use futures::AsyncReadExt as _;
use kube::Client;
use kube::core::ListMeta;
use serde::Deserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

use crate::levels::{ObjectReader, Part};

/// The media type of a list of metadata alone.
pub const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Of several whole objects, as JSON; in memory they are several times as much.
pub const LARGEST_PAGE: u64 = 8 << 20;
/// Of one. etcd takes none of two megabytes, but what is stored as protobuf is more as JSON: `<` is six bytes there.
const LARGEST_OBJECT: u64 = 16 << 20;

/// So many values of several whole objects, at any depth. In memory each is a hundred bytes or more, however short its
/// text: a member of an object of its own is six hundred.
const MOST_VALUES: usize = 100_000;

/// The largest answer with so many objects.
fn largest(limit: u32) -> u64 {
    if limit > 1 { LARGEST_PAGE } else { LARGEST_OBJECT }
}

/// The most values of so many objects.
fn most_values(limit: u32) -> usize {
    if limit > 1 { MOST_VALUES } else { usize::MAX }
}

/// Reads a whole text by a reader that may make so many `values`.
fn read_text<'de, R: DeserializeSeed<'de>>(
    text: &'de [u8],
    reader: R,
    values: &Cell<usize>,
) -> Result<R::Value, PageError> {
    let mut text = serde_json::Deserializer::from_slice(text);
    let read = reader.deserialize(&mut text);
    let whole = read.and_then(|read| text.end().map(|()| read));
    // None is left where one was missing.
    whole.map_err(|error| match values.get() {
        0 => PageError::TooMany,
        _ => PageError::NoList(error),
    })
}

/// Reads one object that anybody may have written: kube's own calls give up what is nested deep, and log all of it.
///
/// # Errors
/// The API server refuses it or cannot be reached, or its answer is no object.
pub async fn read_object<I: DeserializeOwned>(
    client: &Client,
    request: http::Request<Vec<u8>>,
) -> kube::Result<I> {
    let text = read_bounded(client, request, LARGEST_OBJECT).await?;
    serde_json::from_slice(&text).map_err(kube::Error::SerdeError)
}

/// Why a page was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    #[error(transparent)]
    Call(#[from] kube::Error),
    #[error("read the answer")]
    Read(#[source] std::io::Error),
    #[error("the answer is larger than {} MiB", .most >> 20)]
    TooLarge { most: u64 },
    #[error("the answer has more than {MOST_VALUES} values")]
    TooMany,
    /// Without its text, which may be a Secret's.
    #[error("the answer is no list")]
    NoList(#[source] serde_json::Error),
}

impl PageError {
    /// Whether fewer objects may be read.
    pub(crate) fn asks_for_fewer(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::TooMany)
    }
}

/// Reads the answer to a request for so many objects, and so much of each.
pub(crate) async fn read_objects(
    client: &Client,
    request: http::Request<Vec<u8>>,
    limit: u32,
    part: Part<'_>,
) -> Result<List, PageError> {
    let text = read_bounded(client, request, largest(limit)).await?;
    List::read(&text, part, most_values(limit))
}

/// Reads the answer to a request for a table of so many rows, and so much of it.
pub(crate) async fn read_table(
    client: &Client,
    request: http::Request<Vec<u8>>,
    limit: u32,
    part: Part<'_>,
) -> Result<Value, PageError> {
    let text = read_bounded(client, request, largest(limit)).await?;
    let values = Cell::new(most_values(limit));
    read_text(&text, ObjectReader::new(part, &values), &values)
}

/// Reads an answer of at most so many bytes. Not by `Client::request`, which reads all of one, and logs one that it
/// cannot read.
pub(crate) async fn read_bounded(
    client: &Client,
    request: http::Request<Vec<u8>>,
    most: u64,
) -> Result<Vec<u8>, PageError> {
    let mut text = Vec::new();
    let answer = std::pin::pin!(client.request_stream(request).await?);
    let length = answer.take(most + 1).read_to_end(&mut text).await.map_err(PageError::Read)?;
    if length as u64 > most { Err(PageError::TooLarge { most }) } else { Ok(text) }
}

/// A page that cannot be read is no answer.
impl From<PageError> for kube::Error {
    fn from(error: PageError) -> Self {
        match error {
            PageError::Call(error) => error,
            PageError::NoList(error) => Self::SerdeError(error),
            other => Self::Service(Box::new(other)),
        }
    }
}

/// Reads a page of `limit` objects, or of as many fewer as a page takes; `limit` is that then. They are without
/// `managedFields`.
///
/// `query`: the path, and all that is asked for but the limit.
///
/// # Errors
/// The API server refuses it or cannot be reached, or its answer is no list.
pub async fn page(
    client: &Client,
    query: &str,
    accept: &str,
    limit: &mut u32,
) -> kube::Result<List> {
    loop {
        let request = http::Request::get(format!("{query}&limit={limit}"))
            .header(http::header::ACCEPT, accept)
            .body(Vec::new())
            .map_err(kube::Error::HttpError)?;
        match read_objects(client, request, *limit, Part::Lean).await {
            Err(error) if error.asks_for_fewer() && *limit > 1 => *limit /= 2,
            list => return Ok(list?),
        }
    }
}

/// One page of a list.
#[derive(Debug, Default)]
pub struct List {
    api_version: String,
    kind: String,
    metadata: ListMeta,
    items: Vec<Value>,
}

impl List {
    /// Reads the text of an answer, and so much of each object, but of all together no more than so many values.
    pub(crate) fn read(text: &[u8], part: Part<'_>, most: usize) -> Result<Self, PageError> {
        let values = Cell::new(most);
        read_text(text, ListReader { part, values: &values }, &values)
    }

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
        items.into_iter().map(move |mut item| {
            if let Value::Object(map) = &mut item {
                map.entry("apiVersion").or_insert_with(|| api_version.clone().into());
                map.entry("kind").or_insert_with(|| kind.clone().into());
            }
            item
        })
    }
}

struct ListReader<'p> {
    part: Part<'p>,
    values: &'p Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for ListReader<'_> {
    type Value = List;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<List, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ListReader<'_> {
    type Value = List;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<List, A::Error> {
        let (mut list, mut metadata) = (List::default(), None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "apiVersion" => list.api_version = map.next_value()?,
                "kind" => list.kind = map.next_value()?,
                "metadata" => metadata = Some(map.next_value()?),
                "items" => list.items = map.next_value_seed(ItemsReader(&self))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        // Without it the answer is no list, however empty.
        list.metadata = metadata.ok_or_else(|| A::Error::missing_field("metadata"))?;
        Ok(list)
    }
}

struct ItemsReader<'r, 'p>(&'r ListReader<'p>);

impl<'de> DeserializeSeed<'de> for ItemsReader<'_, '_> {
    type Value = Vec<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Value>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ItemsReader<'_, '_> {
    type Value = Vec<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    /// An empty list of metadata has `null` here.
    fn visit_unit<E>(self) -> Result<Vec<Value>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<Value>, A::Error> {
        let mut objects = Vec::new();
        let ListReader { part, values } = *self.0;
        while let Some(object) = items.next_element_seed(ObjectReader::new(part, values))? {
            objects.push(object);
        }
        Ok(objects)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::declared::Declared;

    #[test]
    fn of_values_only_those_count_that_are_read() {
        let many = json!({"metadata": {"name": "a"}, "list": vec![0; 50], "other": vec![json!({"a": 1}); 50]});
        let list = json!({"metadata": {}, "items": [many, many]}).to_string();
        let read = |part: Part<'_>, most| List::read(list.as_bytes(), part, most);
        // The object, metadata, its name, two lists, and what is in these.
        let whole = 2 * (5 + 50 + 100);
        assert!(read(Part::Lean, whole + 1).is_ok());
        assert!(matches!(read(Part::Lean, whole - 1), Err(PageError::TooMany)));
        let declared = Declared::new(["/list"], []);
        assert!(read(Part::Declared(&declared), 2 * (4 + 50) + 1).is_ok());
        assert!(matches!(read(Part::Declared(&declared), 100), Err(PageError::TooMany)));
        assert!(matches!(List::read(b"[", Part::Lean, 9), Err(PageError::NoList(_))));
    }

    #[test]
    fn an_empty_list_may_say_null() {
        for items in [json!({"items": null}), json!({"items": []}), json!({})] {
            let mut list = json!({"kind": "PartialObjectMetadataList", "metadata": {}});
            list.as_object_mut().unwrap().extend(items.as_object().unwrap().clone());
            let list = List::read(list.to_string().as_bytes(), Part::Whole, usize::MAX).unwrap();
            assert_eq!(list.next(), "");
            assert_eq!(list.into_objects().count(), 0);
        }
        for no_list in
            [r#"{"items":[]}"#, r#"{"metadata":{},"items":[7]}"#, "[]", r#"{"metadata":{}}{}"#]
        {
            assert!(List::read(no_list.as_bytes(), Part::Whole, usize::MAX).is_err(), "{no_list}");
        }
    }

    #[test]
    fn a_lean_object_lacks_nothing_but_its_managed_fields() {
        let list = json!({"kind": "ZookeeperList", "apiVersion": "g/v1", "metadata": {}, "items": [{
            "metadata": {"name": "a", "managedFields": [{"manager": "m"}], "labels": {"managedFields": "b"}},
            "spec": {"metadata": {"managedFields": 1}, "list": [1, null]}}]});
        let list = List::read(list.to_string().as_bytes(), Part::Lean, usize::MAX).unwrap();
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
        let list = List::read(list.to_string().as_bytes(), Part::Whole, usize::MAX).unwrap();
        assert_eq!((list.next(), list.resource_version()), ("next", "7"));
        let objects: Vec<_> = list.into_objects().collect();
        let named = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}});
        assert_eq!(objects, [named, json!({"apiVersion": "v2", "kind": "Other"})]);
    }
}
