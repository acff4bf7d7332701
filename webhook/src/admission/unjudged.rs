//! Updates that pass without being judged, since an object that policies refuse could otherwise
//! never go: of what waits for its finalizers, those that change nothing but metadata; and the
//! annotation in which a user names what may be lost (policy `destructive-change`).
//!
//! Both objects are compared as they are written, member by member: where the API server writes
//! the same in another way, the update is judged like any other. No trees are built, for a body of
//! 8 MiB can become sixteen times as much.

use super::members::{Members, member};

/// Name of the annotation.
const ANNOTATION: &str = "opensdn.io/confirm-loss";
/// What the API server itself changes with every write, and what is compared by itself.
const NOT_COMPARED: [&str; 4] = ["annotations", "generation", "managedFields", "resourceVersion"];

/// Whether nothing but metadata differs. Both texts are JSON.
pub(super) fn only_metadata_change(old: &str, new: &str) -> bool {
    let both = metadata(old).is_some() && metadata(new).is_some();
    both && without(old, &["metadata"]).eq(without(new, &["metadata"]))
}

/// Whether only the annotation differs. Both texts are JSON.
pub(super) fn only_confirms(old: &str, new: &str) -> bool {
    let (Some(before), Some(after)) = (metadata(old), metadata(new)) else { return false };
    let annotations = |metadata| member(metadata, "annotations").unwrap_or_default();
    only_metadata_change(old, new)
        && without(before, &NOT_COMPARED).eq(without(after, &NOT_COMPARED))
        && without(annotations(before), &[ANNOTATION])
            .eq(without(annotations(after), &[ANNOTATION]))
}

/// Whether only owners and finalizers differ, as where the garbage collector lets an object go whose owner is
/// deleted with `--cascade=orphan`. Both texts are JSON.
pub(super) fn only_owners_change(old: &str, new: &str) -> bool {
    const OWNERS: [&str; 5] =
        ["finalizers", "generation", "managedFields", "ownerReferences", "resourceVersion"];
    let (Some(before), Some(after)) = (metadata(old), metadata(new)) else { return false };
    only_metadata_change(old, new) && without(before, &OWNERS).eq(without(after, &OWNERS))
}

fn metadata(object: &str) -> Option<&str> {
    member(object, "metadata")
}

fn without<'t>(object: &'t str, names: &[&str]) -> impl Iterator<Item = (&'t str, &'t str)> {
    Members::of(object).filter(|(key, _)| !names.contains(key))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{only_confirms, only_metadata_change, only_owners_change};

    fn object(annotations: Value, spec: u8) -> String {
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
            assert!(only_confirms(old, new), "{old} {new}");
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
            assert!(!only_confirms(&old, &new), "{new}");
        }
    }

    #[test]
    fn metadata_alone_may_change_in_any_way() {
        let object = |metadata: Value, spec: &str, status: u8| {
            json!({"kind": "A", "metadata": metadata, "spec": spec, "status": status}).to_string()
        };
        let old = object(json!({"finalizers": ["a", "b"], "labels": {"x": "y"}}), "good", 1);
        let done = json!({"finalizers": ["b"], "annotations": {}});
        assert!(only_metadata_change(&old, &object(done.clone(), "good", 1)));
        assert!(!only_metadata_change(&old, &object(done.clone(), "bad", 1)));
        assert!(!only_metadata_change(&old, &object(done, "good", 2)));
        let hidden = old.replace("spec", "sp\\u0065c");
        assert!(!only_metadata_change(&old, &hidden), "another spelling is judged");
        let more = old.replace("\"status\"", "\"metadat\\u0061\":{},\"status\"");
        assert!(!only_metadata_change(&old, &more));
    }

    #[test]
    fn owners_may_change_alone() {
        let object =
            |metadata: Value, spec: u8| json!({"metadata": metadata, "spec": spec}).to_string();
        let old = object(
            json!({"name": "a", "labels": {"x": "y"},
            "ownerReferences": [{"uid": "u"}], "resourceVersion": "1"}),
            1,
        );
        let orphan = json!({"name": "a", "labels": {"x": "y"}, "resourceVersion": "1"});
        assert!(only_owners_change(&old, &object(orphan.clone(), 1)));
        assert!(!only_owners_change(&old, &object(orphan, 2)));
        let labelled = json!({"name": "a", "labels": {"x": "z"}, "resourceVersion": "1"});
        assert!(!only_owners_change(&old, &object(labelled, 1)));
    }

    #[test]
    fn what_is_no_object_is_judged() {
        for text in ["null", "[]", "7", "{}", r#"{"spec":1}"#] {
            assert!(!only_metadata_change(text, text), "{text}");
            assert!(!only_confirms(text, text), "{text}");
        }
    }
}
