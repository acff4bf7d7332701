//! Which fields an object has, with values as far as a default may be compared with them.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// An object in which `true` stands for each list, and for each object that has no defaults of its own. Parsing what is
/// not looked at would be most of what an evaluation costs.
#[derive(Clone, Debug)]
pub(crate) struct Fields(pub(crate) Value);

const KEPT: [&str; 2] = ["cassandraParameters", "linklocalServiceConfig"];

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = if KEPT.contains(&key.as_str()) {
                map.next_value()?
            } else {
                map.next_value::<Field>()?.0
            };
            if fields.insert(key, value).is_some() {
                return Err(A::Error::custom("a key stands twice"));
            }
        }
        Ok(Fields(Value::Object(fields)))
    }
}

/// A text, a number or a switch as it is.
struct Field(Value);

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor)
    }
}

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = Field;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Field, E> {
        Ok(Field(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Field, E> {
        Ok(Field(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Field, E> {
        Ok(Field(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Field, E> {
        Ok(Field(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Field, E> {
        Ok(Field(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Field, E> {
        Ok(Field(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Field, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field(true.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field(true.into()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Fields;

    #[test]
    fn keeps_which_fields_there_are() {
        let fields: Fields = serde_json::from_value(json!({
            "a": [1, 2], "b": null, "c": {"d": 1}, "port": 9042, "name": "n",
            "cassandraParameters": {"concurrentReads": 1},
        }))
        .unwrap();
        let expected = json!({"a": true, "b": null, "c": true, "port": 9042, "name": "n",
            "cassandraParameters": {"concurrentReads": 1}});
        assert_eq!(fields.0, expected);
        assert!(serde_json::from_value::<Fields>(json!([1])).is_err());
    }
}
