//! The structural check: types, ranges, lengths, patterns, formats, required fields, alternatives,
//! and entries of lists that must differ. All of it is reported, not only the first.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::format::{self, Verdict};
use super::found::Found;
use super::node::{Kind, Limits, ListKind, Node};
use super::unknown::{dotted, nearest, same_but_for_case};
use crate::problem::{Problem, Severity, codes};
use crate::source_map::join;
use crate::syntax::kind_of;
use crate::version::KubernetesVersion;

/// Checks a value that has its defaults and nothing that its schema has not.
pub(crate) fn check(
    value: &Value,
    node: &Node,
    at: &str,
    version: KubernetesVersion,
    found: &mut Found,
) {
    if !check_type(value, node, at, version, found) {
        return;
    }
    check_allowed(value, node, at, found);
    match value {
        Value::Object(fields) => check_fields(fields, node, at, version, found),
        Value::Array(items) => check_items(items, node, at, version, found),
        Value::String(text) => check_text(text, node, at, version, found),
        Value::Number(number) => check_number(number.as_f64(), &node.limits, at, found),
        Value::Null | Value::Bool(_) => {}
    }
    if !value.is_null() {
        check_alternatives(value, node, at, version, found);
    }
}

/// Whether the value is of the type, so that it makes sense to look further.
fn check_type(
    value: &Value,
    node: &Node,
    at: &str,
    version: KubernetesVersion,
    found: &mut Found,
) -> bool {
    let fits = |kind: Kind| match (kind, value) {
        (Kind::Object, Value::Object(_))
        | (Kind::Array, Value::Array(_))
        | (Kind::String, Value::String(_))
        | (Kind::Boolean, Value::Bool(_))
        | (Kind::Number, Value::Number(_)) => true,
        (Kind::Integer, Value::Number(number)) => number.is_i64(),
        _ => false,
    };
    let (fine, wanted) = match (node.int_or_string, node.kind) {
        (true, _) => (fits(Kind::Integer) || fits(Kind::String), "integer or string"),
        (false, Some(kind)) => (fits(kind), kind.name()),
        (false, None) => (true, ""),
    };
    if fine || (value.is_null() && node.nullable) {
        return true;
    }
    let path = dotted(at);
    let message = format!("{path} must be of type {wanted}, and is {}", described(value));
    let hint = match (node.kind, value) {
        (Some(Kind::String), Value::Number(_) | Value::Bool(_)) => "put it into quotes",
        (Some(Kind::Integer | Kind::Number | Kind::Boolean), Value::String(text)) => {
            let resolved = crate::scalar::plain(text);
            if resolved.is_ok_and(|value| value.is_number() || value.is_boolean()) {
                "remove the quotes"
            } else {
                ""
            }
        }
        (Some(Kind::Array), Value::Object(_) | Value::String(_)) => {
            "begin each entry of the list with `- `"
        }
        (_, Value::Null) => "give it a value, or remove it",
        _ => "",
    };
    // The API server takes a list for a text that has a format: an oversight, by which it accepts
    // what no reader of the field can use.
    let format = node.format.as_deref().filter(|_| node.kind == Some(Kind::String));
    let taken = value.is_array() && format.is_some_and(|name| format::is_known(name, version));
    let severity = if taken { Severity::Warning } else { Severity::Error };
    found.block(Problem::new(severity, codes::TYPE, message).pointer(at).hint(hint));
    false
}

/// The kind of a value, and the value itself where it is short.
fn described(value: &Value) -> String {
    match value {
        Value::Bool(_) | Value::Number(_) => format!("{} ({value})", kind_of(value)),
        Value::String(text) if text.chars().count() <= 40 => format!("a string (\"{text}\")"),
        _ => kind_of(value).to_owned(),
    }
}

fn check_allowed(value: &Value, node: &Node, at: &str, found: &mut Found) {
    if node.allowed.is_empty() || (node.allowed.contains(value) && !value.is_null()) {
        return;
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let allowed: Vec<String> = node.allowed.iter().map(text).collect();
    let listed = allowed.iter().map(|value| format!("\"{value}\"")).collect::<Vec<_>>().join(", ");
    let message = format!("{}: unsupported value {value}; supported are {listed}", dotted(at));
    let meant = value.as_str().and_then(|text| nearest(text, allowed.iter().map(String::as_str)));
    let hint = match (meant, value) {
        (Some(meant), _) => format!("did you mean \"{meant}\"?"),
        (None, Value::Null) => "give it one of these values, or remove it".to_owned(),
        (None, _) => String::new(),
    };
    let right = value.as_str().and_then(|text| same_but_for_case(text, &allowed));
    found.block(Problem::error(codes::ENUM, message).pointer(at).hint(hint).fix(right));
}

fn check_fields(
    fields: &Map<String, Value>,
    node: &Node,
    at: &str,
    version: KubernetesVersion,
    found: &mut Found,
) {
    check_count(fields.len(), node.limits.properties, "fields", at, found);
    let always: &[&str] = if node.embedded { &["apiVersion", "kind"] } else { &[] };
    let named = node.required.iter().map(String::as_str);
    for name in named.chain(always.iter().copied()).filter(|name| !fields.contains_key(*name)) {
        let pointer = join(at, name);
        let message = format!("{} is required", dotted(&pointer));
        found.block(Problem::error(codes::REQUIRED, message).pointer(pointer));
    }
    for (name, value) in fields {
        if let Some(node) = node.field(name) {
            check(value, node, &join(at, name), version, found);
        }
    }
}

fn check_items(
    items: &[Value],
    node: &Node,
    at: &str,
    version: KubernetesVersion,
    found: &mut Found,
) {
    check_count(items.len(), node.limits.items, "entries", at, found);
    if let Some(inner) = &node.items {
        for (index, item) in items.iter().enumerate() {
            check(item, inner, &format!("{at}/{index}"), version, found);
        }
    }
    match &node.list {
        ListKind::Atomic => {}
        ListKind::Set => check_different(items, at, found, |item| item.to_string()),
        ListKind::Map(keys) => check_different(items, at, found, |item| {
            let of = |key: &String| item.get(key).map(|value| format!("{key} {value}"));
            keys.iter().filter_map(of).collect::<Vec<_>>().join(", ")
        }),
    }
}

/// Reports each entry whose key an earlier one has.
fn check_different(items: &[Value], at: &str, found: &mut Found, key: impl Fn(&Value) -> String) {
    let mut seen = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let key = key(item);
        if seen.contains(&key) {
            let message = format!("{}: a second entry with {key}", dotted(at));
            let problem =
                Problem::error(codes::DUPLICATE_ENTRY, message).hint("remove one of them");
            found.push(problem.pointer(format!("{at}/{index}")));
        }
        seen.insert(key);
    }
}

