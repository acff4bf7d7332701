//! The patch builder: says what should be there and emits only what is missing.

use serde::Serialize;
use serde_json::Value;

use crate::{Failure, Pointer, bindings::opensdn::policy::types as wire};

/// A JSON Patch (RFC 6902) in the making, against a part of the object that was read.
#[derive(Clone, Debug, Default)]
pub struct Patch {
    operations: Vec<Operation>,
}

#[derive(Clone, Debug)]
enum Operation {
    Add(Pointer, Value),
    Replace(Pointer, Value, Value),
    Remove(Pointer, Value),
}

impl Patch {
    /// No change.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Fills in `value` at `pointer` if nothing is there, with the objects on the way.
    ///
    /// `part` is the current value at `at`, as the policy read it; it is changed too, so that a
    /// later call sees what an earlier one filled in. Where something else than an object is
    /// in the way nothing is done: the schema will refuse it with a better message.
    ///
    /// # Errors
    /// `value` cannot be written as JSON.
    pub fn default_value(
        &mut self,
        part: &mut Value,
        at: &Pointer,
        pointer: &str,
        value: impl Serialize,
    ) -> Result<(), Failure> {
        let value = serde_json::to_value(value).map_err(|error| Failure(error.to_string()))?;
        let segments: Vec<String> = Pointer::from(pointer).segments().collect();
        self.fill(part, at.clone(), &segments, value);
        Ok(())
    }

    fn fill(&mut self, current: &mut Value, here: Pointer, segments: &[String], value: Value) {
        let (Some(map), Some((first, rest))) = (current.as_object_mut(), segments.split_first())
        else {
            return;
        };
        let next = here.key(first);
        match map.get_mut(first) {
            Some(Value::Null) | None => {
                let built = nest(rest, value);
                map.insert(first.clone(), built.clone());
                self.operations.push(Operation::Add(next, built));
            }
            Some(inner) if !rest.is_empty() => self.fill(inner, next, rest, value),
            Some(_) => {}
        }
    }

    /// Replaces `old` by `new`; the host refuses the patch if the value is another one.
    pub fn replace(&mut self, pointer: impl Into<Pointer>, old: Value, new: Value) {
        self.operations.push(Operation::Replace(pointer.into(), old, new));
    }

    /// Removes `old`; the host refuses the patch if the value is another one.
    pub fn remove(&mut self, pointer: impl Into<Pointer>, old: Value) {
        self.operations.push(Operation::Remove(pointer.into(), old));
    }

    pub(crate) fn into_wire(self) -> Vec<wire::PatchOperation> {
        self.operations.into_iter().flat_map(operation_into_wire).collect()
    }
}

fn nest(segments: &[String], value: Value) -> Value {
    segments.iter().rev().fold(value, |inner, segment| {
        Value::Object(std::iter::once((segment.clone(), inner)).collect())
    })
}

/// A change of an existing value is guarded by a `test` of what was seen.
fn operation_into_wire(operation: Operation) -> Vec<wire::PatchOperation> {
    use wire::PatchOperation as Wire;
    match operation {
        Operation::Add(pointer, value) => vec![Wire::Add((pointer.to_string(), value.to_string()))],
        Operation::Replace(pointer, old, new) => vec![
            Wire::Test((pointer.to_string(), old.to_string())),
            Wire::Replace((pointer.to_string(), new.to_string())),
        ],
        Operation::Remove(pointer, old) => vec![
            Wire::Test((pointer.to_string(), old.to_string())),
            Wire::Remove(pointer.to_string()),
        ],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Operation, Patch};
    use crate::Pointer;

    fn adds(patch: &Patch) -> Vec<(String, Value)> {
        let add = |operation: &Operation| match operation {
            Operation::Add(pointer, value) => (pointer.to_string(), value.clone()),
            other => unreachable!("only additions are expected, not {other:?}"),
        };
        patch.operations.iter().map(add).collect()
    }

    #[test]
    fn fills_in_what_is_absent_with_its_parents() {
        let mut spec = json!({"a": {"b": 1}});
        let mut patch = Patch::new();
        let at = Pointer::from("/spec");
        patch.default_value(&mut spec, &at, "/a/b", 2).unwrap();
        patch.default_value(&mut spec, &at, "/a/c", 3).unwrap();
        patch.default_value(&mut spec, &at, "/x/y", 4).unwrap();
        patch.default_value(&mut spec, &at, "/x/z", 5).unwrap();
        assert_eq!(
            adds(&patch),
            [
                ("/spec/a/c".to_owned(), json!(3)),
                ("/spec/x".to_owned(), json!({"y": 4})),
                ("/spec/x/z".to_owned(), json!(5)),
            ]
        );
        assert_eq!(spec, json!({"a": {"b": 1, "c": 3}, "x": {"y": 4, "z": 5}}));
    }

    #[test]
    fn leaves_alone_what_is_no_object() {
        let mut spec = json!({"a": "text"});
        let mut patch = Patch::new();
        patch.default_value(&mut spec, &Pointer::root(), "/a/b", 2).unwrap();
        assert!(adds(&patch).is_empty());
    }
}
