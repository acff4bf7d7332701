//! What a difference shows of a secret: a hash, by which one sees whether it is another, and whether two are the same. It is
//! cut, as a password that can be guessed could else be found by it. Pure.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::bundle::redact::{self, REDACTED, is_secret_name};
use crate::install::object::ObjectKey;

/// So much of a hash is shown: `sha256:` and four bytes.
const SHOWN: usize = "sha256:".len() + 8;
/// Before a hash that is still whole.
const UNCUT: char = '\u{1}';
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

/// The value of a field of that object: of data of a Secret, and of a field that is a secret by its name, a hash; of a text
/// that has one what is left without it, with a hash.
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
            value = whole(&value);
        }
        cut(&mut value);
    }
    Some(value)
}

/// The object with the hash of what is a secret in it, by the rules of a support bundle; of the same form, so that it can be
/// compared. To be shown it is [`cut`].
pub(crate) fn whole(object: &Value) -> Value {
    let mut clean = object.clone();
    redact::object(&mut clean);
    hidden(object, Some(&clean))
}

/// What differs from what is left without secrets.
fn hidden(given: &Value, clean: Option<&Value>) -> Value {
    match (given, clean) {
        (given, Some(clean)) if given == clean => given.clone(),
        (Value::Object(fields), Some(Value::Object(left))) => {
            let field =
                |(name, value): (&String, &Value)| (name.clone(), hidden(value, left.get(name)));
            Value::Object(fields.iter().map(field).collect())
        }
        (Value::Array(items), Some(Value::Array(left))) if items.len() == left.len() => {
            items.iter().zip(left).map(|(item, left)| hidden(item, Some(left))).collect()
        }
        // A line of a file, a flag: what is no secret of it says which one it is.
        (Value::String(text), Some(Value::String(left))) if !left.starts_with(REDACTED) => {
            format!("{left} ({})", digest(text)).into()
        }
        (given, _) => {
            let mut value = given.clone();
            hash(&mut value);
            value
        }
    }
}

fn hash(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hash),
        Value::Array(items) => items.iter_mut().for_each(hash),
        Value::String(text) => *text = digest(text),
        Value::Number(number) => *value = digest(&number.to_string()).into(),
        Value::Null | Value::Bool(_) => {}
    }
}

/// The whole hash, behind a sign that no text of an object has.
fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let all: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{UNCUT}sha256:{all}")
}

/// As much of each hash as is shown.
pub(crate) fn cut(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(cut),
        Value::Array(items) => items.iter_mut().for_each(cut),
        Value::String(text) => {
            while let Some((before, behind)) = text.split_once(UNCUT) {
                let (shown, rest) = behind.split_at(SHOWN.min(behind.len()));
                let rest = rest.trim_start_matches(|letter: char| letter.is_ascii_hexdigit());
                *text = format!("{before}{shown}{rest}");
            }
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

    #[test]
    fn what_is_a_secret_by_what_is_beside_it_or_by_how_it_looks_is_hidden_too() {
        let pod = |secret: &str| {
            json!({"kind": "Deployment", "spec": {"containers": [{"name": "c", "image": "x",
                "env": [{"name": "DB_PASSWORD", "value": secret}, {"name": "PLAIN", "value": "seen"},
                    {"name": "DSN", "value": format!("mysql://u:{secret}@h/x")}],
                "args": [format!("--password={secret}"), "--token", secret, "--port=80"]}]},
                "data": {"app.ini": format!("[a]\nport = 1\npassword={secret}\n"), "pin.password": 7}})
        };
        let (one, other) = (whole(&pod("hunter2aA1")), whole(&pod("other2bB2")));
        let mut found = Vec::new();
        crate::install::path::differences(&one, &other, "", &mut found);
        let fields: Vec<&str> = found.iter().map(|(field, ..)| field.as_str()).collect();
        assert_eq!(fields.len(), 5, "each that differs is one, and no other: {fields:?}");
        let mut shown = one.clone();
        cut(&mut shown);
        let text = shown.to_string();
        assert!(!text.contains("hunter2") && !text.contains(":7}"), "{text}");
        assert!(text.contains("seen") && text.contains("--port=80") && text.contains("port = 1"));
        assert_eq!(text.matches("sha256:").count(), 6, "{text}");
        assert!(!text.contains("\\u0001"), "{text}");
        let length = |text: &str| text.split("sha256:").nth(1).unwrap_or_default().find('"');
        assert_eq!(length(&shown["spec"]["containers"][0]["env"][0].to_string()), Some(8));
    }
}
