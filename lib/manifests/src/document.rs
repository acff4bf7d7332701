//! One object of a manifest: its value, and where each of its fields is. Documents are made by
//! [`read`](crate::read) only.

use std::sync::Arc;

use serde_json::Value;

use crate::comment::Comment;
use crate::source_map::{FieldSpan, SourceMap};

/// One object, as the API server will get it.
#[derive(Clone, Debug)]
pub struct Document {
    /// The object. Changing it does not change the places.
    pub value: Value,
    origin: String,
    places: SourceMap,
    comments: Arc<[Comment]>,
}

impl Document {
    pub(crate) const fn new(
        value: Value,
        origin: String,
        places: SourceMap,
        comments: Arc<[Comment]>,
    ) -> Self {
        Self { value, origin, places, comments }
    }

    /// Where a field is, by its JSON pointer in [`value`](Self::value); the root is `""`.
    /// None where the document has no such field, as with one that a default or a policy adds.
    #[must_use]
    pub fn span(&self, pointer: &str) -> Option<FieldSpan> {
        self.places.at(pointer)
    }

    /// Where the field is or, if the document has it not, the innermost field around it that
    /// it has.
    #[must_use]
    pub fn nearest(&self, pointer: &str) -> FieldSpan {
        let mut pointer = pointer;
        loop {
            if let Some(place) = self.places.at(pointer) {
                return place;
            }
            match pointer.rfind('/').and_then(|end| pointer.get(..end)) {
                Some(shorter) => pointer = shorter,
                None => return FieldSpan { key: None, value: self.places.span },
            }
        }
    }

    /// The pointer at which the object is in the document as written: `""`, or `/items/3` for
    /// an entry of a list of objects.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// All comments of the document as written; the entries of a list share them.
    #[must_use]
    pub fn comments(&self) -> &[Comment] {
        &self.comments
    }

    /// `apiVersion`, if it is a text.
    #[must_use]
    pub fn api_version(&self) -> Option<&str> {
        self.value.get("apiVersion")?.as_str()
    }

    /// `kind`, if it is a text.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.value.get("kind")?.as_str()
    }

    /// `metadata.namespace`, if it is a text.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.value.pointer("/metadata/namespace")?.as_str()
    }

    /// `metadata.name`, if it is a text.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.value.pointer("/metadata/name")?.as_str()
    }
}
