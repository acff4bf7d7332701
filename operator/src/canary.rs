//! How Upgrades have the pods of services replaced, by their status: what the controllers of services have to know of Upgrades.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_crds::upgrade::Phase;
use serde_json::Value;

use crate::cache::Cache;
use crate::kind::Kind;
use crate::object::{controller_of, number};

/// How an Upgrade has the pods of a component replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// One first: the others wait until it has been well for a while.
    pub canary: bool,
    /// So many nodes at a time then, where there is one pod on each; `None` while no Upgrade is at work on it.
    pub at_once: Option<i32>,
    /// What is awaited of a node before its pod is replaced, where there is one on each.
    pub drain: Drain,
    /// No pod is replaced but one that cannot start: the Upgrade has stopped, or was asked for another try and does not
    /// continue yet.
    pub on_hold: bool,
}

/// What is awaited of a node before its pod is replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Drain {
    /// Nothing.
    #[default]
    NotAwaited,
    /// That it is drained for this Upgrade, by namespace and name.
    For(String),
}

/// What a service says while one pod is looked at.
pub(crate) const HELD: &str = "an Upgrade looks at its first pod with the new images, waits for what daemons say, or is paused: its other pods wait";

/// And after a stop.
pub(crate) const ON_HOLD: &str = "an Upgrade has stopped, and its other pods stay as they are until that is retried, turned back or \
     deleted: kubectl opensdn upgrade status";

impl Default for Pace {
    fn default() -> Self {
        Self { canary: false, at_once: None, drain: Drain::NotAwaited, on_hold: false }
    }
}

impl Pace {
    /// Whether the operator replaces each pod, and not the controller of DaemonSets, which would do it as the component's own
    /// settings say: an Upgrade has a pace of its own.
    pub(crate) fn is_of_operator(&self) -> bool {
        self.canary || self.on_hold || self.drain != Drain::NotAwaited || self.at_once.is_some()
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
        let state = step["state"].as_str().unwrap_or_default();
        pace.canary |= step["held"] == true;
        pace.on_hold |= is_on_hold(phase(&upgrade), step, state);
        let waits = upgrade.data.pointer("/spec/waitForDrain") == Some(&true.into());
        if waits && ["Canary", "Running"].contains(&state) {
            pace.drain = Drain::For(format!("{namespace}/{}", upgrade.name_any()));
        }
        let at_once = number(&upgrade.data, "/spec/vroutersAtOnce");
        if ["Canary", "Running", "RollingBack"].contains(&state) {
            let at_once = at_once.and_then(|count| i32::try_from(count).ok()).unwrap_or(1);
            pace.at_once = Some(at_once.max(1));
        }
    }
    pace
}

/// Whether a step has begun and is not over, and a person is to decide.
fn is_on_hold(phase: Phase, step: &Value, state: &str) -> bool {
    match state {
        "Failed" => true,
        "Pending" => step["attempts"].as_i64() > Some(0),
        "Canary" | "Running" | "RollingBack" => phase == Phase::Stopped,
        _ => false,
    }
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
        paced("Running", step, waits).drain
    }

    fn paced(phase: &str, step: &Value, waits: bool) -> Pace {
        let owner = json!([{"apiVersion": "v", "kind": "Manager", "name": "m", "uid": "u", "controller": true}]);
        let vrouter =
            from_value(json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
            "metadata": {"name": "a", "namespace": "tf", "ownerReferences": owner}}));
        let upgrade = from_value(json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
            "metadata": {"name": "up", "namespace": "tf"}, "spec": {"manager": "m", "waitForDrain": waits},
            "status": {"phase": phase, "steps": [step]}}));
        let cache = Cache::default();
        cache.put(Kind::Upgrade, upgrade.unwrap());
        pace(&cache, &vrouter.unwrap())
    }

    fn step(state: &str) -> Value {
        json!({"id": "Vrouter/a", "state": state})
    }

    #[test]
    fn pods_wait_for_drained_nodes_while_their_step_is_at_work() {
        for state in ["Canary", "Running"] {
            assert_eq!(drain(&step(state), true), Drain::For("tf/up".to_owned()), "{state}");
            assert_eq!(drain(&step(state), false), Drain::NotAwaited, "{state}");
        }
        for state in ["Failed", "Pending", "Succeeded", "Skipped", "RollingBack", "RolledBack"] {
            assert_eq!(drain(&step(state), true), Drain::NotAwaited, "{state}");
        }
    }

    #[test]
    fn while_a_step_is_at_work_only_the_operator_replaces_pods_one_at_a_time_unless_it_is_asked_for_more()
     {
        for state in ["Canary", "Running", "RollingBack"] {
            let pace = paced("Running", &step(state), false);
            assert!(pace.is_of_operator() && pace.at_once == Some(1), "{state}: {pace:?}");
        }
        for state in ["Succeeded", "Skipped", "RolledBack"] {
            assert!(!paced("Running", &step(state), false).is_of_operator(), "{state}");
        }
        assert!(!paced("Running", &step("Pending"), false).is_of_operator(), "it has not begun");
        assert!(!paced("Succeeded", &step("Running"), false).is_of_operator(), "it is over");
    }

    #[test]
    fn after_a_stop_no_pod_of_a_step_that_has_begun_is_replaced_until_a_person_decides() {
        let is_held = |phase: &str, step: &Value| {
            let pace = paced(phase, step, false);
            let is_at_work =
                ["Canary", "Running", "RollingBack"].iter().any(|state| step["state"] == *state);
            assert_eq!(
                pace.is_of_operator(),
                pace.on_hold || is_at_work,
                "else the DaemonSet replaces the next"
            );
            pace.on_hold
        };
        let again = json!({"id": "Vrouter/a", "state": "Pending", "attempts": 1});
        assert!(is_held("Running", &again), "asked for another try");
        assert!(!is_held("Stopped", &step("Pending")), "it has not begun");
        assert!(is_held("Stopped", &step("Failed")));
        for state in ["Canary", "Running", "RollingBack"] {
            assert!(
                is_held("Stopped", &step(state)),
                "{state}: also where the way back has failed"
            );
            assert!(!is_held("Running", &step(state)), "{state}");
        }
        for state in ["Succeeded", "Skipped", "RolledBack"] {
            assert!(!is_held("Stopped", &step(state)), "{state}");
        }
    }
}
