//! Fields as the API server names them in conflicts, `.spec.containers[name="a"].image`: what is there, and what differs
//! between two objects. Pure.

use serde_json::Value;

/// The value at the path; none where there is none, or where the path is of a set.
pub(super) fn lookup<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(value);
    }
    match value {
        Value::Object(fields) => {
            let rest = path.strip_prefix('.')?;
            // Keys may have dots: the longest that fits is meant.
            let fits = |key: &&String| {
                rest.strip_prefix(key.as_str())
                    .is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
            };
            let key = fields.keys().filter(fits).max_by_key(|key| key.len())?;
            lookup(fields.get(key)?, rest.get(key.len()..)?)
        }
        Value::Array(items) => {
            let (keys, rest) = path.strip_prefix('[')?.split_once(']')?;
            let keys: Vec<(&str, &str)> =
                keys.split(',').map(|key| key.split_once('=')).collect::<Option<_>>()?;
            let wanted = |text| serde_json::from_str::<Value>(text).ok();
            let is = |item: &&Value| {
                keys.iter().all(|(key, text)| item.get(key) == wanted(text).as_ref())
            };
            lookup(items.iter().find(is)?, rest)
        }
        _ => None,
    }
}

/// The path with the positions of items in the place of their keys, as [`differences`] names them; as far as it leads.
pub(crate) fn position(value: &Value, path: &str) -> String {
    let Some((before, rest)) = path.split_once('[') else { return path.to_owned() };
    let Some((keys, after)) = rest.split_once(']') else { return path.to_owned() };
    let items = lookup(value, before).and_then(Value::as_array);
    let item = lookup(value, &format!("{before}[{keys}]"));
    let at = items.zip(item).and_then(|(items, item)| items.iter().position(|one| one == item));
    match (at, item) {
        (Some(at), Some(item)) => format!("{before}[{at}]{}", position(item, after)),
        // An item of a set, or one that is not there: the list is what differs.
        _ => before.to_owned(),
    }
}

/// A field that differs.
pub(crate) type Difference = (String, Option<Value>, Option<Value>);

/// Every field that differs, by its path.
pub(crate) fn differences(from: &Value, to: &Value, path: &str, found: &mut Vec<Difference>) {
    match (from, to) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before {
                let path = format!("{path}.{key}");
                match after.get(key) {
                    Some(other) => differences(value, other, &path, found),
                    None => found.push((path, Some(value.clone()), None)),
                }
            }
            let new = after.iter().filter(|(key, _)| !before.contains_key(*key));
            found.extend(
                new.map(|(key, value)| (format!("{path}.{key}"), None, Some(value.clone()))),
            );
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (at, (one, other)) in before.iter().zip(after).enumerate() {
                differences(one, other, &format!("{path}[{at}]"), found);
            }
        }
        (from, to) if from == to => {}
        (from, to) => found.push((path.to_owned(), Some(from.clone()), Some(to.clone()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_of_conflicts_are_followed() {
        let object = json!({"metadata": {"labels": {"a.b/c": "x"}}, "spec": {"ports": [{"port": 1, "n": "a"}, {"port": 2, "n": "b"}]}});
        assert_eq!(lookup(&object, ".metadata.labels.a.b/c"), Some(&json!("x")));
        assert_eq!(lookup(&object, ".spec.ports[port=2].n"), Some(&json!("b")));
        assert_eq!(lookup(&object, ".spec.ports[port=3].n"), None);
        assert_eq!(lookup(&object, ".spec.none"), None);
    }

    #[test]
    fn paths_of_conflicts_are_those_of_differences_by_position() {
        let object =
            json!({"a": [{"n": "x"}, {"n": "y", "b": [{"k": 1}, {"k": 2, "v": 3}]}], "s": ["t"]});
        for (path, expected) in [
            (r#".a[n="y"].b[k=2].v"#, ".a[1].b[1].v"),
            (r#".a[n="z"].b"#, ".a"),
            (r#".s[="t"]"#, ".s"),
            (".a", ".a"),
        ] {
            assert_eq!(position(&object, path), expected);
        }
    }

    #[test]
    fn every_field_that_differs_is_found_once() {
        let mut found = Vec::new();
        let from = json!({"a": 1, "b": [1, 2], "c": {"d": 1}, "same": true});
        let to = json!({"a": 2, "b": [1, 3], "c": {"e": 1}, "same": true});
        differences(&from, &to, "", &mut found);
        let paths: Vec<&str> = found.iter().map(|(path, ..)| path.as_str()).collect();
        assert_eq!(paths, [".a", ".b[1]", ".c.d", ".c.e"]);
    }
}
