//! Objects that anybody may have written, read to a bounded depth. `serde_json` gives up after 128 levels, and what
//! is given up is the whole list or watch of a kind because of one object in it.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use crate::declared::{Declared, Wanted};

/// So many levels of an object are read, its own the first of them. What a list and a watch have around an object is
/// on top of that, and all of it is less than `serde_json` takes.
pub const MOST_LEVELS: usize = 120;

/// Is in an object of which something was left out. What is read of that name is passed over.
const CUT: &str = "opensdn.io/cut";
/// Of `metadata`: who has written which field.
const MANAGED_FIELDS: &str = "managedFields";
/// Of a Secret: its keys with their values.
const DATA: &str = "data";

/// The object has more than [`MOST_LEVELS`] levels: what lies deeper is `null` in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is nested more than {MOST_LEVELS} levels deep")]
pub struct TooDeep;

/// Whether the object is all that is stored.
///
/// # Errors
/// It is not.
pub fn check(object: &Value) -> Result<(), TooDeep> {
    if object.get(CUT).is_some() { Err(TooDeep) } else { Ok(()) }
}

/// Whether a list and a watch will have all of the object whose JSON text it is, which has been read as such before.
///
/// # Errors
/// They will not.
pub fn check_text(object: &str) -> Result<(), TooDeep> {
    if levels_of_text(object) > MOST_LEVELS { Err(TooDeep) } else { Ok(()) }
}

/// How many levels a JSON text has, which has been read as such before.
#[must_use]
pub fn levels_of_text(text: &str) -> usize {
    let (mut level, mut most) = (0_usize, 0);
    for byte in outside_strings(text.as_bytes()) {
        match byte {
            b'{' | b'[' => {
                level += 1;
                most = most.max(level);
            }
            b'}' | b']' => level = level.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// The bytes that are in none of its strings.
fn outside_strings(text: &[u8]) -> impl Iterator<Item = u8> {
    let (mut in_string, mut is_escaped) = (false, false);
    text.iter().copied().filter(move |byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ => return !in_string,
        }
        false
    })
}

/// How many levels a value has; none where it is no list and no map.
#[must_use]
pub fn levels(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(levels).max(),
        Value::Object(map) => map.values().map(levels).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or_default()
}

/// A whole object.
#[derive(Clone, Debug)]
pub struct Whole(Value);

/// An object without `metadata.managedFields`. These may be most of it, and what is a byte of JSON there is a
/// hundred in memory.
#[derive(Clone, Debug)]
pub struct Lean(Value);

impl Whole {
    /// The object without a word on what was left out, for who looks at nothing that lies so deep.
    #[must_use]
    pub fn without_mark(self) -> Value {
        let mut object = self.0;
        if let Value::Object(map) = &mut object {
            map.remove(CUT);
        }
        object
    }
}

impl From<Whole> for Value {
    fn from(Whole(object): Whole) -> Self {
        object
    }
}

impl From<Lean> for Value {
    fn from(Lean(object): Lean) -> Self {
        object
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ObjectReader::new(Part::Whole, &Cell::new(usize::MAX)).deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Lean {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ObjectReader::new(Part::Lean, &Cell::new(usize::MAX)).deserialize(deserializer).map(Self)
    }
}

/// What is read of each object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'p> {
    /// All that there is.
    Whole,
    /// All but `metadata.managedFields`.
    Lean,
    /// What is declared.
    Declared(&'p Declared),
    /// The same, but of `data`, which is a Secret's, no more than the names of its members, whatever is declared.
    DeclaredWithNames(&'p Declared),
}

/// Reads one object, or what is wanted of it.
pub(crate) struct ObjectReader<'p> {
    inside: Inside<'p>,
    values: &'p Cell<usize>,
}

impl<'p> ObjectReader<'p> {
    /// `values` is how many values may be made, and is made less by each.
    pub(crate) fn new(part: Part<'p>, values: &'p Cell<usize>) -> Self {
        let inside = match part {
            Part::Whole => Inside::Whole,
            Part::Lean => Inside::LeanObject,
            Part::Declared(declared) => Inside::of_object(declared.root()),
            Part::DeclaredWithNames(declared) => Inside::SecretObject(declared.root()),
        };
        Self { inside, values }
    }
}

impl<'de> DeserializeSeed<'de> for ObjectReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let is_cut = Cell::new(false);
        let Self { inside, values } = self;
        let reader = Reader { inside, left: MOST_LEVELS, is_cut: &is_cut, values };
        let mut value = reader.deserialize(deserializer)?;
        let Value::Object(object) = &mut value else {
            return Err(D::Error::custom("an object was expected"));
        };
        // Who writes the object may write that name, too.
        object.remove(CUT);
        if is_cut.get() {
            object.insert(CUT.to_owned(), Value::Bool(true));
        }
        Ok(value)
    }
}

