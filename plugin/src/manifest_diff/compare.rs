//! What an apply would change of one object, from what is stored and what the API server answers to a dry run. Pure.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::install::object::ObjectKey;
use crate::install::path::{differences, position};
use crate::install::plan::{DryRun, plain};
use crate::secret_mask::{Secrets, cut, whole};

/// What a client-side apply has noted; at each server-side one the API server writes it again by itself.
const NOTED: &str = ".metadata.annotations.kubectl.kubernetes.io/last-applied-configuration";

/// An object, and what an apply would do to it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ManifestChange {
    /// What it is called.
    #[serde(flatten)]
    pub(crate) key: ObjectKey,
    /// What an apply would do.
    #[serde(flatten)]
    pub(crate) effect: Effect,
}

/// What an apply would do.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "action", rename_all = "camelCase")]
pub(crate) enum Effect {
    /// There is none yet.
    Create,
    /// Fields would change.
    Change {
        /// Which.
        fields: Vec<FieldDifference>,
    },
    /// Nothing.
    Same,
    /// The API server would refuse it.
    Refused {
        /// Why.
        reason: String,
    },
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FieldDifference {
    /// Its path.
    pub(crate) field: String,
    /// What is stored; of a secret a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Value>,
    /// What it would be; of a secret a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<Value>,
    /// Who has set it, where an apply would be refused for that: a conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owned_by: Option<String>,
}

/// How many objects there are of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    /// They are not there yet.
    pub(crate) create: usize,
    /// They differ.
    pub(crate) change: usize,
    /// Of those that differ: fields belong to others.
    pub(crate) conflict: usize,
    /// The API server would refuse them.
    pub(crate) refused: usize,
    /// They are as they should be.
    pub(crate) same: usize,
}

impl Counts {
    /// Of all objects.
    pub(crate) fn of(all: &[ManifestChange]) -> Self {
        let mut counts = Self::default();
        for one in all {
            match &one.effect {
                Effect::Create => counts.create += 1,
                Effect::Change { fields } => {
                    counts.change += 1;
                    counts.conflict += usize::from(fields.iter().any(|one| one.owned_by.is_some()));
                }
                Effect::Refused { .. } => counts.refused += 1,
                Effect::Same => counts.same += 1,
            }
        }
        counts
    }

    /// How many differ.
    pub(crate) fn differ(self) -> usize {
        let Self { create, change, refused, conflict: _, same: _ } = self;
        create + change + refused
    }
}

/// The object is stored as `live`; this is what an apply would do.
pub(super) fn compared(
    key: ObjectKey,
    live: Option<&Value>,
    dry: &DryRun,
    secrets: Secrets,
) -> ManifestChange {
    let (stored, conflicts) = match dry {
        DryRun::Refused(reason) | DryRun::Untried(reason) => {
            return ManifestChange { key, effect: Effect::Refused { reason: reason.clone() } };
        }
        DryRun::Stored(stored) => (stored, [].as_slice()),
        DryRun::Conflicts { fields, forced } => (forced, fields.as_slice()),
    };
    let Some(live) = live else { return ManifestChange { key, effect: Effect::Create } };
    let owners: Vec<(String, &str)> = conflicts
        .iter()
        .filter(|(_, manager)| !is_taken_over(manager))
        .map(|(field, manager)| (position(live, field), manager.as_str()))
        .collect();
    let shown = |object: &Value| match secrets {
        Secrets::Hidden => whole(&plain(object)),
        Secrets::Shown => plain(object),
    };
    let mut found = Vec::new();
    differences(&shown(live), &shown(stored), "", &mut found);
    let fields: Vec<FieldDifference> = found
        .into_iter()
        .filter(|(field, ..)| field != NOTED)
        .map(|(field, from, to)| {
            let owner =
                owners.iter().find(|(of, _)| is_within(of, &field) || is_within(&field, of));
            let [from, to] = [from, to].map(|value| {
                value.map(|mut value| {
                    cut(&mut value);
                    value
                })
            });
            FieldDifference { owned_by: owner.map(|(_, name)| (*name).to_owned()), field, from, to }
        })
        .collect();
    let effect = if fields.is_empty() { Effect::Same } else { Effect::Change { fields } };
    ManifestChange { key, effect }
}

