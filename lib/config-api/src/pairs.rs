//! The Config API's maps of texts: `{"key_value_pair": [{"key": …, "value": …}]}`, in `annotations` and bindings.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Reads one; what is no pair is left out.
#[must_use]
pub fn read(property: Option<&Value>) -> BTreeMap<String, String> {
    let list = property.map(|property| property.get("key_value_pair").unwrap_or(property));
    let pair = |pair: &Value| {
        let text = |name: &str| Some(pair.get(name)?.as_str()?.to_owned());
        Some((text("key")?, text("value")?))
    };
    list.and_then(Value::as_array).into_iter().flatten().filter_map(pair).collect()
}

pub(crate) fn json<const N: usize>(pairs: [(&str, &str); N]) -> Value {
    let pairs = pairs.map(|(key, value)| json!({"key": key, "value": value}));
    json!({"key_value_pair": pairs.to_vec()})
}
