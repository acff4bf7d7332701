//! The events of a watch as the API server writes them, a JSON text to a line, and how a line of them is read. kube reads
//! all of a line, whatever it weighs, and all of the object in it.

use std::cell::Cell;
use std::fmt;
use std::io;

use futures::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use kube::core::Status;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::levels::{ObjectReader, Part};

/// Of one event in bytes: as much as of a list of one object.
pub(super) const LARGEST: u64 = 16 << 20;

/// One event.
#[derive(Debug)]
pub(super) enum WatchEvent {
    /// An object is new or different.
    Applied(Value),
    /// An object is gone.
    Deleted(Value),
    /// Nothing changed up to this version.
    Bookmark(String),
    /// The watch is over.
    Error(Box<Status>),
}

impl WatchEvent {
    /// Reads a line, and so much of the object in it.
    pub(super) fn read(text: &[u8], part: Part<'_>) -> serde_json::Result<Self> {
        let Ok(Type { of_type }) = serde_json::from_slice(text) else {
            // What refuses a watch that has begun to be answered is no event.
            return Ok(Self::Error(serde_json::from_slice(text)?));
        };
        let object = || {
            let mut text = serde_json::Deserializer::from_slice(text);
            EventReader(part).deserialize(&mut text)
        };
        Ok(match of_type.as_str() {
            "ADDED" | "MODIFIED" => Self::Applied(object()?),
            "DELETED" => Self::Deleted(object()?),
            "BOOKMARK" => Self::Bookmark(
                serde_json::from_slice::<Bookmark>(text)?.object.metadata.resource_version,
            ),
            "ERROR" => Self::Error(Box::new(serde_json::from_slice::<Failed>(text)?.object)),
            other => {
                return Err(serde_json::Error::custom(format!(
                    "there are no events of type {other:?}"
                )));
            }
        })
    }
}

/// Reads the next line; `None` at the end, also where a connection ended within a line, which is how an API server that
/// goes ends them.
pub(super) async fn next_line(
    lines: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if let Err(error) = lines.take(LARGEST + 1).read_until(b'\n', &mut line).await {
        return if is_end(&error) { Ok(None) } else { Err(error) };
    }
    if line.ends_with(b"\n") {
        return Ok(Some(line));
    }
    if line.len() as u64 > LARGEST {
        let text = format!("an event is larger than {} MiB", LARGEST >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(None)
}

/// Whether an error says that the connection ended. hyper says so of a chunk in its text only.
fn is_end(error: &io::Error) -> bool {
    if error.to_string().contains("unexpected EOF during chunk") {
        return true;
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let of_io = error.downcast_ref::<io::Error>();
        if of_io.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
            return true;
        }
        // An error of I/O hands on the source of what it wraps, not that itself.
        let wrapped = of_io.and_then(io::Error::get_ref);
        cause = wrapped.map(|wrapped| wrapped as _).or_else(|| error.source());
    }
    false
}

#[derive(Deserialize)]
struct Type {
    #[serde(rename = "type")]
    of_type: String,
}

#[derive(Deserialize)]
struct Failed {
    object: Status,
}

#[derive(Deserialize)]
struct Bookmark {
    object: BookmarkObject,
}

#[derive(Deserialize)]
struct BookmarkObject {
    metadata: BookmarkMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata {
    resource_version: String,
}

struct EventReader<'p>(Part<'p>);

impl<'de> DeserializeSeed<'de> for EventReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EventReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "object" => {
                    // As much as one object may have.
                    let values = Cell::new(usize::MAX);
                    object = Some(map.next_value_seed(ObjectReader::new(self.0, &values))?);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        object.ok_or_else(|| A::Error::missing_field("object"))
    }
}
