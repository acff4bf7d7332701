//! What people see where two stored objects claim one key: a condition and an Event on the one that
//! was created later, which name both. Deliberately not here: which object that is.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::events::{Event, EventType};
use opensdn_crds::status::{Condition, ConditionStatus, Conditions};
use opensdn_crds::unique_claim::Holder as StoredHolder;
use opensdn_deploy::names::webhook::{NAME, UNIQUE_MANAGER};
use opensdn_policy_host::Claim;
use opensdn_runtime::apply::{Context, apply_status_as};
use opensdn_runtime::call::CallError;
use opensdn_runtime::events::Events;
use serde_json::{Value, json};

use super::error::describe;
use super::ledger::{KnownObject, ObjectRef};

/// Type of the condition.
const CONDITION: &str = "UniqueConflict";

/// Reports conflicts on objects.
pub(super) struct Reporter {
    ctx: Context,
    events: Events,
}

/// The conflicts of an object: by the names of the claims, what was claimed and the older object
/// that claims it too.
pub(super) type Conflicts = BTreeMap<String, (Claim, StoredHolder)>;

impl Reporter {
    pub(super) fn new(client: Client, replica: &str) -> Self {
        let ctx = Context::new(client.clone(), UNIQUE_MANAGER);
        Self { ctx, events: Events::new(client, NAME, replica) }
    }

    /// Makes the object's condition say this; no conflicts: there is no condition.
    pub(super) async fn report(
        &self,
        resource: &ApiResource,
        object: &StoredHolder,
        known: &KnownObject,
        conflicts: &Conflicts,
    ) -> Result<(), CallError> {
        let text = (!conflicts.is_empty()).then(|| text(object, conflicts));
        if known.condition == text {
            return Ok(());
        }
        if let Err(error) = self.set_condition(resource, object, text.as_deref()).await {
            match error.status() {
                // Not every kind has a status, or conditions in it; then there is only the Event.
                // 429 is none of that: the API server has no time.
                Some(status) if (400..500).contains(&status.code) && status.code != 429 => {
                    let (kind, error) = (&object.kind, &status.message);
                    tracing::info!(
                        kind,
                        error,
                        "failed to set the condition; sending an Event only"
                    );
                }
                _ => return Err(error),
            }
        }
        self.publish(object, known, text.as_deref()).await
    }

    async fn set_condition(
        &self,
        resource: &ApiResource,
        object: &StoredHolder,
        text: Option<&str>,
    ) -> Result<(), CallError> {
        let mut written = DynamicObject::new(&object.name, resource);
        written.metadata.namespace.clone_from(&object.namespace);
        // With the UID: a new object of that name is not meant.
        written.metadata.uid.clone_from(&object.uid);
        written.data = match text {
            Some(text) => json!({"status": {"conditions": conditions(text)}}),
            None => json!({"status": {}}),
        };
        apply_status_as(&self.ctx, resource, &written).await
    }

    async fn publish(
        &self,
        object: &StoredHolder,
        known: &KnownObject,
        text: Option<&str>,
    ) -> Result<(), CallError> {
        let (type_, reason, note) = match text {
            Some(text) => (EventType::Warning, CONDITION, text),
            None => (
                EventType::Normal,
                "UniqueConflictSolved",
                "Nothing that this object claims is claimed by an older object any more.",
            ),
        };
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(note.to_owned()),
            action: "CheckUniqueness".to_owned(),
            secondary: None,
        };
        let reference = ObjectReference {
            api_version: Some(api_version(object)),
            kind: Some(object.kind.clone()),
            namespace: object.namespace.clone(),
            name: Some(object.name.clone()),
            uid: Some(known.uid.clone()),
            ..ObjectReference::default()
        };
        self.events.publish(event, &reference).await
    }
}

/// What the condition of a stored object says.
pub(super) fn reported(object: &Value) -> Option<String> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let ours = conditions.iter().find(|condition| condition.get("type") == Some(&CONDITION.into()));
    Some(ours?.get("message")?.as_str()?.to_owned())
}

fn conditions(text: &str) -> Vec<Condition> {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut conditions = Conditions::after(&[]);
    conditions.set(CONDITION, ConditionStatus::True, "KeyTaken", text, None, &now);
    conditions.into_vec()
}

fn text(object: &StoredHolder, conflicts: &Conflicts) -> String {
    let lines = conflicts.values().map(|(claim, older)| {
        let later =
            describe(&StoredHolder { pointer: Some(claim.pointer.clone()), ..object.clone() });
        format!(
            "{} ({}) is claimed by {} and by {later}, which was created later",
            claim.key,
            claim.scope,
            describe(older)
        )
    });
    let text = lines.collect::<Vec<_>>().join("; ");
    format!("{text}. Change or delete one of them.")
}

fn api_version(object: &StoredHolder) -> String {
    let version = object.version.as_deref().unwrap_or_default();
    if object.group.is_empty() { version.to_owned() } else { format!("{}/{version}", object.group) }
}

impl ObjectRef {
    /// As the holder of a claim, made at that field.
    pub(super) fn held(&self, known: &KnownObject, pointer: Option<&str>) -> StoredHolder {
        StoredHolder {
            group: self.group.clone(),
            version: Some(known.version.clone()),
            kind: self.kind.clone(),
            namespace: (!self.namespace.is_empty()).then(|| self.namespace.clone()),
            name: self.name.clone(),
            uid: Some(known.uid.clone()),
            pointer: pointer.map(str::to_owned),
        }
    }
}
