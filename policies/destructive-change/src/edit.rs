//! Changes of what a Manager owns, which last until its operator looks.

use opensdn_policy_components::component::Component;
use opensdn_policy_sdk::{Message, Severity, Verdict};
use serde_json::Value;

pub(crate) const UNDONE: Message = Message {
    code: "OSDN1110",
    severity: Severity::Warn,
    title: "the operator will undo the change",
    explanation: "The spec of what a Manager owns is written from the Manager again and again. What \
        is changed here holds for a moment, or until the operator restarts.",
    hint: "change it in the Manager, under spec.services",
};

/// Whether something that was there has changed or gone. What only came may be a default that was
/// filled in on the way.
pub(crate) fn takes(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            old.iter().any(|(key, old)| new.get(key).is_none_or(|new| takes(old, new)))
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            old.iter().zip(new).any(|(old, new)| takes(old, new))
        }
        (Value::Null, _) => false,
        _ => old != new,
    }
}

pub(crate) fn judge(kind: &str, name: &str, manager: &str, verdict: &mut Verdict) {
    let text = format!("{kind} {name} belongs to Manager {manager}, whose operator undoes this");
    let hint = match Component::of_kind(kind) {
        Some(service) => {
            format!("change spec.services.{} of Manager {manager} instead", service.key)
        }
        None => format!("change Manager {manager} instead"),
    };
    verdict.add(UNDONE.at("/spec").says(text).hint(hint));
}
