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
pub(crate) struct Pace {
    /// One first: the others wait until it has been well for a while.
    pub(crate) canary: bool,
    /// So many nodes at a time then, where there is one pod on each.
    pub(crate) at_once: i32,
    /// The Upgrade for which a node has to be drained before its pod is replaced.
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
        if waits && ["Canary", "Running", "Failed"].iter().any(|state| step["state"] == *state) {
            pace.drained_for = Some(format!("{namespace}/{}", upgrade.name_any()));
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
