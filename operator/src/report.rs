//! Writes statuses, each when it says something else than what is stored, and an Event where an object has become
//! Ready, or ceased to be, or is not for another reason than before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::api::{ApiResource, DynamicObject, TypeMeta};
use kube::runtime::events::{Event, EventType};
use kube::{Resource as _, ResourceExt as _};
use opensdn_crds::status::{Condition, PAUSED, READY, RECONCILING, STALLED};
use opensdn_runtime::apply::{Context as Writer, apply_status_as};
use opensdn_runtime::call::CallError;
use opensdn_runtime::error_chain;
use opensdn_runtime::events::Events;
use serde_json::{Value, json};

/// The service can do its work.
pub const AVAILABLE: &str = "Available";
/// Less runs than is wanted.
pub const DEGRADED: &str = "Degraded";

/// The members of a service that counts them have had a quorum: it is not started from nothing by itself.
pub const HAD_QUORUM: &str = "HadQuorum";
/// The condition that is False while it is not known of which release the images are.
pub const RELEASE_KNOWN: &str = "ReleaseKnown";

/// The pods are those that tf-operator has made.
pub const PODS_AS_BEFORE: &str = "PodsAsBefore";

/// All conditions that are written here. Those of other writers are theirs.
const OURS: [&str; 9] = [
    READY,
    RECONCILING,
    STALLED,
    AVAILABLE,
    DEGRADED,
    PAUSED,
    HAD_QUORUM,
    RELEASE_KNOWN,
    PODS_AS_BEFORE,
];

/// By the UID of an object the version that had the status before, and the status that was written.
type Written = HashMap<String, (Option<String>, Value)>;

/// Writes statuses and Events. Remembers the statuses that were written until the watch reports them: the next pass
/// must not write them again.
pub struct Reporter {
    writer: Writer,
    events: Events,
    written: Mutex<Written>,
}

impl Reporter {
    /// One that has written nothing yet.
    #[must_use]
    pub fn new(writer: Writer, events: Events) -> Self {
        Self { writer, events, written: Mutex::default() }
    }

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

    /// Writes the status of the object, unless it says that already: `stored` is what of it is ours. Whether it was
    /// written.
    ///
    /// # Errors
    /// The call fails.
    async fn write(
        &self,
        resource: &ApiResource,
        object: &DynamicObject,
        stored: &Value,
        status: Value,
    ) -> Result<bool, CallError> {
        if comparable(stored) == comparable(&status) {
            return Ok(false);
        }
        let mut report = DynamicObject::new(&object.name_any(), resource);
        let (api_version, kind) = (resource.api_version.clone(), resource.kind.clone());
        report.types = Some(TypeMeta { api_version, kind });
        report.metadata.namespace = object.namespace();
        report.metadata.uid = object.uid();
        report.data = json!({ "status": status });
        apply_status_as(&self.writer, resource, &report).await?;
        let version = object.metadata.resource_version.clone();
        self.lock().insert(object.uid().unwrap_or_default(), (version, status));
        Ok(true)
    }

    /// Says how the object is, where that is not said yet: in its status, and by an Event. `stored` is what of
    /// its status is ours.
    ///
    /// # Errors
    /// The status cannot be written. An Event that cannot is lost.
    pub async fn report(
        &self,
        resource: &ApiResource,
        object: &DynamicObject,
        stored: &Value,
        status: Value,
    ) -> Result<(), CallError> {
        let event = transition(stored, &status);
        let written = self.write(resource, object, stored, status).await?;
        if let Some(event) = event.filter(|_| written) {
            self.publish(resource, object, event).await;
        }
        Ok(())
    }

    /// Publishes an Event about the object. One that cannot be is lost.
    pub async fn publish(&self, resource: &ApiResource, object: &DynamicObject, event: Event) {
        let about = object.object_ref(resource);
        if let Err(error) = self.events.publish(event, &about).await {
            let (kind, namespace, name) = (&about.kind, &about.namespace, &about.name);
            let error = error_chain(&error);
            tracing::warn!(kind, namespace, name, error, "failed to publish an Event");
        }
    }

    /// The object is gone.
    pub fn forget(&self, object: &DynamicObject) {
        self.lock().remove(&object.uid().unwrap_or_default());
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        // A map of whole statuses cannot be left half changed.
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an Event says of the way from one status to the next; nothing where Ready is as it was.
fn transition(before: &Value, after: &Value) -> Option<Event> {
    let is_stalled = condition(after, STALLED).is_some();
    let (before, after) = (condition(before, READY), condition(after, READY)?);
    let reason = after.reason.filter(|reason| !reason.is_empty())?;
    if before.as_ref().is_some_and(|before| {
        before.status == after.status && before.reason.as_ref() == Some(&reason)
    }) {
        return None;
    }
    let is_worse = is_stalled || before.is_some_and(|before| before.status == "True");
    let action = if after.status == "True" { "BecomeReady" } else { "Reconcile" };
    Some(Event {
        type_: if is_worse { EventType::Warning } else { EventType::Normal },
        reason,
        note: after.message,
        action: action.to_owned(),
        secondary: None,
    })
}

fn condition(status: &Value, type_: &str) -> Option<Condition> {
    let all = serde_json::from_value::<Vec<Condition>>(status.get("conditions")?.clone()).ok()?;
    all.into_iter().find(|one| one.type_ == type_)
}

/// Without the conditions of others, and in one order.
fn comparable(status: &Value) -> Value {
    let mut status = status.clone();
    let type_of =
        |one: &Value| one.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
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
    fn an_event_reports_each_change_of_ready_and_its_reason_and_nothing_else() {
        let status = |status: &str, reason: &str, message: &str| json!({"conditions": [{"type": READY, "status": status, "reason": reason, "message": message}]});
        let (waits, more) =
            (status("False", "Waits", "0 of 3"), status("False", "Waits", "1 of 3"));
        let ready = status("True", "PodsReady", "3 of 3");
        let said = |before: &Value, after: &Value| {
            transition(before, after).map(|event| (event.type_ == EventType::Warning, event.reason))
        };
        assert_eq!(said(&json!({}), &waits), Some((false, "Waits".into())));
        assert_eq!(said(&waits, &more), None);
        assert_eq!(said(&more, &ready), Some((false, "PodsReady".into())));
        assert_eq!(said(&ready, &waits), Some((true, "Waits".into())));
        assert_eq!(said(&ready, &json!({})), None);
        let stalled = json!({"conditions": [{"type": STALLED, "status": "True"},
            {"type": READY, "status": "False", "reason": "ImageMissing"}]});
        assert_eq!(said(&waits, &stalled), Some((true, "ImageMissing".into())));
    }

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
