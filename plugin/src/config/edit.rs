//! One value changed in the text of the configuration: comments, order and what is unknown stay as
//! they are. Every change is read again, and is none if anything else would change by it.

use opensdn_manifests::{Document, FieldSpan, join};
use serde_json::{Map, Value};

use super::file::ConfigFile;

/// The text with the value at the end of the way; none where it is written in a way that only a
/// person can change.
pub(crate) fn with(file: &ConfigFile, path: &[&str], value: &str) -> Option<String> {
    let text = changed(file, path, value)?;
    let after = ConfigFile::parse(&file.path, text.clone().into_bytes()).ok()?;
    let (mut expected, mut found) = (value_of(file), value_of(&after));
    clear(&mut expected, path);
    clear(&mut found, path);
    (expected == found && after.value(path).as_deref() == Some(value)).then_some(text)
}

fn value_of(file: &ConfigFile) -> Value {
    file.document.as_ref().map_or(Value::Null, |document| document.value.clone())
}

/// Makes the value null, so that what is around it can be compared.
fn clear(value: &mut Value, path: &[&str]) {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    let (Some((name, rest)), Some(fields)) = (path.split_first(), value.as_object_mut()) else {
        return;
    };
    let inner = fields.entry(*name).or_insert(Value::Null);
    match rest {
        [] => *inner = Value::Null,
        rest => clear(inner, rest),
    }
}

fn changed(file: &ConfigFile, path: &[&str], value: &str) -> Option<String> {
    let text = file.source.text();
    let Some(document) = &file.document else { return Some(appended(text, path, value)) };
    let (mut at, mut deepest) = (String::new(), None);
    for depth in 1..=path.len() {
        at = join(&at, path.get(depth - 1)?);
        let (Some(value), Some(place)) = (document.value.pointer(&at), document.span(&at)) else {
            break;
        };
        deepest = Some((value, place, path.get(depth..)?));
    }
    match deepest {
        None => beside_the_sections(document, text, path, value),
        Some((old, place, [])) => replaced(text, old, place, value),
        Some((old, place, rest)) => within(file, old, place, rest, value),
    }
}

/// A section that is not there yet.
fn beside_the_sections(
    document: &Document,
    text: &str,
    path: &[&str],
    value: &str,
) -> Option<String> {
    let root = document.span("")?.value;
    if text.get(root.start..)?.starts_with('{') {
        return Some(in_braces(text, root.start, &document.value, path, value));
    }
    Some(appended(text, path, value))
}

fn appended(text: &str, path: &[&str], value: &str) -> String {
    let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{line_end}{}", block(path, value, 0))
}

/// Another value for a key, with or without one.
fn replaced(text: &str, old: &Value, place: FieldSpan, value: &str) -> Option<String> {
    if old.is_object() || old.is_array() {
        return None;
    }
    if place.key == Some(place.value) {
        let colon = place.value.end + text.get(place.value.end..)?.find(':')? + 1;
        let (before, after) = text.split_at_checked(colon)?;
        return Some(format!("{before} {}{after}", scalar(value)));
    }
    let (before, after) = (text.get(..place.value.start)?, text.get(place.value.end..)?);
    Some(format!("{before}{}{after}", scalar(value)))
}

/// A key in a mapping that is there: as its first, so that no comment is parted from its key.
fn within(
    file: &ConfigFile,
    old: &Value,
    place: FieldSpan,
    rest: &[&str],
    value: &str,
) -> Option<String> {
    let text = file.source.text();
    let key = place.key?;
    if text.get(place.value.start..)?.starts_with('{') {
        return Some(in_braces(text, place.value.start, old, rest, value));
    }
    let column = |offset: usize| file.source.position(offset).column - 1;
    let indent = match old {
        Value::Object(_) => column(place.value.start),
        Value::Null if key == place.value => column(key.start) + 2,
        _ => return None,
    };
    let line_end = text.get(key.end..)?.find('\n').map(|at| key.end + at + 1);
    let (before, after) = text.split_at_checked(line_end.unwrap_or(text.len()))?;
    let line_end = if before.ends_with('\n') { "" } else { "\n" };
    Some(format!("{before}{line_end}{}{after}", block(rest, value, indent)))
}

fn in_braces(text: &str, brace: usize, old: &Value, path: &[&str], value: &str) -> String {
    let (before, after) = text.split_at_checked(brace + 1).unwrap_or((text, ""));
    let comma = if old.as_object().is_some_and(|fields| !fields.is_empty()) { ", " } else { "" };
    let entry = match path.split_last() {
        Some((last, outer)) => {
            let entry = format!("{}: {}", scalar(last), scalar(value));
            outer.iter().rev().fold(entry, |inner, name| format!("{}: {{{inner}}}", scalar(name)))
        }
        None => String::new(),
    };
    format!("{before}{entry}{comma}{after}")
}

/// The keys of the way, each on its line, and the value behind the last.
fn block(path: &[&str], value: &str, indent: usize) -> String {
    let mut lines = String::new();
    for (depth, name) in path.iter().enumerate() {
        let indent = indent + 2 * depth;
        let value =
            if depth + 1 == path.len() { format!(" {}", scalar(value)) } else { String::new() };
        lines.push_str(&format!("{:indent$}{}:{value}\n", "", scalar(name)));
    }
    lines
}

/// A text as it is where YAML reads it as that text, or as one of the two truths, else in quotes.
fn scalar(text: &str) -> String {
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
    let plain = |one: char| one.is_ascii_alphanumeric() || "._/-".contains(one);
    let other =
        ["null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_lowercase().as_str());
    if begins && text.chars().all(plain) && !other {
        return text.to_owned();
    }
    // What JSON writes is YAML too.
    Value::from(text).to_string()
}