fn check_text(text: &str, node: &Node, at: &str, version: KubernetesVersion, found: &mut Found) {
    check_count(text.chars().count(), node.limits.length, "characters", at, found);
    let path = dotted(at);
    if let Some(pattern) = &node.pattern {
        match &pattern.regex {
            Some(regex) if regex.is_match(text) => {}
            Some(_) => {
                let message = format!("{path} should match '{}'", pattern.text);
                found.push(Problem::error(codes::PATTERN, message).pointer(at));
            }
            None => {
                found.push(unchecked(format!("{path}: pattern '{}'", pattern.text)).pointer(at))
            }
        }
    }
    let numeric = matches!(node.kind, Some(Kind::Integer | Kind::Number)) || node.int_or_string;
    let Some(format) = node.format.as_deref().filter(|_| !numeric) else { return };
    match format::judge(format, text, version) {
        Verdict::Fine => {}
        Verdict::Wrong => {
            let message = format!("{path} must be of format {format}, and is \"{text}\"");
            found.block(Problem::error(codes::FORMAT, message).pointer(at));
        }
        Verdict::Unchecked => found.push(unchecked(format!("{path}: format {format}")).pointer(at)),
    }
}

fn unchecked(what: String) -> Problem {
    Problem::new(Severity::Info, codes::NOT_CHECKED, format!("{what} is not checked here"))
        .hint("the API server checks it")
}

fn check_number(number: Option<f64>, limits: &Limits, at: &str, found: &mut Found) {
    let Some(number) = number else { return };
    let path = dotted(at);
    let mut wrong = |text: String| {
        let message = format!("{path} should be {text}, and is {number}");
        found.push(Problem::error(codes::RANGE, message).pointer(at));
    };
    match limits.minimum {
        Some(least) if limits.above_minimum && number <= least => {
            wrong(format!("greater than {least}"));
        }
        Some(least) if number < least => wrong(format!("greater than or equal to {least}")),
        _ => {}
    }
    match limits.maximum {
        Some(most) if limits.below_maximum && number >= most => wrong(format!("less than {most}")),
        Some(most) if number > most => wrong(format!("less than or equal to {most}")),
        _ => {}
    }
    if let Some(factor) = limits.multiple_of {
        let times = number / factor;
        if (times - times.round()).abs() > f64::EPSILON * times.abs().max(1.0) {
            wrong(format!("a multiple of {factor}"));
        }
    }
}

/// Too many is worse than too few: what is too long the API server does not give to its rules.
fn check_count(
    count: usize,
    (least, most): (Option<i64>, Option<i64>),
    what: &str,
    at: &str,
    found: &mut Found,
) {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let path = dotted(at);
    if let Some(most) = most.filter(|most| count > *most) {
        let message = format!("{path} should have at most {most} {what}, and has {count}");
        found.block(Problem::error(codes::LENGTH, message).pointer(at));
    }
    if let Some(least) = least.filter(|least| count < *least) {
        let message = format!("{path} should have at least {least} {what}, and has {count}");
        found.push(Problem::error(codes::LENGTH, message).pointer(at));
    }
}

fn check_alternatives(
    value: &Value,
    node: &Node,
    at: &str,
    version: KubernetesVersion,
    found: &mut Found,
) {
    let fits = |node: &Node| {
        let mut inner = Found::default();
        check(value, node, at, version, &mut inner);
        inner.is_empty()
    };
    for node in &node.all_of {
        check(value, node, at, version, found);
    }
    let wrong = if !node.any_of.is_empty() && !node.any_of.iter().any(fits) {
        "must fit at least one of the schema's alternatives (anyOf)"
    } else if !node.one_of.is_empty() && node.one_of.iter().filter(|node| fits(node)).count() != 1 {
        "must fit exactly one of the schema's alternatives (oneOf)"
    } else if node.not.as_deref().is_some_and(fits) {
        "must not fit the schema's exclusion (not)"
    } else {
        return;
    };
    let message = format!("{} {wrong}", dotted(at));
    found.push(Problem::error(codes::ALTERNATIVES, message).pointer(at));
}
