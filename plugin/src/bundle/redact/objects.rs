//! Objects: what is a secret by the name of its field, by the kind of the object, or by a name beside the value.

use serde_json::{Map, Value};

use super::flags::{self, Program};
use super::names::{self, Meaning, OF_REFERENCE, is_place, is_variable};
use super::{REDACTED, once};

/// Fields of Kubernetes that are called like a secret and say which one: what is below is judged on its own.
const REFERENCES: [&str; 7] = [
    "secret",
    "secrets",
    "imagePullSecrets",
    "serviceAccountToken",
    "tokenRequests",
    "secretsFrom",
    "credentialsSecret",
];
/// The fields whose elements have keys of protocols that are called `key` only.
const OF_KEYS: [&str; 4] = ["auth_data", "authData", "key_items", "keyItems"];

/// What is known from above.
#[derive(Clone, Copy, Default)]
struct Above {
    /// Below a list of keys `key` is one.
    are_keys: bool,
    /// An item of a list of Secrets, which does not say what it is.
    are_secrets: bool,
    /// The program whose arguments are in the list.
    program: Option<Program>,
}

pub(super) fn clean(value: &mut Value) {
    within(value, Above::default());
}

fn within(value: &mut Value, above: Above) {
    match value {
        Value::Object(map) => fields(map, above),
        Value::Array(items) => elements(items, above),
        Value::String(inner) => *inner = once(inner),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn elements(items: &mut [Value], above: Above) {
    let mut program = above.program;
    // `--password` and behind it the password.
    let mut is_next = false;
    // `-p` of a program that is not known: a password, a port, a path.
    let mut is_short = false;
    for item in items {
        let Value::String(argument) = item else {
            within(item, Above { program: None, ..above });
            is_next = false;
            continue;
        };
        if is_next && !argument.starts_with("--") {
            is_next = false;
            hide(item);
            continue;
        }
        if is_short && flags::is_loud(argument) {
            is_short = false;
            hide(item);
            continue;
        }
        is_short = ["-p", "-P"].contains(&argument.as_str());
        program = flags::program(argument).or(program);
        is_next = flags::is_before_secret(argument, program);
        *argument = match flags::attached(argument, program) {
            Some(flag) => format!("{flag}{REDACTED}"),
            None => once(argument),
        };
    }
}

fn fields(map: &mut Map<String, Value>, above: Above) {
    let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
    let is_secret_object = kind == "Secret" || (kind.is_empty() && above.are_secrets);
    let are_secrets = kind == "SecretList";
    // A variable of a container, a header of a probe: its name says what its value is.
    let named = ["name", "key", "Name", "Key"]
        .iter()
        .filter_map(|field| map.get(*field).and_then(Value::as_str).map(of_field))
        .find(|meaning| *meaning != Meaning::Plain);
    let program = map.get("command").and_then(program_of);
    map.remove("managedFields");
    for (key, value) in map.iter_mut() {
        let here = Above {
            are_keys: above.are_keys || OF_KEYS.contains(&key.as_str()),
            are_secrets: are_secrets && key == "items",
            program: if key == "args" { program } else { None },
        };
        match (key.as_str(), &mut *value) {
            ("data" | "stringData", value) if is_secret_object => sizes(value),
            ("binaryData", value) => sizes(value),
            ("metadata", Value::Object(metadata)) if is_secret_object => {
                if let Some(annotations) = metadata.get_mut("annotations") {
                    forget_copies(annotations);
                    each(annotations, hide);
                }
                fields(metadata, here);
            }
            ("value" | "Value" | "values", value) if named.is_some() => {
                by_meaning(named.unwrap_or(Meaning::Plain), value, here);
            }
            ("key", value) if above.are_keys => hide(value),
            ("annotations", value) => {
                forget_copies(value);
                within(value, here);
            }
            _ => by_name(key, value, here),
        }
    }
}

fn by_name(key: &str, value: &mut Value, here: Above) {
    match (of_field(key), &mut *value) {
        (Meaning::Secret, Value::Object(_) | Value::Array(_)) if REFERENCES.contains(&key) => {
            reference(value);
        }
        // How a server authorises, and with what it is asked to.
        (Meaning::Secret, value @ Value::Object(_)) if key == "authorization" => {
            within(value, here);
        }
        (meaning, value) => by_meaning(meaning, value, here),
    }
}

fn by_meaning(meaning: Meaning, value: &mut Value, here: Above) {
    match (meaning, &mut *value) {
        (Meaning::Secret, value) => hide(value),
        (Meaning::Place, Value::String(place)) => hide_unless_place(place),
        (Meaning::Place, Value::Array(places)) => {
            for place in places {
                match place {
                    Value::String(place) => hide_unless_place(place),
                    other => within(other, here),
                }
            }
        }
        (Meaning::Place | Meaning::Plain, value) => within(value, here),
    }
}

/// `lb.example.com/pass`: what is before the slash is whose it is; `key` alone is one there.
fn of_field(key: &str) -> Meaning {
    match key.rsplit_once('/') {
        Some((_, "key")) => Meaning::Secret,
        Some((_, last)) => names::meaning(last),
        None => names::meaning(key),
    }
}

fn hide_unless_place(place: &mut String) {
    if !is_place(place) {
        REDACTED.clone_into(place);
    }
}

/// Whether it is a field of a reference; an object has a `uid` besides.
fn is_of_reference(key: &str) -> bool {
    key == "uid" || OF_REFERENCE.contains(&key)
}

/// Which secret is meant; what is not of a reference is hidden.
fn reference(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    Value::String(_) if key == "kind" || key == "apiVersion" => {}
                    Value::String(place) if is_of_reference(key) => {
                        hide_unless_place(place);
                    }
                    Value::Number(_) if is_of_reference(key) => {}
                    Value::Object(_) | Value::Array(_) if is_of_reference(key) => {
                        reference(value);
                    }
                    value => hide(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(reference),
        value => hide(value),
    }
}

/// All that is below, since also a key of a map may be one (`tokens: {hunter2: admin}`).
fn hide(value: &mut Value) {
    let is_nothing = match &*value {
        Value::Null | Value::Bool(_) => true,
        Value::String(text) => text.is_empty() || is_variable(text),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(_) => false,
    };
    if !is_nothing {
        *value = REDACTED.into();
    }
}

fn each(value: &mut Value, with: fn(&mut Value)) {
    if let Value::Object(map) = value {
        map.iter_mut().for_each(|(_, value)| with(value));
    }
}

/// The keys, and how long each value is, which helps to see that one is empty.
fn sizes(value: &mut Value) {
    if value.is_object() { each(value, size) } else { hide(value) }
}

fn size(value: &mut Value) {
    let length = match &*value {
        Value::String(text) if is_size(text) => return,
        Value::String(text) => text.len(),
        other => other.to_string().len(),
    };
    *value = format!("{REDACTED} ({length} bytes)").into();
}

fn is_size(text: &str) -> bool {
    text.strip_prefix(REDACTED)
        .and_then(|rest| rest.strip_prefix(" ("))
        .and_then(|rest| rest.strip_suffix(" bytes)"))
        .is_some_and(|number| number.len() < 12 && number.chars().all(|x| x.is_ascii_digit()))
}

/// Annotations that are the whole object again, as a text or compressed.
fn forget_copies(annotations: &mut Value) {
    if let Value::Object(annotations) = annotations {
        annotations.retain(|key, _| {
            !key.contains("last-applied")
                && !key.starts_with("kapp.k14s.io/original")
                && !key.starts_with("objectset.rio.cattle.io/applied")
        });
    }
}

fn program_of(command: &Value) -> Option<Program> {
    command.as_array()?.iter().filter_map(Value::as_str).find_map(flags::program)
}
