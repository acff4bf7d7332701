//! Which fields an object has, without their values.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value};

/// An object whose values are `true` where one stands and `null` where null does. Only objects
/// that have defaults of their own are kept. Parsing values that are not looked at would be most
/// of what an evaluation costs.
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
                map.next_value::<Option<IgnoredAny>>()?.map_or(Value::Null, |_| true.into())
            };
            if fields.insert(key, value).is_some() {
                return Err(A::Error::custom("a key stands twice"));
            }
        }
        Ok(Fields(Value::Object(fields)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Fields;

    #[test]
    fn keeps_which_fields_there_are() {
        let fields: Fields = serde_json::from_value(json!({
            "a": [1, 2], "b": null, "cassandraParameters": {"concurrentReads": 1},
        }))
        .unwrap();
        let expected = json!({"a": true, "b": null, "cassandraParameters": {"concurrentReads": 1}});
        assert_eq!(fields.0, expected);
        assert!(serde_json::from_value::<Fields>(json!([1])).is_err());
    }
}
