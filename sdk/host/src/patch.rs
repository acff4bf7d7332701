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

/// A place that two patches both change, if they do not change it to the same.
pub(crate) fn conflict(one: &Patch, other: &Patch) -> Option<String> {
    let changes = |patch: &Patch| -> Vec<PatchOperation> {
        let is_change = |operation: &&PatchOperation| !matches!(operation, PatchOperation::Test(_));
        patch.0.iter().filter(is_change).cloned().collect()
    };
    let other = changes(other);
    changes(one).into_iter().find_map(|mine| {
        let overlaps = |theirs: &&PatchOperation| **theirs != mine && overlap(&mine, theirs);
        other.iter().find(overlaps).map(|_| mine.path().to_string())
    })
}

/// Whether one place is the other or lies within it.
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
    use super::{conflict, wire};

    fn add(path: &str, value: &str) -> json_patch::Patch {
        super::read(vec![wire::PatchOperation::Add((path.into(), value.into()))]).unwrap()
    }

    #[test]
    fn patches_of_one_place_conflict_unless_they_are_the_same() {
        assert_eq!(conflict(&add("/a/b", "1"), &add("/a/b", "2")), Some("/a/b".to_owned()));
        assert_eq!(conflict(&add("/a/b", "1"), &add("/a", "{}")), Some("/a/b".to_owned()));
        assert_eq!(conflict(&add("/a/b", "1"), &add("/a/b", "1")), None);
        assert_eq!(conflict(&add("/a/b", "1"), &add("/a/bc", "2")), None);
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
