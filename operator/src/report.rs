//! Writes statuses, each when it says something else than what is stored, and an Event where an object has become
//! Ready, or ceased to be, or is not for another reason than before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::api::{ApiResource, DynamicObject, TypeMeta};
use kube::runtime::events::{Event, EventType};
use kube::{Resource as _, ResourceExt as _};
use opensdn_crds::status::{Condition, PAUSED, READY, RECONCILING, STALLED};
use opensdn_runtime::apply::{Context as Writer, apply_status_as, apply_status_if_unchanged};
use opensdn_runtime::call::CallError;
use opensdn_runtime::error_chain;
use opensdn_runtime::events::Events;
use serde_json::{Value, json};

use crate::progress::PROGRESSING;

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
const OURS: [&str; 10] = [
    READY,
    RECONCILING,
    STALLED,
    AVAILABLE,
    PROGRESSING,
    DEGRADED,
    PAUSED,
    HAD_QUORUM,
    RELEASE_KNOWN,
    PODS_AS_BEFORE,
];

/// The statuses that were written, by the UIDs of their objects.
#[derive(Default)]
struct Written(HashMap<String, Last>);

/// The last status of an object that was written, until the watch reports it.
struct Last {
    /// The versions that the object had before, since the watch reported one.
    older: Vec<Option<String>>,
    /// The version that it has with it, where the answer was asked for that.
    version: Option<String>,
    status: Value,
}

impl Written {
    /// The object with the status that it has by now.
    fn newest(&mut self, object: Arc<DynamicObject>) -> Arc<DynamicObject> {
        let uid = object.uid().unwrap_or_default();
        let Some(last) = self.0.get(&uid) else { return object };
        if !last.older.contains(&object.metadata.resource_version) {
            self.0.remove(&uid);
            return object;
        }
        let mut object = (*object).clone();
        if let Value::Object(data) = &mut object.data {
            data.insert("status".to_owned(), last.status.clone());
        }
        if last.version.is_some() {
            object.metadata.resource_version.clone_from(&last.version);
        }
        Arc::new(object)
    }

    /// It was written over the version that this object has.
    fn note(&mut self, object: &DynamicObject, version: Option<String>, status: Value) {
        let (uid, before) =
            (object.uid().unwrap_or_default(), object.metadata.resource_version.clone());
        let mut older = match self.0.remove(&uid) {
            Some(last) if last.version.is_some() && last.version == before => last.older,
            _ => Vec::new(),
        };
        older.push(before);
        self.0.insert(uid, Last { older, version, status });
    }
}

/// When a status is written.
#[derive(Clone, Copy)]
enum Only {
    Always,
    IfUnchanged,
}

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
        self.lock().newest(object)
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
        only: Only,
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
        let version = match only {
            Only::Always => {
                apply_status_as(&self.writer, resource, &report).await?;
                None
            }
            Only::IfUnchanged => {
                report.metadata.resource_version.clone_from(&object.metadata.resource_version);
                apply_status_if_unchanged(&self.writer, resource, &report).await?
            }
        };
        self.lock().note(object, version, status);
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
        self.report_only(resource, object, stored, status, Only::Always).await
    }

    /// The same, if nobody has changed the object since it was read: an operator that does not lead any more and does not know
    /// it yet decides by what was long ago.
    ///
    /// # Errors
    /// As of [`Self::report`], and a conflict.
    pub async fn report_if_unchanged(
        &self,
        resource: &ApiResource,
        object: &DynamicObject,
        stored: &Value,
        status: Value,
    ) -> Result<(), CallError> {
        self.report_only(resource, object, stored, status, Only::IfUnchanged).await
    }

    async fn report_only(
        &self,
        resource: &ApiResource,
        object: &DynamicObject,
        stored: &Value,
        status: Value,
        only: Only,
    ) -> Result<(), CallError> {
        let event = transition(stored, &status);
        let written = self.write(resource, object, stored, status, only).await?;
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
        self.lock().0.remove(&object.uid().unwrap_or_default());
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
    // That pods are replaced as somebody wants it is nothing to be warned of.
    let is_wanted = ["Canary", "RollingUpdate"].contains(&reason.as_str());
    let was_ready = before.is_some_and(|before| before.status == "True");
    let is_worse = is_stalled || (was_ready && !is_wanted);
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
        let first = status("False", "Canary", "one pod first");
        assert_eq!(said(&ready, &first), Some((false, "Canary".into())));
        let stalled = json!({"conditions": [{"type": STALLED, "status": "True"},
            {"type": READY, "status": "False", "reason": "ImageMissing"}]});
        assert_eq!(said(&waits, &stalled), Some((true, "ImageMissing".into())));
    }

    #[test]
    fn what_was_written_counts_until_the_watch_reports_it_or_something_newer() {
        let object = |version: &str| -> Arc<DynamicObject> {
            let metadata = json!({"name": "a", "uid": "u", "resourceVersion": version});
            let object = json!({"apiVersion": "v1", "kind": "A", "metadata": metadata, "status": {"n": version}});
            Arc::new(serde_json::from_value(object).unwrap())
        };
        let mut written = Written::default();
        let mut seen = |version: &str, write: Option<(&str, i32)>| {
            let newest = written.newest(object(version));
            if let Some((version, number)) = write {
                written.note(&newest, Some(version.to_owned()), json!({ "n": number }));
            }
            (newest.data["status"]["n"].clone(), newest.metadata.resource_version.clone().unwrap())
        };
        assert_eq!(seen("1", Some(("2", 20))), (json!("1"), "1".to_owned()));
        // The watch is behind, twice.
        assert_eq!(seen("1", Some(("3", 30))), (json!(20), "2".to_owned()));
        assert_eq!(seen("1", None), (json!(30), "3".to_owned()));
        assert_eq!(seen("2", None), (json!(30), "3".to_owned()));
        // It has caught up; and somebody has changed it since.
        assert_eq!(seen("3", None), (json!("3"), "3".to_owned()));
        assert_eq!(seen("4", Some(("5", 50))), (json!("4"), "4".to_owned()));
        assert_eq!(seen("6", None), (json!("6"), "6".to_owned()));
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
