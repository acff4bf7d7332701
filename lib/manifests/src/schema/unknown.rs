//! Fields that the schema has not. The API server prunes them and kubectl refuses them; here each
//! is reported, with the name that was probably meant, and then pruned.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use strsim::damerau_levenshtein;

use super::found::Found;
use super::metadata;
use super::node::{Additional, Node};
use crate::problem::{Problem, codes};
use crate::source_map::join;

/// The fields that every object has, which schemas need not name.
const OF_OBJECTS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes and reports what the schema has not.
pub(crate) fn prune(value: &mut Value, node: &Node, is_object: bool, at: &str, found: &mut Found) {
    match value {
        Value::Object(fields) => prune_fields(fields, node, is_object || node.embedded, at, found),
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for (index, item) in items.iter_mut().enumerate() {
                    prune(item, node, false, &format!("{at}/{index}"), found);
                }
            }
        }
        _ => {}
    }
}

fn prune_fields(
    fields: &mut Map<String, Value>,
    node: &Node,
    is_object: bool,
    at: &str,
    found: &mut Found,
) {
    let all_known = node.preserve || matches!(node.additional, Additional::Anything);
    let mut unknown = Vec::new();
    for (name, value) in &mut *fields {
        match node.field(name) {
            _ if is_object && OF_OBJECTS.contains(&name.as_str()) => {}
            Some(node) => prune(value, node, false, &join(at, name), found),
            None if all_known => {}
            None => unknown.push(name.clone()),
        }
    }
    let right: Vec<Option<&str>> = unknown
        .iter()
        .map(|name| {
            let right = sure(name, fields, &node.properties)?;
            // Of two keys that may be meant as one, neither is sure to be it.
            let other = unknown.iter().any(|other| other != name && is_near(other, right));
            (!other).then_some(right)
        })
        .collect();
    for (name, right) in unknown.iter().zip(right) {
        let problem = unknown_field(name, fields, node, is_object, at);
        found.push(problem.fix(right));
        fields.remove(name);
    }
}

/// The field that was meant without a doubt: hardly another text, not given yet, and no other field
/// is near.
fn sure<'a>(
    name: &str,
    fields: &Map<String, Value>,
    known: &'a BTreeMap<String, Node>,
) -> Option<&'a str> {
    let mut near = known.keys().filter(|known| is_near(name, known));
    let (one, other) = (near.next()?, near.next());
    let length = plain(name).chars().count();
    let most = if length < 4 { 0 } else { 1 + usize::from(length >= 8) };
    let sure = other.is_none() && distance(name, one) <= most && !fields.contains_key(one);
    sure.then_some(one.as_str())
}

fn unknown_field(
    name: &str,
    fields: &Map<String, Value>,
    node: &Node,
    is_object: bool,
    at: &str,
) -> Problem {
    let extra = OF_OBJECTS.iter().copied().filter(|_| is_object);
    let known = || node.properties.keys().map(String::as_str).chain(extra.clone());
    let message = format!("unknown field `{}`", dotted(&join(at, name)));
    let free = known().filter(|known| !fields.contains_key(*known));
    let hint = match (nearest(name, free), nearest(name, known())) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, Some(meant)) => format!("`{meant}` is given already: remove this one"),
        (None, None) => match deeper(name, node) {
            Some(inside) => format!("did you mean `{inside}`?"),
            None => listed(&known().collect::<Vec<_>>()),
        },
    };
    Problem::error(codes::UNKNOWN_FIELD, message).pointer(join(at, name)).hint(hint)
}

/// The field of that very name one level further in, as when the indentation slipped.
fn deeper(name: &str, node: &Node) -> Option<String> {
    let mut holders =
        node.properties.iter().filter(|(_, inner)| inner.properties.contains_key(name));
    let (holder, _) = holders.next()?;
    holders.next().is_none().then(|| format!("{holder}.{name}"))
}

fn listed(known: &[&str]) -> String {
    const MOST: usize = 8;
    match known {
        [] => "remove it".to_owned(),
        known if known.len() <= MOST => format!("remove it; known are {}", known.join(", ")),
        _ => "remove it, or see `kubectl explain`".to_owned(),
    }
}

/// Unknown fields of metadata.
pub(crate) fn unknown_metadata(name: &str) -> Problem {
    let hint = match nearest(name, metadata::FIELDS.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "remove it".to_owned(),
    };
    Problem::error(codes::UNKNOWN_FIELD, format!("unknown field `metadata.{name}`")).hint(hint)
}

/// The known name that was probably meant.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.filter(|known| is_near(name, known));
    near.map(|known| (distance(name, known), known)).min().map(|(_, known)| known)
}

/// The one of the values that differs from the text only in case, dashes and the like.
pub(crate) fn same_but_for_case<'a>(text: &str, known: &'a [String]) -> Option<&'a str> {
    let mut same = known.iter().filter(|known| distance(text, known) == 0);
    let (one, other) = (same.next()?, same.next());
    (other.is_none() && !plain(text).is_empty()).then_some(one.as_str())
}

fn is_near(name: &str, known: &str) -> bool {
    distance(name, known) <= (plain(name).chars().count() / 3).clamp(1, 3)
}

fn distance(one: &str, other: &str) -> usize {
    damerau_levenshtein(&plain(one), &plain(other))
}

fn plain(text: &str) -> String {
    text.chars().filter(|one| one.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// A pointer as the API server writes paths: `spec.list[0].name`.
pub(crate) fn dotted(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
    parts.fold(String::new(), |path, part| match part.parse::<usize>() {
        Ok(index) => format!("{path}[{index}]"),
        Err(_) if path.is_empty() => part,
        Err(_) => format!("{path}.{part}"),
    })
}
