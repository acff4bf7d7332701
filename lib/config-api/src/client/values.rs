//! JSON with a bound on its values: each takes some hundred bytes of memory, however short it is in the text, so that a
//! bound on the text alone would let an answer of 64 MiB take gigabytes. Long texts count as several. Of a list each
//! element is read by itself, and only what the caller makes of it is kept.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};

/// The most values of an answer, or of an element of a list.
pub(super) const MOST_VALUES: usize = 3_000_000;
/// So many bytes of a text count as another value.
const TEXT: usize = 64;

/// Why an answer is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is no JSON.
    NoJson,
    /// It has more values than may be.
    TooMany,
}

/// Reads JSON of at most so many values, keys included.
pub(super) fn read(bytes: &[u8], most: usize) -> Result<Value, Unread> {
    let mut left = most;
    let mut text = serde_json::Deserializer::from_slice(bytes);
    if (Budget { left: &mut left }).deserialize(&mut text).is_err() {
        return Err(if left == 0 { Unread::TooMany } else { Unread::NoJson });
    }
    serde_json::from_slice(bytes).map_err(|_| Unread::NoJson)
}

/// Reads the elements of the list that is the field `list` of an object, one after the other; false where there is no such
/// list. Each element has at most so many values.
pub(super) fn each(
    bytes: &[u8],
    list: &str,
    most: usize,
    take: &mut dyn FnMut(Value),
) -> Result<bool, Unread> {
    let (mut is_there, mut is_too_large) = (false, false);
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let outer =
        Outer { list, most, take, is_there: &mut is_there, is_too_large: &mut is_too_large };
    let read = text.deserialize_any(outer).and_then(|()| text.end());
    match read {
        Ok(()) => Ok(is_there),
        Err(_) if is_too_large => Err(Unread::TooMany),
        Err(_) => Err(Unread::NoJson),
    }
}

/// The object that has the list.
struct Outer<'o> {
    list: &'o str,
    most: usize,
    take: &'o mut dyn FnMut(Value),
    is_there: &'o mut bool,
    is_too_large: &'o mut bool,
}

impl<'de> Visitor<'de> for Outer<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object with a list")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == self.list {
                map.next_value_seed(Elements(&mut self))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// The list.
struct Elements<'e, 'o>(&'e mut Outer<'o>);

impl<'de> DeserializeSeed<'de> for Elements<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_, '_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a list")
    }

    /// As where there is none.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        *self.0.is_there = true;
        loop {
            let mut left = self.0.most;
            match list.next_element_seed(Made(Budget { left: &mut left })) {
                Ok(Some(element)) => (self.0.take)(element),
                Ok(None) => return Ok(()),
                Err(error) => {
                    *self.0.is_too_large = left == 0;
                    return Err(A::Error::custom(error));
                }
            }
        }
    }
}

/// Makes a value while it counts.
struct Made<'b>(Budget<'b>);

impl<'de> DeserializeSeed<'de> for Made<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<Value, D::Error> {
        self.0.take()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Made<'_> {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<Value, E> {
        self.0.take_text(text)?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = list.next_element_seed(Made(self.0.reborrow()))? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            self.0.take::<A::Error>()?;
            self.0.take_text::<A::Error>(&key)?;
            all.insert(key, map.next_value_seed(Made(self.0.reborrow()))?);
        }
        Ok(Value::Object(all))
    }
}

/// Counts down.
struct Budget<'b> {
    left: &'b mut usize,
}

impl Budget<'_> {
    fn take<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.take_many(1)
    }

    fn take_many<E: serde::de::Error>(&mut self, number: usize) -> Result<(), E> {
        *self.left = self.left.saturating_sub(number);
        if *self.left == 0 { Err(E::custom("too many values")) } else { Ok(()) }
    }

    /// Besides the value that it is.
    fn take_text<E: serde::de::Error>(&mut self, text: &str) -> Result<(), E> {
        self.take_many(text.len() / TEXT)
    }

    fn reborrow(&mut self) -> Budget<'_> {
        Budget { left: self.left }
    }
}

impl<'de> DeserializeSeed<'de> for Budget<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        self.take()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Budget<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<(), E> {
        self.take_text(text)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(self.reborrow())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while map.next_key::<IgnoredAny>()?.is_some() {
            self.take::<A::Error>()?;
            map.next_value_seed(self.reborrow())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn many_small_values_are_refused_however_short_the_text_is() {
        let list = |count: usize| format!("[{}0]", "0,".repeat(count)).into_bytes();
        assert!(read(&list(7), 10).is_ok());
        assert_eq!(read(&list(20), 10), Err(Unread::TooMany));
        let map = br#"{"a":1,"b":2,"c":{"d":[]},"e":null}"#;
        assert_eq!(read(map, 100).unwrap(), serde_json::from_slice::<Value>(map).unwrap());
        assert_eq!(read(map, 8), Err(Unread::TooMany), "keys count as well");
    }

    #[test]
    fn a_few_long_texts_are_as_many_values() {
        let text = |length: usize| format!("[\"{}\"]", "x".repeat(length)).into_bytes();
        assert!(read(&text(TEXT * 7), 10).is_ok());
        assert_eq!(read(&text(TEXT * 9), 10), Err(Unread::TooMany));
    }

    fn all(text: &str, most: usize) -> Result<Option<Vec<Value>>, Unread> {
        let mut all = Vec::new();
        let is_there = each(text.as_bytes(), "list", most, &mut |element| all.push(element))?;
        Ok(is_there.then_some(all))
    }

    #[test]
    fn of_a_list_each_element_is_read_by_itself() {
        let text = r#"{"other": [1, 2], "list": [{"a": [1.5, null, -3]}, "b", true, {}]}"#;
        let elements = vec![json!({"a": [1.5, null, -3]}), json!("b"), json!(true), json!({})];
        assert_eq!(all(text, 20), Ok(Some(elements)));
        let long = format!(r#"{{"list": [{}0]}}"#, "0,".repeat(1000));
        assert_eq!(all(&long, 10).unwrap().unwrap().len(), 1001, "many small elements");
        let one = format!(r#"{{"list": [{{"a": [{}0]}}]}}"#, "0,".repeat(20));
        assert_eq!(all(&one, 10), Err(Unread::TooMany));
        let text = format!(r#"{{"list": ["{}"]}}"#, "x".repeat(TEXT * 20));
        assert_eq!(all(&text, 10), Err(Unread::TooMany));
    }

    #[test]
    fn what_is_no_list_is_none_and_what_is_cut_is_no_json() {
        for nothing in ["{}", r#"{"list": null}"#, r#"{"lists": []}"#] {
            assert_eq!(all(nothing, 10), Ok(None), "{nothing}");
        }
        for broken in ["[]", "1", r#"{"list": {}}"#, r#"{"list": ["#, r#"{"list": []} x"#, ""] {
            assert_eq!(all(broken, 10), Err(Unread::NoJson), "{broken}");
        }
    }

    #[test]
    fn what_is_no_json_is_not_called_too_large() {
        for broken in ["", "{", "[1,", "<html>", "1 2"] {
            assert_eq!(read(broken.as_bytes(), 10), Err(Unread::NoJson), "{broken:?}");
        }
        assert_eq!(read(b"[1.5,-2,true,\"a\"]", 10).unwrap(), json!([1.5, -2, true, "a"]));
    }
}
