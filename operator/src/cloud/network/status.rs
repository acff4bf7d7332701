//! The condition `NetworkWritten` of a Config, which has a field manager of its own: its other conditions are those of
//! its component.

use kube::ResourceExt as _;
use kube::api::{DynamicObject, TypeMeta};
use opensdn_crds::status::{Condition, ConditionStatus, Conditions};
use opensdn_runtime::apply::apply_status_as;
use serde_json::json;

use crate::cloud::condition::Said;
use crate::cloud::pass::Pass;
use crate::reconcile::{Error, now};

pub(super) const NETWORK_WRITTEN: &str = "NetworkWritten";

/// Says it, where that is not said yet.
pub(super) async fn say(pass: &Pass<'_>, said: &Said) -> Result<(), Error> {
    let generation = pass.generation();
    let before = pass.conditions();
    let mut conditions = Conditions::after(&before);
    let is = if said.is_in_place() { ConditionStatus::True } else { ConditionStatus::False };
    conditions.set(NETWORK_WRITTEN, is, said.reason(), said.message(), generation, &now());
    let conditions = conditions.into_vec();
    let written: Vec<&Condition> =
        before.iter().filter(|one| one.type_ == NETWORK_WRITTEN).collect();
    if written == conditions.iter().collect::<Vec<_>>() {
        return Ok(());
    }
    let mut report = DynamicObject::new(&pass.object.name_any(), pass.resource);
    let (api_version, kind) = (pass.resource.api_version.clone(), pass.resource.kind.clone());
    report.types = Some(TypeMeta { api_version, kind });
    report.metadata.namespace = pass.object.namespace();
    report.metadata.uid = pass.object.uid();
    report.data = json!({"status": {"conditions": conditions}});
    apply_status_as(&pass.clouds.writer, pass.resource, &report).await?;
    Ok(())
}
