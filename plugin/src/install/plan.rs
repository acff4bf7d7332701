//! What an apply would do to each object: decided from the stored object and from what the API server answers to a dry
//! run of the apply. Pure.

use opensdn_deploy::Phase;
use opensdn_deploy::names::MANAGED_BY_LABEL;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::object::{ObjectKey, is_member, managers};
use super::path::{differences, lookup};
use super::waits::remains;

/// A field that would be changed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct FieldChange {
    /// Its path.
    pub(crate) field: String,
    /// What is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Value>,
    /// What it would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<Value>,
}

/// A field that another manager has set, to something else.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct FieldConflict {
    /// Its path.
    pub(crate) field: String,
    /// The other manager.
    pub(crate) manager: String,
    /// What the other has set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) theirs: Option<Value>,
    /// What it would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ours: Option<Value>,
}

/// What an apply would do.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "action", rename_all = "camelCase")]
pub(crate) enum Action {
    /// There is none yet.
    Create,
    /// Fields would change.
    Change {
        /// Which.
        fields: Vec<FieldChange>,
    },
    /// Nothing.
    Same,
    /// Fields belong to others.
    Conflict {
        /// Which.
        conflicts: Vec<FieldConflict>,
    },
    /// It is there, and not of this installation.
    Foreign {
        /// Who manages it.
        managers: Vec<String>,
    },
    /// It is being deleted: what is applied to it goes with it.
    Ending {
        /// What holds it.
        reason: String,
    },
    /// There is none yet, and the API server would refuse it.
    Refused {
        /// Why.
        reason: String,
    },
    /// The API server does not say what it would do.
    Unknown {
        /// Why.
        reason: String,
    },
}

/// What the API server answered to a dry run.
#[derive(Clone, Debug)]
pub(crate) enum DryRun {
    /// The object as it would be stored.
    Stored(Value),
    /// Fields belong to others.
    Conflicts {
        /// Each with its manager.
        fields: Vec<(String, String)>,
        /// The object as it would be stored if they were taken over.
        forced: Value,
    },
    /// Something else, in words.
    Refused(String),
    /// Nothing: a webhook that it asks does not answer.
    Untried(String),
}

/// What is planned for an object.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// What it is called.
    pub(crate) key: ObjectKey,
    /// When it is applied.
    pub(crate) phase: Phase,
    /// What is applied.
    pub(crate) object: Value,
    /// What that does.
    pub(crate) action: Action,
    /// Whether it is there already and not ours.
    pub(crate) existed: bool,
    /// Whether the fields of others are taken over.
    pub(crate) force: bool,
    /// Why it is not known whether it would be taken.
    pub(crate) untried: Option<String>,
}

/// Whether objects that are there already, and not of this installation, are taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adopt {
    /// They are.
    Yes,
    /// They are reported.
    No,
}

/// What an apply does to an object that is stored as `live`. None for `dry` where there was no reason to ask.
pub(crate) fn decide(
    object: &Value,
    live: Option<&Value>,
    dry: Option<&DryRun>,
    installation: &str,
    adopt: Adopt,
) -> Action {
    let Some(live) = live else {
        return match dry {
            Some(DryRun::Refused(reason)) => Action::Refused { reason: reason.clone() },
            _ => Action::Create,
        };
    };
    if live.pointer("/metadata/deletionTimestamp").is_some() {
        return Action::Ending { reason: remains(live) };
    }
    if adopt == Adopt::No && is_foreign(live, installation) {
        return Action::Foreign { managers: managers(live) };
    }
    match dry {
        Some(DryRun::Stored(stored)) => change(live, stored),
        Some(DryRun::Conflicts { fields, forced }) => {
            let conflicts: Vec<FieldConflict> = fields
                .iter()
                .filter(|(field, _)| !is_no_conflict(field, live, forced, adopt))
                .map(|(field, manager)| FieldConflict {
                    field: field.clone(),
                    manager: manager.clone(),
                    theirs: lookup(live, field).cloned(),
                    ours: lookup(object, field).cloned(),
                })
                .collect();
            match conflicts.is_empty() {
                true => change(live, forced),
                false => Action::Conflict { conflicts },
            }
        }
        Some(DryRun::Refused(reason) | DryRun::Untried(reason)) => {
            Action::Unknown { reason: reason.clone() }
        }
        None => Action::Unknown { reason: "it was not asked".to_owned() },
    }
}

/// Whether taking the field over changes nothing of what the other wants. To the API server some mappings are one value,
/// and it compares them before it fills in defaults: the same manifest, applied by two, is a conflict to it.
fn is_no_conflict(field: &str, live: &Value, forced: &Value, adopt: Adopt) -> bool {
    // Who manages it is what an adoption changes.
    let is_label = field == format!(".metadata.labels.{MANAGED_BY_LABEL}");
    let stored = lookup(live, field);
    (adopt == Adopt::Yes && is_label) || (stored.is_some() && stored == lookup(forced, field))
}

/// Whether it is there and not of this installation. Namespaces are made by administrators before, for Secrets and
/// quotas, and what is in them stays theirs.
pub(crate) fn is_foreign(live: &Value, installation: &str) -> bool {
    live.get("kind").and_then(Value::as_str) != Some("Namespace") && !is_member(live, installation)
}

