//! The annotation in which a user names what may be lost (policy `destructive-change`). To write it
//! must always be possible: an object that other policies refuse could not be confirmed otherwise,
//! and so not be deleted.

use serde_json::Value;

/// Its name.
const ANNOTATION: &str = "opensdn.io/confirm-loss";
/// What the API server itself changes with every write.
const BOOKKEEPING: [&str; 3] = ["generation", "managedFields", "resourceVersion"];

/// Whether only the annotation differs. Both texts are JSON.
pub(super) fn is_all_that_changes(old: &str, new: &str) -> bool {
    match (without(old), without(new)) {
        (Some(old), Some(new)) => old == new,
        _ => false,
    }
}

fn without(object: &str) -> Option<Value> {
    let mut object: Value = serde_json::from_str(object).ok()?;
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    metadata.retain(|field, _| !BOOKKEEPING.contains(&field.as_str()));
    let is_empty =
        metadata.get_mut("annotations").and_then(Value::as_object_mut).is_some_and(|annotations| {
            annotations.remove(ANNOTATION).is_some() && annotations.is_empty()
        });
    if is_empty {
        metadata.remove("annotations");
    }
    Some(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_all_that_changes;

    fn object(annotations: serde_json::Value, spec: u8) -> String {
        json!({"metadata": {"name": "a", "annotations": annotations, "generation": spec,
            "resourceVersion": annotations.to_string()}, "spec": spec})
        .to_string()
    }

    #[test]
    fn the_annotation_alone_may_come_change_and_go() {
        let plain = json!({"metadata": {"name": "a"}, "spec": 1}).to_string();
        let confirmed = object(json!({"opensdn.io/confirm-loss": "Vrouter/a"}), 1);
        let otherwise = object(json!({"opensdn.io/confirm-loss": "Vrouter/b"}), 1);
        for (old, new) in [(&plain, &confirmed), (&confirmed, &otherwise), (&confirmed, &plain)] {
            assert!(is_all_that_changes(old, new), "{old} {new}");
        }
    }

    #[test]
    fn with_anything_else_it_is_an_ordinary_change() {
        let old = object(json!({"a": "b"}), 1);
        for new in [
            object(json!({"a": "b", "opensdn.io/confirm-loss": "Vrouter/a"}), 2),
            object(json!({"a": "c", "opensdn.io/confirm-loss": "Vrouter/a"}), 1),
            object(json!({"opensdn.io/confirm-loss": "Vrouter/a"}), 1),
        ] {
            assert!(!is_all_that_changes(&old, &new), "{new}");
        }
    }
}
