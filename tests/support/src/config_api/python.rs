//! What Python makes of JSON: truth, `int()`, `repr()`. The Config API is Python, and shows it in what it accepts and in
//! what it answers. Deliberately not here: which property is of which type (`schema`).

use serde_json::{Number, Value};

/// Whether `if not value` holds.
pub(super) fn is_falsy(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(it) => !it,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// `int(value)`, with `True` left as it is, for it is an `int` already; nothing, where Python raises.
pub(super) fn integer(value: &Value) -> Option<Value> {
    match value {
        Value::Bool(_) => Some(value.clone()),
        Value::Number(number) if number.is_f64() => truncated(number).map(Value::Number),
        Value::Number(_) => Some(value.clone()),
        Value::String(text) => {
            let digits = text.trim().replace('_', "");
            digits.parse::<i64>().ok().map(Value::from)
        }
        _ => None,
    }
}

fn truncated(number: &Number) -> Option<Number> {
    let whole = format!("{:.0}", number.as_f64()?.trunc());
    whole.parse::<i64>().ok().map(Number::from)
}

/// `str(value)`.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        _ => repr(value),
    }
}

/// `repr(value)`.
pub(super) fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(repr).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let field =
                |(key, value): (&String, &Value)| format!("{}: {}", quoted(key), repr(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
    }
}

/// `repr()` of a list of strings.
pub(super) fn list(items: &[String]) -> String {
    format!("[{}]", items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", "))
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\n', "\\n");
    if text.contains('\'') && !text.contains('"') {
        format!("\"{escaped}\"")
    } else {
        format!("'{}'", escaped.replace('\'', "\\'"))
    }
}

/// `type(value).__name__`.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}
