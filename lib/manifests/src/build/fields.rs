//! Fields of a mapping that is being built: keys that are there twice, and merge keys.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Node;
use crate::problem::{Problem, codes};
use crate::source::Span;
use crate::source_map::{Fields, SourceMap, join};

/// Puts a field into its mapping; the problem where it is there already.
pub(super) fn insert(
    name: String,
    span: Span,
    node: Node,
    fields: &mut Map<String, Value>,
    places: &mut Fields,
    merged: &mut BTreeSet<String>,
) -> Option<Problem> {
    let again = fields.contains_key(&name) && !merged.remove(&name);
    let problem = again.then(|| {
        let message = format!("the key `{name}` is in one mapping twice; only one would count");
        Problem::error(codes::DUPLICATE_KEY, message)
            .at(span)
            .pointer(join("", &name))
            .hint("remove one of them")
    });
    fields.insert(name.clone(), node.value);
    places.insert(name, (span, node.places));
    problem
}

/// Takes over the fields of what `<<` names. go-yaml lets them override fields that are before
/// the `<<`, against the specification; the value here is what kubectl sends.
pub(super) fn merge(
    node: Node,
    span: Span,
    fields: &mut Map<String, Value>,
    places: &mut Fields,
    merged: &mut BTreeSet<String>,
) -> Vec<Problem> {
    let sources = match node.value {
        Value::Object(fields) => vec![(fields, Some(node.places))],
        Value::Array(items) if !node.aliased && items.iter().all(Value::is_object) => {
            let whole = &node.places;
            let sources = items.into_iter().enumerate().filter_map(|(index, item)| {
                let places = whole.find(&format!("/{index}")).map(|(_, places)| places.clone());
                if let Value::Object(fields) = item { Some((fields, places)) } else { None }
            });
            // Earlier ones win, so they come last.
            sources.collect::<Vec<_>>().into_iter().rev().collect()
        }
        _ => {
            let message = "`<<` takes a mapping, an alias of one, or a list of these";
            return vec![Problem::error(codes::MERGE, message).at(span)];
        }
    };
    let mut overridden = BTreeSet::new();
    for (source, source_places) in sources {
        for (name, value) in source {
            let found = source_places.as_ref().and_then(|places| places.fields()?.get(&name));
            let place = found.map_or_else(
                || (span, SourceMap::of_scalar(span)),
                |(key, places)| (*key, places.clone()),
            );
            if fields.insert(name.clone(), value).is_some() && !merged.contains(&name) {
                overridden.insert(name.clone());
            }
            places.insert(name.clone(), place);
            merged.insert(name);
        }
    }
    let problem = |name: String| {
        let message = format!(
            "kubectl takes `{name}` from the `<<` behind it, other readers the value that is here"
        );
        Problem::warning(codes::MERGE, message)
            .at(span)
            .pointer(join("", &name))
            .hint("put the `<<` before all other fields of the mapping")
    };
    overridden.into_iter().map(problem).collect()
}
