//! The Event about what the leader writes into a status, where that is news: a policy that does not run any more, or
//! does.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType};
use kube::{Resource as _, ResourceExt as _};
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_crds::status::{Condition, READY};
use serde_json::Value;

use super::super::status::is_progress;

/// The Event about the change from what the object says to this status; none while waiting alone may help.
pub(super) fn event(object: &AdmissionPolicy, status: &Value) -> Option<Event> {
    let before = object.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let before = before.map(|one| (&*one.type_, said(one)));
    let before = before.filter(|(of_type, _)| *of_type == READY).map(|(_, said)| said).next();
    let after: Vec<Condition> = serde_json::from_value(status.get("conditions")?.clone()).ok()?;
    let after = after.iter().find(|one| one.type_ == READY)?;
    let type_ = match said(after) {
        told if before == Some(told) => return None,
        ("True", _) => EventType::Normal,
        ("False", reason) if !is_progress(reason) => EventType::Warning,
        _ => return None,
    };
    Some(Event {
        type_,
        reason: after.reason.clone()?,
        note: after.message.clone(),
        action: "Load".to_owned(),
        secondary: None,
    })
}

fn said(condition: &Condition) -> (&str, &str) {
    (&condition.status, condition.reason.as_deref().unwrap_or_default())
}

pub(super) fn about(object: &AdmissionPolicy) -> ObjectReference {
    ObjectReference { name: Some(object.name_any()), ..object.object_ref(&()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn condition(status: &str, reason: &str) -> Value {
        json!({"type": READY, "status": status, "reason": reason, "message": format!("about {reason}"),
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    fn between(before: Option<(&str, &str)>, after: (&str, &str)) -> Option<(bool, String)> {
        let conditions: Vec<Value> =
            before.into_iter().map(|(status, reason)| condition(status, reason)).collect();
        let object = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy", "metadata": {"name": "p"},
            "spec": {"module": {"builtIn": "x"}}, "status": {"conditions": conditions}});
        let object: AdmissionPolicy = serde_json::from_value(object).unwrap();
        let event = event(&object, &json!({"conditions": [condition(after.0, after.1)]}))?;
        assert_eq!(event.note, Some(format!("about {}", event.reason)));
        assert_eq!(about(&object).name.as_deref(), Some("p"));
        Some((event.type_ == EventType::Warning, event.reason))
    }

    #[test]
    fn that_a_policy_is_lost_and_that_it_runs_is_told_once() {
        let told = |is_warning: bool, reason: &str| Some((is_warning, reason.to_owned()));
        let (runs, full, gone) =
            (("True", "Serving"), ("False", "CacheFull"), ("False", "SourceUnreachable"));
        assert_eq!(between(Some(runs), full), told(true, "CacheFull"));
        assert_eq!(between(None, full), told(true, "CacheFull"), "it was never there");
        assert_eq!(between(Some(full), full), None);
        assert_eq!(between(Some(full), gone), told(true, "SourceUnreachable"));
        assert_eq!(between(Some(gone), runs), told(false, "Serving"));
        assert_eq!(between(Some(runs), runs), None);
        assert_eq!(between(Some(runs), ("False", "Loading")), None);
        assert_eq!(between(Some(full), ("False", "WaitingForReplicas")), None);
        assert_eq!(between(Some(runs), ("Unknown", "Outdated")), None);
    }
}
