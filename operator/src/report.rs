//! Writes statuses, each when it says something else than what is stored.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject, TypeMeta};
use opensdn_crds::status::{READY, RECONCILING, STALLED};
use opensdn_runtime::apply::{Context as Writer, apply_status_as};
use opensdn_runtime::call::CallError;
use serde_json::{Value, json};

/// The service can do its work.
pub const AVAILABLE: &str = "Available";
/// Less runs than is wanted.
pub const DEGRADED: &str = "Degraded";
/// Nothing that the object owns is written.
pub const PAUSED: &str = "Paused";

/// All conditions that are written here. Those of other writers are theirs.
const OURS: [&str; 6] = [READY, RECONCILING, STALLED, AVAILABLE, DEGRADED, PAUSED];

/// The statuses that were written, until the watch tells of them: the next pass must not write them again.
#[derive(Debug, Default)]
pub struct Reported(Mutex<HashMap<String, (Option<String>, Value)>>);

impl Reported {
    /// The object with the status that it has by now.
    pub fn newest(&self, object: Arc<DynamicObject>) -> Arc<DynamicObject> {
        let mut all = self.lock();
        let uid = object.uid().unwrap_or_default();
        let Some((version, status)) = all.get(&uid) else { return object };
        if *version != object.metadata.resource_version {
            all.remove(&uid);
            return object;
        }
        let mut object = (*object).clone();
        if let Value::Object(data) = &mut object.data {
            data.insert("status".to_owned(), status.clone());
        }
        Arc::new(object)
    }

    /// Writes the status of the object, unless it says that already: `stored` is what of it is ours.
    ///
    /// # Errors
    /// The call fails.
    pub async fn write(
        &self,
        writer: &Writer,
        resource: &ApiResource,
        object: &DynamicObject,
        stored: &Value,
        status: Value,
    ) -> Result<(), CallError> {
        if comparable(stored) == comparable(&status) {
            return Ok(());
        }
        let mut report = DynamicObject::new(&object.name_any(), resource);
        let (api_version, kind) = (resource.api_version.clone(), resource.kind.clone());
        report.types = Some(TypeMeta { api_version, kind });
        report.metadata.namespace = object.namespace();
        report.metadata.uid = object.uid();
        report.data = json!({ "status": status });
        apply_status_as(writer, resource, &report).await?;
        let version = object.metadata.resource_version.clone();
        self.lock().insert(object.uid().unwrap_or_default(), (version, status));
        Ok(())
    }

    /// The object is gone.
    pub fn forget(&self, object: &DynamicObject) {
        self.lock().remove(&object.uid().unwrap_or_default());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Option<String>, Value)>> {
        // A map of whole statuses cannot be left half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without the conditions of others, and in one order.
fn comparable(status: &Value) -> Value {
    let mut status = status.clone();
    let type_of = |one: &Value| one["type"].as_str().unwrap_or_default().to_owned();
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        conditions.retain(|one| OURS.contains(&type_of(one).as_str()));
        conditions.sort_by_key(type_of);
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_others_and_their_order_are_no_difference() {
        let stored = json!({"active": true, "conditions": [{"type": "OfOthers"},
            {"type": "Ready", "status": "True"}, {"type": "Available", "status": "True"}]});
        let ours = json!({"active": true, "conditions": [{"type": "Available", "status": "True"},
            {"type": "Ready", "status": "True"}]});
        assert_eq!(comparable(&stored), comparable(&ours));
        let mut other = ours.clone();
        other["conditions"][1]["status"] = "False".into();
        assert_ne!(comparable(&stored), comparable(&other));
        other = ours;
        other["active"] = false.into();
        assert_ne!(comparable(&stored), comparable(&other));
    }
}