/// What is read of a value.
#[derive(Clone, Debug)]
enum Inside<'p> {
    /// All that there is.
    Whole,
    /// Of an object everything, of its metadata no `managedFields`.
    LeanObject,
    /// Of metadata everything else.
    LeanMetadata,
    /// Of an object these members.
    WantedObject(Wanted<'p>),
    /// Of metadata these, and never `managedFields`.
    WantedMetadata(Wanted<'p>),
    /// Of a Secret these members, of its data the names.
    SecretObject(Wanted<'p>),
    /// The names of the members, each with `null`.
    Names,
    /// That it is there.
    Nothing,
    /// These members and items.
    Wanted(Wanted<'p>),
}

impl<'p> Inside<'p> {
    fn of_object(wanted: Wanted<'p>) -> Self {
        if wanted.is_whole() { Self::LeanObject } else { Self::WantedObject(wanted) }
    }

    fn of_metadata(wanted: Wanted<'p>) -> Self {
        if wanted.is_whole() { Self::LeanMetadata } else { Self::WantedMetadata(wanted) }
    }

    fn of(wanted: Wanted<'p>) -> Self {
        if wanted.is_whole() { Self::Whole } else { Self::Wanted(wanted) }
    }

    /// Of the member of that name; `None` where it is passed over.
    fn member(&self, key: &str) -> Option<Self> {
        match self {
            Self::LeanMetadata | Self::WantedMetadata(_) if key == MANAGED_FIELDS => None,
            Self::Names | Self::Nothing => Some(Self::Nothing),
            Self::SecretObject(wanted) if key == DATA => {
                (wanted.is_whole() || wanted.member(key).is_some()).then_some(Self::Names)
            }
            Self::SecretObject(wanted) => Self::of_object(wanted.clone()).member(key),
            Self::LeanObject if key == "metadata" => Some(Self::LeanMetadata),
            Self::Whole | Self::LeanObject | Self::LeanMetadata => Some(Self::Whole),
            Self::WantedObject(wanted) if key == "metadata" => {
                wanted.member(key).map(Self::of_metadata)
            }
            Self::WantedObject(wanted) | Self::WantedMetadata(wanted) | Self::Wanted(wanted) => {
                wanted.member(key).map(Self::of)
            }
        }
    }

    fn wanted(&self) -> Option<&Wanted<'p>> {
        match self {
            Self::Whole | Self::LeanObject | Self::LeanMetadata | Self::Names | Self::Nothing => {
                None
            }
            Self::WantedObject(wanted)
            | Self::WantedMetadata(wanted)
            | Self::SecretObject(wanted)
            | Self::Wanted(wanted) => Some(wanted),
        }
    }

    /// Of the item of that number.
    fn item(&self, number: usize) -> Option<Self> {
        match self.wanted() {
            None => Some(Self::Whole),
            Some(wanted) => wanted.item(number).map(Self::of),
        }
    }

    /// Whether nothing from this item on is read.
    fn ends_before(&self, number: usize) -> bool {
        self.wanted().is_some_and(|wanted| wanted.ends_before(number))
    }
}

struct Reader<'c> {
    inside: Inside<'c>,
    left: usize,
    is_cut: &'c Cell<bool>,
    values: &'c Cell<usize>,
}

impl<'c> Reader<'c> {
    /// Of what is one level below.
    fn below(&self, inside: Inside<'c>) -> Self {
        Self { inside, left: self.left - 1, is_cut: self.is_cut, values: self.values }
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.values.get().checked_sub(1);
        self.values.set(left.ok_or_else(|| D::Error::custom("there are more values than may be"))?);
        match self.inside {
            Inside::Nothing => {
                IgnoredAny::deserialize(deserializer)?;
                Ok(Value::Null)
            }
            Inside::Names => {
                let value = deserializer.deserialize_any(self)?;
                Ok(if value.is_object() { value } else { Value::Null })
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        if self.left == 0 {
            self.is_cut.set(true);
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        let mut list = Vec::new();
        loop {
            let item = match self.inside.item(list.len()) {
                _ if self.inside.ends_before(list.len()) => {
                    while items.next_element::<IgnoredAny>()?.is_some() {}
                    None
                }
                Some(inside) => items.next_element_seed(self.below(inside))?,
                // What is behind it keeps its number.
                None => items.next_element::<IgnoredAny>()?.map(|_| Value::Null),
            };
            let Some(item) = item else { return Ok(Value::Array(list)) };
            list.push(item);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        if self.left == 0 {
            self.is_cut.set(true);
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let Some(inside) = self.inside.member(&key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value_seed(self.below(inside))?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// So many levels, as text: a value of them may not be read by `serde_json`.
    fn nested(levels: usize) -> String {
        let (open, close) = (r#"{"a":["#, "]}");
        format!("{}1{}", open.repeat(levels / 2), close.repeat(levels / 2))
    }

    #[test]
    fn an_object_of_any_depth_is_read_and_says_that_it_is_not_whole() {
        // With the object's own level.
        for (of_spec, is_whole) in [(100, true), (118, true), (120, false), (10_000, false)] {
            let text = format!(r#"{{"metadata":{{"name":"a"}},"spec":{},"b":7}}"#, nested(of_spec));
            let lean = Value::from(serde_json::from_str::<Lean>(&text).unwrap());
            let whole = Value::from(serde_json::from_str::<Whole>(&text).unwrap());
            for object in [lean, whole] {
                assert_eq!(check(&object).is_ok(), is_whole, "{of_spec}");
                assert_eq!(levels(&object), (1 + of_spec).min(MOST_LEVELS), "{of_spec}");
                assert_eq!((&object["metadata"]["name"], &object["b"]), (&json!("a"), &json!(7)));
            }
        }
    }

    #[test]
    fn an_object_cannot_say_of_itself_that_it_is_not_whole() {
        let forged = format!(r#"{{"{CUT}":true,"spec":{{"{CUT}":true}}}}"#);
        let expected = json!({"spec": {(CUT): true}});
        for read in [
            Value::from(serde_json::from_str::<Lean>(&forged).unwrap()),
            Value::from(serde_json::from_str::<Whole>(&forged).unwrap()),
        ] {
            assert_eq!((check(&read), &read), (Ok(()), &expected));
        }
    }

    #[test]
    fn a_text_is_too_deep_where_what_is_read_of_it_would_be_cut() {
        for (more, is_whole) in [(MOST_LEVELS - 2, true), (MOST_LEVELS, false)] {
            let braces = r#""{[{[\\","\"[{"#;
            let text = format!(r#"{{"a\"{{":[{braces}"],"b":{}}}"#, nested(more));
            let read = Value::from(serde_json::from_str::<Whole>(&text).unwrap());
            assert_eq!(check(&read).is_ok(), is_whole, "{text}");
            assert_eq!(check_text(&text).is_ok(), is_whole, "{text}");
        }
        let (open, close) = (r#"{"a":"#, "}");
        for (count, expected) in [(MOST_LEVELS, Ok(())), (MOST_LEVELS + 1, Err(TooDeep))] {
            let text = format!("{}1{}", open.repeat(count), close.repeat(count));
            assert_eq!(check_text(&text), expected, "{count}");
        }
    }

    #[test]
    fn what_is_not_too_deep_is_as_it_was_written() {
        let object = json!({"a": [1, -2, 3.5, "text", null, true, {"b": []}], "metadata": {"managedFields": [1]}});
        let text = object.to_string();
        assert_eq!(Value::from(serde_json::from_str::<Whole>(&text).unwrap()), object);
        for no_object in ["[]", "7", "null", ""] {
            assert!(serde_json::from_str::<Lean>(no_object).is_err(), "{no_object}");
        }
    }
}
