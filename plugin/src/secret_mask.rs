//! What a difference shows of a secret: a hash, by which one sees whether it is another, and whether two are the same. It is
//! cut, as a password that can be guessed could else be found by it. Pure.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::bundle::redact::is_secret_name;
use crate::install::object::ObjectKey;

/// Bytes of the hash that are shown.
const SHOWN: usize = 4;
/// Has all of an object once more.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether secrets are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrets {
    /// As a hash.
    Hidden,
    /// As they are.
    Shown,
}

/// The value of a field of that object: of data of a Secret, and of a field that is a secret by its name, a hash.
pub(crate) fn masked(
    key: &ObjectKey,
    field: &str,
    value: Option<Value>,
    secrets: Secrets,
) -> Option<Value> {
    let mut value = value?;
    if secrets == Secrets::Hidden {
        let is_secret = key.kind == "Secret" && key.group().is_empty();
        let is_data = [".data", ".stringData"].iter().any(|data| {
            field.strip_prefix(data).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        let name = field.rsplit('.').next().unwrap_or_default();
        if (is_secret && is_data) || field.ends_with(LAST_APPLIED) || is_secret_name(name) {
            hash(&mut value);
        } else {
            hash_named(&mut value);
        }
    }
    Some(value)
}

/// Of what is within by its name: a list or mapping that is new is one difference.
fn hash_named(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| {
            match name == LAST_APPLIED || is_secret_name(name) {
                true => hash(value),
                false => hash_named(value),
            }
        }),
        Value::Array(items) => items.iter_mut().for_each(hash_named),
        _ => {}
    }
}

fn hash(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hash),
        Value::Array(items) => items.iter_mut().for_each(hash),
        Value::String(text) => {
            let digest = Sha256::digest(text.as_bytes());
            let shown: String =
                digest.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
            *text = format!("sha256:{shown}");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_that_is_a_secret_by_its_name_is_hidden_in_any_kind_and_no_other() {
        let key = ObjectKey::within("b", "tf.tungsten.io/v1alpha1", "Rabbitmq", "a");
        let of =
            |field: &str, value: Value| masked(&key, field, Some(value), Secrets::Hidden).unwrap();
        let cookie = of(".spec.serviceConfiguration.erlangCookie", json!("hunter2"));
        assert!(cookie.as_str().is_some_and(|text| text.starts_with("sha256:")), "{cookie}");
        let auth = json!({"adminPassword": "hunter2", "address": "10.0.0.1"});
        let auth = of(".spec.keystoneAuthParameters", auth);
        assert_eq!(auth["address"], "10.0.0.1");
        assert!(!auth.to_string().contains("hunter2"), "{auth}");
        for field in [".spec.serviceConfiguration.port", ".data.a", ".spec.keystoneSecretName"] {
            assert_eq!(of(field, json!("plain")), "plain", "{field}");
        }
    }
}
