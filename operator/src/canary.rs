//! How Upgrades have the pods of services replaced, by their status: what the controllers of services have to know of Upgrades.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_crds::upgrade::Phase;
use serde_json::Value;

use crate::cache::Cache;
use crate::kind::Kind;
use crate::object::controller_of;

/// How an Upgrade has the pods of a component replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// One first: the others wait until it has been well for a while.
    pub canary: bool,
    /// So many nodes at a time then, where there is one pod on each.
    pub at_once: i32,
    /// What is awaited of a node before its pod is replaced, where there is one on each.
    pub drain: Drain,
}

/// What is awaited of a node before its pod is replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Drain {
    /// Nothing.
    #[default]
    NotAwaited,
    /// That it is drained for this Upgrade, by namespace and name.
    For(String),
    /// No pod is replaced: the Upgrade has stopped, or was asked for another try and does not continue yet.
    OnHold,
}

impl Default for Pace {
    fn default() -> Self {
        Self { canary: false, at_once: 1, drain: Drain::NotAwaited }
    }
}

impl Pace {
    /// Whether the operator replaces each pod, and not the controller of DaemonSets.
    pub(crate) fn is_of_operator(&self) -> bool {
        self.canary || self.drain != Drain::NotAwaited || self.at_once > 1
    }
}

/// How it is to be done for the component; one after the other, where no Upgrade is at work.
pub(crate) fn pace(cache: &Cache, component: &DynamicObject) -> Pace {
    let kind = component.types.as_ref().map_or("", |types| &types.kind);
    let id = format!("{kind}/{}", component.name_any());
    let namespace = component.namespace().unwrap_or_default();
    let manager = controller_of(component).map(|owner| owner.name.clone());
    let mut pace = Pace::default();
    for upgrade in cache.list(Kind::Upgrade, &namespace) {
        let of = upgrade.data.pointer("/spec/manager").and_then(Value::as_str);
        if of != manager.as_deref() || !is_at_work(&upgrade) {
            continue;
        }
        let steps = upgrade.data.pointer("/status/steps").and_then(Value::as_array);
        let Some(step) = steps.into_iter().flatten().find(|step| step["id"] == id.as_str()) else {
            continue;
        };
        pace.canary |= step["held"] == true;
        let waits = upgrade.data.pointer("/spec/waitForDrain") == Some(&true.into());
        if waits && pace.drain == Drain::NotAwaited {
            pace.drain = match step["state"].as_str() {
                Some("Canary" | "Running") => {
                    Drain::For(format!("{namespace}/{}", upgrade.name_any()))
                }
                Some("Failed") => Drain::OnHold,
                Some("Pending") if step["attempts"].as_i64() > Some(0) => Drain::OnHold,
                _ => Drain::NotAwaited,
            };
        }
        let at_once = upgrade.data.pointer("/spec/vroutersAtOnce").and_then(Value::as_i64);
        if ["Running", "RollingBack"].iter().any(|state| step["state"] == *state) {
            pace.at_once =
                at_once.and_then(|number| i32::try_from(number).ok()).unwrap_or(1).max(1);
        }
    }
    pace
}

/// Whether it has begun and is not over. One that is deleted is over, though a finalizer may keep it.
pub(crate) fn is_at_work(upgrade: &DynamicObject) -> bool {
    let phase = phase(upgrade);
    upgrade.metadata.deletion_timestamp.is_none()
        && matches!(phase, Phase::Running | Phase::Paused | Phase::Stopped | Phase::RollingBack)
}

/// How far it has come; what cannot be read has not begun.
pub(crate) fn phase(object: &DynamicObject) -> Phase {
    let phase = object.data.pointer("/status/phase").cloned().unwrap_or_default();
    serde_json::from_value(phase).unwrap_or(Phase::Pending)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn drain(step: &Value, waits: bool) -> Drain {
        let owner = json!([{"apiVersion": "v", "kind": "Manager", "name": "m", "uid": "u", "controller": true}]);
        let vrouter =
            from_value(json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
            "metadata": {"name": "a", "namespace": "tf", "ownerReferences": owner}}));
        let upgrade = from_value(json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
            "metadata": {"name": "up", "namespace": "tf"}, "spec": {"manager": "m", "waitForDrain": waits},
            "status": {"phase": "Running", "steps": [step]}}));
        let cache = Cache::default();
        cache.put(Kind::Upgrade, upgrade.unwrap());
        pace(&cache, &vrouter.unwrap()).drain
    }

    fn step(state: &str) -> Value {
        json!({"id": "Vrouter/a", "state": state})
    }

    #[test]
    fn pods_wait_for_drained_nodes_while_their_step_is_at_work_and_for_none_after_a_stop() {
        for state in ["Canary", "Running"] {
            assert_eq!(drain(&step(state), true), Drain::For("tf/up".to_owned()), "{state}");
            assert_eq!(drain(&step(state), false), Drain::NotAwaited, "{state}");
        }
        assert_eq!(drain(&step("Failed"), true), Drain::OnHold, "a person decides");
        let again = json!({"id": "Vrouter/a", "state": "Pending", "attempts": 1});
        assert_eq!(drain(&again, true), Drain::OnHold, "asked for another try");
        for state in ["Pending", "Succeeded", "Skipped", "RollingBack", "RolledBack"] {
            assert_eq!(drain(&step(state), true), Drain::NotAwaited, "{state}");
        }
    }
}
