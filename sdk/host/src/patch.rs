//! From the patches of several policies to one that fits the object.

use json_patch::jsonptr::PointerBuf;
use json_patch::{
    AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation,
};
use serde_json::Value;

use crate::contract::wire;

/// Reads the operations that a policy returned.
///
/// # Errors
/// A pointer or a value is not one; the text says which.
pub(crate) fn read(operations: Vec<wire::PatchOperation>) -> Result<Patch, String> {
    operations.into_iter().map(operation).collect::<Result<_, _>>().map(Patch)
}

fn operation(operation: wire::PatchOperation) -> Result<PatchOperation, String> {
    use wire::PatchOperation as Wire;
    Ok(match operation {
        Wire::Add((path, value)) => {
            PatchOperation::Add(AddOperation { path: pointer(path)?, value: json(&value)? })
        }
        Wire::Replace((path, value)) => {
            PatchOperation::Replace(ReplaceOperation { path: pointer(path)?, value: json(&value)? })
        }
        Wire::Remove(path) => PatchOperation::Remove(RemoveOperation { path: pointer(path)? }),
        Wire::Test((path, value)) => {
            PatchOperation::Test(TestOperation { path: pointer(path)?, value: json(&value)? })
        }
    })
}

fn pointer(text: String) -> Result<PointerBuf, String> {
    PointerBuf::parse(text).map_err(|error| format!("a pointer is wrong: {error}"))
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("a value is not JSON: {error}"))
}

/// What several policies want changed of an object, and what becomes of it.
#[derive(Debug)]
pub(crate) struct Merging<'n> {
    object: Value,
    changed: Value,
    patches: Vec<(&'n str, Patch)>,
    merged: Patch,
}

/// A patch that fits beside those before it.
pub(crate) struct Fitting {
    /// What has not been asked for yet.
    new: Patch,
    changed: Value,
}

impl Merging<'_> {
    /// Starts with the object as received.
    ///
    /// # Errors
    /// The text is not JSON.
    pub(crate) fn of(object: &str) -> Result<Self, String> {
        let object: Value = serde_json::from_str(object).map_err(|error| error.to_string())?;
        Ok(Self { changed: object.clone(), object, patches: Vec::new(), merged: Patch::default() })
    }

    /// Whether the patch fits the object, and what others make of it. Two policies may want the
    /// very same; it is done once. What one policy wants twice is its own affair.
    ///
    /// # Errors
    /// It does not fit; the text says where, and whose patch is in the way.
    pub(crate) fn fit(&self, patch: &Patch) -> Result<Fitting, String> {
        let mut alone = self.object.clone();
        apply(&mut alone, patch)?;
        if self.patches.is_empty() {
            return Ok(Fitting { new: patch.clone(), changed: alone });
        }
        for (other, theirs) in &self.patches {
            if let Some(place) = conflict(patch, theirs, &self.object) {
                return Err(format!("{place} is changed by {other} too, to something else"));
            }
        }
        let is_new = |operation: &&PatchOperation| !self.merged.0.contains(operation);
        let new = Patch(patch.0.iter().filter(is_new).cloned().collect());
        let mut changed = self.changed.clone();
        apply(&mut changed, &new).map_err(|error| {
            let others: Vec<&str> = self.patches.iter().map(|(name, _)| *name).collect();
            format!("after the changes of {}: {error}", others.join(", "))
        })?;
        Ok(Fitting { new, changed })
    }

    /// The patches of all, to be applied in this order.
    pub(crate) fn merged(self) -> Patch {
        self.merged
    }
}

impl<'n> Merging<'n> {
    /// Takes the patch of this policy.
    pub(crate) fn take(&mut self, policy: &'n str, patch: Patch, fitting: Fitting) {
        self.patches.push((policy, patch));
        self.merged.0.extend(fitting.new.0);
        self.changed = fitting.changed;
    }
}

/// A place that two patches both change, if they do not change it to the same.
fn conflict(one: &Patch, other: &Patch, object: &Value) -> Option<String> {
    let is_change = |operation: &&PatchOperation| !matches!(operation, PatchOperation::Test(_));
    let changes = |patch: &Patch| -> Vec<PatchOperation> {
        patch.0.iter().filter(is_change).cloned().collect()
    };
    let theirs = changes(other);
    let same_place = changes(one).into_iter().find_map(|mine| {
        let overlaps = |theirs: &&PatchOperation| **theirs != mine && overlap(&mine, theirs);
        theirs.iter().find(overlaps).map(|_| mine.path().to_string())
    });
    same_place.or_else(|| shifted(one, other, object))
}

/// A list of whose items one patch changes the number, while the other counts them too.
fn shifted(one: &Patch, other: &Patch, object: &Value) -> Option<String> {
    let lists = [one, other].into_iter().flat_map(|patch| &patch.0);
    let lists = lists.filter_map(|operation| shifts(operation, object));
    lists.map(str::to_owned).find(|list| {
        let (mine, theirs) = (below(one, list), below(other, list));
        !mine.is_empty() && !theirs.is_empty() && mine != theirs
    })
}