fn change(live: &Value, stored: &Value) -> Action {
    let mut found = Vec::new();
    differences(&plain(live), &plain(stored), "", &mut found);
    if found.is_empty() {
        return Action::Same;
    }
    let fields =
        found.into_iter().map(|(field, from, to)| FieldChange { field, from, to }).collect();
    Action::Change { fields }
}

/// Without what the API server writes at each change.
pub(crate) fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Value::Object(fields) = &mut object {
        fields.remove("status");
    }
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for key in ["managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"] {
            metadata.remove(key);
        }
    }
    object
}

/// How many objects each action is planned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    /// They are not there yet.
    pub(crate) create: usize,
    /// They differ, or it is unknown whether they do.
    pub(crate) change: usize,
    /// They are as they should be.
    pub(crate) same: usize,
    /// They have fields of others, are not of this installation, are being deleted, or are refused by the API server.
    pub(crate) refused: usize,
}

impl Counts {
    /// Of a plan.
    pub(crate) fn of(plan: &[Planned]) -> Self {
        let mut counts = Self::default();
        for planned in plan {
            match planned.action {
                Action::Create => counts.create += 1,
                Action::Change { .. } | Action::Unknown { .. } => counts.change += 1,
                Action::Same => counts.same += 1,
                Action::Conflict { .. }
                | Action::Foreign { .. }
                | Action::Ending { .. }
                | Action::Refused { .. } => counts.refused += 1,
            }
        }
        counts
    }

    /// Whether an apply would write anything.
    pub(crate) fn writes(self) -> bool {
        self.create + self.change > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::object::with_labels;
    use serde_json::json;

    fn object() -> Value {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "b"}, "spec": {"replicas": 3}});
        with_labels(object, "id")
    }

    fn stored(replicas: u32) -> Value {
        let mut stored = object();
        stored["spec"]["replicas"] = json!(replicas);
        stored["metadata"]["uid"] = json!(format!("{replicas}"));
        stored["status"] = json!({"replicas": replicas});
        stored
    }

    #[test]
    fn what_differs_is_changed_and_what_does_not_is_left_alone() {
        assert_eq!(decide(&object(), None, None, "id", Adopt::No), Action::Create);
        let refused = DryRun::Refused("no such thing here".to_owned());
        let reason = "no such thing here".to_owned();
        let action = decide(&object(), None, Some(&refused), "id", Adopt::No);
        assert_eq!(action, Action::Refused { reason });
        let dry = DryRun::Stored(stored(3));
        assert_eq!(decide(&object(), Some(&stored(3)), Some(&dry), "id", Adopt::No), Action::Same);
        let Action::Change { fields } =
            decide(&object(), Some(&stored(1)), Some(&dry), "id", Adopt::No)
        else {
            panic!("not changed")
        };
        let expected = FieldChange {
            field: ".spec.replicas".to_owned(),
            from: Some(json!(1)),
            to: Some(json!(3)),
        };
        assert_eq!(fields, [expected]);
    }

    #[test]
    fn what_is_being_deleted_is_not_as_it_should_be() {
        let mut going = stored(3);
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        going["metadata"]["finalizers"] = json!(["example.com/hold"]);
        let dry = DryRun::Stored(going.clone());
        for adopt in [Adopt::No, Adopt::Yes] {
            let action = decide(&object(), Some(&going), Some(&dry), "id", adopt);
            let Action::Ending { reason } = action else { panic!("{action:?}") };
            assert!(reason.contains("example.com/hold"), "{reason}");
        }
    }

    #[test]
    fn fields_of_others_are_reported_with_both_values() {
        let fields = vec![(".spec.replicas".to_owned(), "kubectl-edit".to_owned())];
        let dry = DryRun::Conflicts { fields: fields.clone(), forced: stored(3) };
        // What would not change is no conflict.
        let same = decide(&object(), Some(&stored(3)), Some(&dry), "id", Adopt::No);
        assert_eq!(same, Action::Same);
        let action = decide(&object(), Some(&stored(1)), Some(&dry), "id", Adopt::Yes);
        let expected = FieldConflict {
            field: ".spec.replicas".to_owned(),
            manager: "kubectl-edit".to_owned(),
            theirs: Some(json!(1)),
            ours: Some(json!(3)),
        };
        assert_eq!(action, Action::Conflict { conflicts: vec![expected] });
    }

    #[test]
    fn what_is_not_ours_is_taken_over_only_when_that_is_said_and_namespaces_always() {
        let mut foreign = stored(3);
        foreign["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
        let field = format!(".metadata.labels.{MANAGED_BY_LABEL}");
        let fields = vec![(field, "helm".to_owned())];
        let dry = DryRun::Conflicts { fields, forced: stored(3) };
        let decided = |adopt| decide(&object(), Some(&foreign), Some(&dry), "id", adopt);
        assert!(matches!(decided(Adopt::No), Action::Foreign { .. }));
        assert!(matches!(decided(Adopt::Yes), Action::Change { .. }));
        assert!(!is_foreign(&json!({"kind": "Namespace", "metadata": {"name": "tf"}}), "id"));
    }
}
