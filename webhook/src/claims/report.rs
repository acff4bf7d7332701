//! What people see where two stored objects claim one key: a condition and an Event on the
//! younger, which name both.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter as Reporting};
use kube::{Api, Client, api::DynamicObject};
use opensdn_crds::unique_claim::Holder as Held;
use opensdn_policy_host::Claim;
use serde_json::{Value, json};

use super::error::describe;
use super::ledger::{Known, Place};

/// Type of the condition.
const CONDITION: &str = "UniqueConflict";
/// Whose the condition is, in server-side apply.
const MANAGER: &str = "opensdn-webhook-unique";
/// The API server takes notes of Events up to this many bytes.
const LONGEST_NOTE: usize = 1000;

/// Tells people about conflicts.
pub(super) struct Reporter {
    recorder: Recorder,
}

/// What an object has lost: by the names of the claims, what was claimed and the older object
/// that claims it too.
pub(super) type Losses = BTreeMap<String, (Claim, Held)>;

impl Reporter {
    pub(super) fn new(client: Client, replica: &str) -> Self {
        let reporting =
            Reporting { controller: "opensdn-webhook".into(), instance: Some(replica.to_owned()) };
        Self { recorder: Recorder::new(client, reporting) }
    }

    /// Makes the object's condition say this; no losses: there is no condition.
    pub(super) async fn tell(
        &self,
        api: &Api<DynamicObject>,
        object: &Held,
        known: &Known,
        losses: &Losses,
    ) -> Result<(), kube::Error> {
        let text = (!losses.is_empty()).then(|| text(object, losses));
        if known.told == text {
            return Ok(());
        }
        let status = match &text {
            Some(text) => json!({"conditions": [condition(text)]}),
            None => json!({}),
        };
        let patch = json!({
            "apiVersion": api_version(object), "kind": object.kind,
            // With the UID: a new object of that name is none of this business.
            "metadata": {"name": object.name, "namespace": object.namespace, "uid": known.uid},
            "status": status,
        });
        let params = PatchParams::apply(MANAGER).force();
        match api.patch_status(&object.name, &params, &Patch::Apply(&patch)).await {
            Ok(_) => {}
            // Not every kind has a status, or conditions in it; the Event tells then. 429 is none of
            // that: the API server has no time.
            Err(kube::Error::Api(status))
                if (400..500).contains(&status.code) && status.code != 429 =>
            {
                tracing::info!(kind = object.kind, why = status.message, "no condition is set");
            }
            Err(error) => return Err(error),
        }
        self.publish(object, known, text.as_deref()).await
    }

    async fn publish(
        &self,
        object: &Held,
        known: &Known,
        text: Option<&str>,
    ) -> Result<(), kube::Error> {
        let (type_, reason, note) = match text {
            Some(text) => (EventType::Warning, CONDITION, cut(text)),
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
        self.recorder.publish(&event, &reference).await
    }
}

/// What the condition of an object says that the API server has shown.
pub(super) fn told(object: &Value) -> Option<String> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let ours = conditions.iter().find(|condition| condition.get("type") == Some(&CONDITION.into()));
    Some(ours?.get("message")?.as_str()?.to_owned())
}

fn condition(text: &str) -> Value {
    json!({
        "type": CONDITION, "status": "True", "reason": "KeyTaken", "message": text,
        "lastTransitionTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    })
}

fn text(object: &Held, losses: &Losses) -> String {
    let lines = losses.values().map(|(claim, older)| {
        let place = describe(&Held { pointer: Some(claim.pointer.clone()), ..object.clone() });
        format!(
            "{} ({}) is claimed by {} and by {place}, which is younger",
            claim.key,
            claim.scope,
            describe(older)
        )
    });
    let text = lines.collect::<Vec<_>>().join("; ");
    format!("{text}. Change or delete one of them.")
}

fn api_version(object: &Held) -> String {
    let version = object.version.as_deref().unwrap_or_default();
    if object.group.is_empty() { version.to_owned() } else { format!("{}/{version}", object.group) }
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_NOTE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

impl Place {
    /// As the holder of a claim, made at that field.
    pub(super) fn held(&self, known: &Known, pointer: Option<&str>) -> Held {
        Held {
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