/// kubectl's server-side apply takes over by itself what its client-side apply has set.
fn is_taken_over(manager: &str) -> bool {
    ["kubectl-client-side-apply", "kubectl-last-applied"].contains(&manager)
}

/// Whether the field is the other, or in it.
fn is_within(field: &str, other: &str) -> bool {
    field.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(kind: &str) -> ObjectKey {
        ObjectKey::within("b", "v1", kind, "a")
    }

    fn pod(image: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b", "uid": image,
            "managedFields": [{"manager": image}]},
            "spec": {"containers": [{"name": "x", "image": "i"}, {"name": "c", "image": image}]},
            "status": {"phase": image}})
    }

    #[test]
    fn what_the_api_server_writes_at_each_change_is_no_difference() {
        let mut dry = pod("1");
        dry["metadata"]["uid"] = json!("other");
        dry["metadata"]["generation"] = json!(7);
        let mut live = pod("1");
        for (object, noted) in [(&mut live, "before"), (&mut dry, "after")] {
            let noted = json!({"kubectl.kubernetes.io/last-applied-configuration": noted});
            object["metadata"]["annotations"] = noted;
        }
        dry["status"] = json!({"phase": "other"});
        let one = compared(key("Pod"), Some(&live), &DryRun::Stored(dry), Secrets::Hidden);
        assert_eq!(one.effect, Effect::Same);
    }

    #[test]
    fn a_conflict_is_named_at_its_field_whose_others_are_listed_too() {
        let mut forced = pod("2");
        forced["spec"]["restartPolicy"] = json!("Never");
        let owner = (r#".spec.containers[name="c"].image"#.to_owned(), "someone".to_owned());
        let dry = DryRun::Conflicts { fields: vec![owner], forced };
        let Effect::Change { fields } =
            compared(key("Pod"), Some(&pod("1")), &dry, Secrets::Hidden).effect
        else {
            panic!("not changed")
        };
        let found: Vec<_> =
            fields.iter().map(|one| (one.field.as_str(), one.owned_by.as_deref())).collect();
        assert_eq!(
            found,
            [(".spec.containers[1].image", Some("someone")), (".spec.restartPolicy", None)]
        );
        // What kubectl itself has set by a client-side apply is no conflict to it, nor is what has the same value.
        let owner = (".spec.containers".to_owned(), "kubectl-client-side-apply".to_owned());
        let dry = DryRun::Conflicts { fields: vec![owner], forced: pod("2") };
        let changed = compared(key("Pod"), Some(&pod("1")), &dry, Secrets::Hidden);
        assert_eq!(Counts::of(&[changed]), Counts { change: 1, ..Counts::default() });
    }

    #[test]
    fn data_of_a_secret_is_a_hash_that_shows_whether_it_differs_and_no_more() {
        let secret = |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": data});
        let live = secret(json!({"a": "aHVudGVyMg==", "same": "eA=="}));
        let dry = DryRun::Stored(secret(json!({"a": "b3RoZXI=", "same": "eA==", "new": "eQ=="})));
        let text = |secrets| {
            let one = compared(key("Secret"), Some(&live), &dry, secrets);
            serde_json::to_string(&one).unwrap()
        };
        let hidden = text(Secrets::Hidden);
        assert!(!hidden.contains("aHVudGVyMg") && !hidden.contains("b3RoZXI"), "{hidden}");
        assert_eq!(hidden.matches("sha256:").count(), 3, "{hidden}");
        assert!(text(Secrets::Shown).contains("aHVudGVyMg=="));
        let dry = DryRun::Stored(secret(json!({"a": "aHVudGVyMg=="})));
        let whole = compared(
            key("Secret"),
            Some(&json!({"metadata": {"name": "a"}})),
            &dry,
            Secrets::Hidden,
        );
        assert!(!serde_json::to_string(&whole).unwrap().contains("aHVudGVyMg"), "{whole:?}");
    }

    #[test]
    fn what_is_refused_is_not_compared_and_what_is_not_there_is_made() {
        let refused = DryRun::Refused("no".to_owned());
        for live in [None, Some(&pod("1"))] {
            let one = compared(key("Pod"), live, &refused, Secrets::Hidden);
            assert_eq!(one.effect, Effect::Refused { reason: "no".to_owned() });
        }
        let one = compared(key("Pod"), None, &DryRun::Stored(pod("1")), Secrets::Hidden);
        assert_eq!(one.effect, Effect::Create);
    }
}
