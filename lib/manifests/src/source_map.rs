//! Where each key and value of a document is in its text. Aliased parts are shared, so that many aliases of
//! one anchor cost no more than one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::source::Span;

/// Where a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSpan {
    /// The key of a field of a mapping; none for an entry of a list and for the document itself.
    pub key: Option<Span>,
    /// The value. Of a field without a value it is the key.
    pub value: Span,
}

/// The place of a value, and those of what is in it.
#[derive(Clone, Debug)]
pub(crate) struct SourceMap {
    pub(crate) span: Span,
    inside: Inside,
}

#[derive(Clone, Debug)]
enum Inside {
    Nothing,
    Items(Arc<Vec<SourceMap>>),
    Fields(Arc<Fields>),
}

/// The fields of a mapping: where the key is, and the value's places.
pub(crate) type Fields = BTreeMap<String, (Span, SourceMap)>;

impl SourceMap {
    pub(crate) const fn of_scalar(span: Span) -> Self {
        Self { span, inside: Inside::Nothing }
    }

    pub(crate) fn of_list(span: Span, items: Vec<Self>) -> Self {
        Self { span, inside: Inside::Items(Arc::new(items)) }
    }

    pub(crate) fn of_mapping(span: Span, fields: Fields) -> Self {
        Self { span, inside: Inside::Fields(Arc::new(fields)) }
    }

    /// The same value at another place: an alias.
    pub(crate) fn seen_at(&self, span: Span) -> Self {
        Self { span, inside: self.inside.clone() }
    }

    /// The fields, where it is a mapping.
    pub(crate) fn fields(&self) -> Option<&Fields> {
        match &self.inside {
            Inside::Fields(fields) => Some(fields),
            Inside::Nothing | Inside::Items(_) => None,
        }
    }

    /// The place at a JSON pointer.
    pub(crate) fn at(&self, pointer: &str) -> Option<FieldSpan> {
        let (key, places) = self.find(pointer)?;
        Some(FieldSpan { key, value: places.span })
    }

    pub(crate) fn find(&self, pointer: &str) -> Option<(Option<Span>, &Self)> {
        let mut found = (None, self);
        if pointer.is_empty() {
            return Some(found);
        }
        for part in pointer.strip_prefix('/')?.split('/') {
            found = match &found.1.inside {
                Inside::Nothing => return None,
                Inside::Items(items) => (None, items.get(part.parse::<usize>().ok()?)?),
                Inside::Fields(fields) => {
                    let (key, places) = fields.get(unescape(part).as_str())?;
                    (Some(*key), places)
                }
            };
        }
        Some(found)
    }
}

/// A pointer one level deeper.
pub fn join(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}