/// The list behind whose new or removed item all others have another number.
fn shifts<'p>(operation: &'p PatchOperation, object: &Value) -> Option<&'p str> {
    if !matches!(operation, PatchOperation::Add(_) | PatchOperation::Remove(_)) {
        return None;
    }
    let (list, item) = operation.path().as_str().rsplit_once('/')?;
    (is_number(item) && object.pointer(list).is_some_and(Value::is_array)).then_some(list)
}

/// What a patch does to numbered items of a list.
fn below<'p>(patch: &'p Patch, list: &str) -> Vec<&'p PatchOperation> {
    let is_below = |operation: &&PatchOperation| {
        let rest = operation.path().as_str().strip_prefix(list);
        let rest = rest.and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|rest| is_number(rest.split('/').next().unwrap_or_default()))
    };
    patch.0.iter().filter(is_below).collect()
}

fn is_number(segment: &str) -> bool {
    !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether one place is the other or within it.
fn overlap(one: &PatchOperation, other: &PatchOperation) -> bool {
    let (one, other) = (one.path().as_str(), other.path().as_str());
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Applies the patch, all of it or nothing.
///
/// # Errors
/// It does not fit the object; the text says where.
pub fn apply(object: &mut Value, patch: &Patch) -> Result<(), String> {
    json_patch::patch(object, &patch.0).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Merging, Patch, wire};

    fn patch(operations: Value) -> Patch {
        serde_json::from_value(operations).unwrap()
    }

    /// What becomes of the object, or why the second patch does not fit beside the first.
    fn both(object: &Value, first: Value, second: Value) -> Result<Value, String> {
        let mut merging = Merging::of(&object.to_string()).unwrap();
        for (policy, wanted) in [("first", first), ("second", second)] {
            let wanted = patch(wanted);
            let fitting = merging.fit(&wanted)?;
            merging.take(policy, wanted, fitting);
        }
        let mut changed = object.clone();
        super::apply(&mut changed, &merging.merged()).unwrap();
        Ok(changed)
    }

    fn add(path: &str, value: Value) -> Value {
        json!([{"op": "add", "path": path, "value": value}])
    }

    #[test]
    fn patches_of_one_place_conflict_unless_they_are_the_same() {
        let object = json!({"a": {}});
        let of_b = |value| add("/a/b", json!(value));
        let conflict = Err("/a/b is changed by first too, to something else".to_owned());
        assert_eq!(both(&object, of_b(2), of_b(1)), conflict);
        assert_eq!(both(&object, add("/a", json!({})), of_b(1)), conflict);
        assert_eq!(both(&object, of_b(1), of_b(1)), Ok(json!({"a": {"b": 1}})));
        let beside = add("/a/bc", json!(2));
        assert_eq!(both(&object, of_b(1), beside), Ok(json!({"a": {"b": 1, "bc": 2}})));
    }

    #[test]
    fn what_two_policies_append_is_appended_once_and_what_one_wants_twice_twice() {
        let appends = |values: &[u8]| -> Value {
            values.iter().map(|value| add("/list/-", json!(value))[0].clone()).collect()
        };
        let object = json!({"list": []});
        let appended = both(&object, appends(&[1, 1]), appends(&[1, 1]));
        assert_eq!(appended, Ok(json!({"list": [1, 1]})));
    }

    #[test]
    fn items_that_another_patch_has_moved_are_not_mistaken() {
        let object = json!({"list": [{"n": 1}, {"n": 2}], "numbers": {"0": 1}});
        let remove = json!([{"op": "remove", "path": "/list/0"}]);
        let conflict = Err("/list is changed by first too, to something else".to_owned());
        assert_eq!(both(&object, remove.clone(), add("/list/1/n", json!(3))), conflict);
        assert_eq!(both(&object, add("/list/1/n", json!(3)), remove.clone()), conflict);
        let once = json!({"list": [{"n": 2}], "numbers": {"0": 1}});
        assert_eq!(both(&object, remove.clone(), remove.clone()), Ok(once));
        let behind = both(&object, remove, add("/list/-", json!({"n": 3})));
        assert_eq!(behind.unwrap()["list"], json!([{"n": 2}, {"n": 3}]));
        let named = both(
            &object,
            json!([{"op": "remove", "path": "/numbers/0"}]),
            add("/numbers/1", json!(2)),
        );
        assert_eq!(named.unwrap()["numbers"], json!({"1": 2}));
    }

    #[test]
    fn a_test_sees_what_others_changed_before() {
        let tests = json!([{"op": "test", "path": "/a", "value": 1}]);
        let replaces = json!([{"op": "replace", "path": "/a", "value": 2}]);
        let said = both(&json!({"a": 1}), replaces, tests).unwrap_err();
        assert!(said.starts_with("after the changes of first: "), "{said}");
    }

    #[test]
    fn what_does_not_fit_the_object_is_not_taken() {
        let removes = json!([{"op": "remove", "path": "/a"}]);
        assert!(both(&json!({}), removes, json!([])).is_err());
    }

    #[test]
    fn a_wrong_pointer_or_value_is_refused() {
        let read = |path: &str, value: &str| {
            super::read(vec![wire::PatchOperation::Test((path.into(), value.into()))])
        };
        assert!(read("a", "1").is_err());
        assert!(read("/a", "{").is_err());
    }
}
