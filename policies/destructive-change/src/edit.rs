//! Changes of what a Manager owns, which last until its operator looks.

use opensdn_policy_components::find_service;
use opensdn_policy_sdk::{Message, Severity, Verdict};

pub(crate) const UNDONE: Message = Message {
    code: "OSDN1110",
    severity: Severity::Warn,
    title: "the operator will undo the change",
    explanation: "The spec of what a Manager owns is written from the Manager again and again. What \
        is changed here is in force for a moment, or until the operator is started anew.",
    hint: "change it in the Manager, under spec.services",
};

pub(crate) fn judge(kind: &str, name: &str, manager: &str, verdict: &mut Verdict) {
    let text = format!("{kind} {name} belongs to Manager {manager}, whose operator undoes this");
    let hint = match find_service(kind) {
        Some(service) => {
            format!("change spec.services.{} of Manager {manager} instead", service.key)
        }
        None => format!("change Manager {manager} instead"),
    };
    verdict.add(UNDONE.at("/spec").says(text).hint(hint));
}
