//! How Upgrades have the pods of services replaced, by their status: what the controllers of services have to know of Upgrades.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_crds::upgrade::Phase;
use serde_json::Value;

use crate::cache::Cache;
use crate::kind::Kind;
use crate::object::controller_of;

/// No Upgrade: for it no node is drained.
pub(crate) const NONE: &str = "";

/// How an Upgrade has the pods of a component replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// One first: the others wait until it has been well for a while.
    pub(crate) canary: bool,
    /// So many nodes at a time then, where there is one pod on each.
    pub(crate) at_once: i32,
    /// The Upgrade for which a node has to be drained before its pod is replaced; [`NONE`], where no pod is to be replaced.
    pub(crate) drained_for: Option<String>,
}

/// How it is to be done for the component; one after the other, where no Upgrade is at work.
pub(crate) fn pace(cache: &Cache, component: &DynamicObject) -> Pace {
    let kind = component.types.as_ref().map_or("", |types| &types.kind);
    let id = format!("{kind}/{}", component.name_any());
    let namespace = component.namespace().unwrap_or_default();
    let manager = controller_of(component).map(|owner| owner.name.clone());
    let mut pace = Pace { canary: false, at_once: 1, drained_for: None };
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
        pace.drained_for = pace.drained_for.or_else(|| match step["state"].as_str() {
            _ if !waits => None,
            Some("Canary" | "Running") => Some(format!("{namespace}/{}", upgrade.name_any())),
            // It has stopped, or was asked for another try and does not continue yet.
            Some("Failed") => Some(NONE.to_owned()),
            Some("Pending") if step["attempts"].as_i64() > Some(0) => Some(NONE.to_owned()),
            _ => None,
        });
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

    fn drained_for(step: &Value, waits: bool) -> Option<String> {
        let owner = json!([{"apiVersion": "v", "kind": "Manager", "name": "m", "uid": "u", "controller": true}]);
        let vrouter =
            from_value(json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
            "metadata": {"name": "a", "namespace": "tf", "ownerReferences": owner}}));
        let upgrade = from_value(json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
            "metadata": {"name": "up", "namespace": "tf"}, "spec": {"manager": "m", "waitForDrain": waits},
            "status": {"phase": "Running", "steps": [step]}}));
        let cache = Cache::default();
        cache.put(Kind::Upgrade, upgrade.unwrap());
        pace(&cache, &vrouter.unwrap()).drained_for
    }

    fn step(state: &str) -> Value {
        json!({"id": "Vrouter/a", "state": state})
    }

    #[test]
    fn pods_wait_for_drained_nodes_while_their_step_is_at_work_and_for_none_after_a_stop() {
        for state in ["Canary", "Running"] {
            assert_eq!(drained_for(&step(state), true).as_deref(), Some("tf/up"), "{state}");
            assert_eq!(drained_for(&step(state), false), None, "{state}");
        }
        assert_eq!(drained_for(&step("Failed"), true).as_deref(), Some(NONE), "a person decides");
        let again = json!({"id": "Vrouter/a", "state": "Pending", "attempts": 1});
        assert_eq!(drained_for(&again, true).as_deref(), Some(NONE), "asked for another try");
        for state in ["Pending", "Succeeded", "Skipped", "RollingBack", "RolledBack"] {
            assert_eq!(drained_for(&step(state), true), None, "{state}");
        }
    }
}
