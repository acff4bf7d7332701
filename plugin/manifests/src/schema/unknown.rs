//! Fields that the schema has not. The API server prunes them and kubectl refuses them; here each
//! is told, with the name that was probably meant, and then pruned.

use serde_json::{Map, Value};
use strsim::damerau_levenshtein;

use super::found::Found;
use super::metadata;
use super::node::{Additional, Node};
use crate::places::join;
use crate::problem::{Problem, codes};

/// The fields that every object has, which schemas need not name.
const OF_OBJECTS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes what the schema has not, and tells it.
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
    for name in unknown {
        found.push(unknown_field(&name, fields, node, is_object, at));
        fields.remove(&name);
    }
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
    let plain = |text: &str| {
        text.chars()
            .filter(|character| character.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    let wanted = plain(name);
    let most = (wanted.chars().count() / 3).clamp(1, 3);
    known
        .map(|known| (damerau_levenshtein(&wanted, &plain(known)), known))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, known)| known)
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
