//! JSON with a bound on its values: each takes some hundred bytes of memory, however short it is in the text, so that a
//! bound on the text alone would let an answer of 64 MiB take gigabytes.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The most values of an answer, about 70 000 objects as they are asked for.
pub(super) const MOST_VALUES: usize = 3_000_000;

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

/// Counts down.
struct Budget<'b> {
    left: &'b mut usize,
}

impl Budget<'_> {
    fn take<E: serde::de::Error>(&mut self) -> Result<(), E> {
        *self.left = self.left.saturating_sub(1);
        if *self.left == 0 { Err(E::custom("too many values")) } else { Ok(()) }
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

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
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
    fn what_is_no_json_is_not_called_too_large() {
        for broken in ["", "{", "[1,", "<html>", "1 2"] {
            assert_eq!(read(broken.as_bytes(), 10), Err(Unread::NoJson), "{broken:?}");
        }
        assert_eq!(read(b"[1.5,-2,true,\"a\"]", 10).unwrap(), json!([1.5, -2, true, "a"]));
    }
}
