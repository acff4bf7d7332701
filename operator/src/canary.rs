//! Which services an Upgrade holds at one pod, by its status: what the controllers of services have to know of Upgrades.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_crds::upgrade::Phase;
use serde_json::Value;

use crate::cache::Cache;
use crate::kind::Kind;
use crate::object::controller_of;

/// Whether an Upgrade has one pod of the component replaced first.
pub(crate) fn is_canary(cache: &Cache, component: &DynamicObject) -> bool {
    let kind = component.types.as_ref().map_or("", |types| &types.kind);
    let id = format!("{kind}/{}", component.name_any());
    let namespace = component.namespace().unwrap_or_default();
    let manager = controller_of(component).map(|owner| owner.name.clone());
    cache.list(Kind::Upgrade, &namespace).iter().any(|upgrade| {
        let of = upgrade.data.pointer("/spec/manager").and_then(Value::as_str);
        let steps = upgrade.data.pointer("/status/steps").and_then(Value::as_array);
        let mut steps = steps.into_iter().flatten();
        of == manager.as_deref()
            && is_at_work(upgrade)
            && steps.any(|step| step["id"] == id.as_str() && step["held"] == true)
    })
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
