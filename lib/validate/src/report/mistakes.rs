//! Findings as a person reads them: one mistake at many places of an object is one thing to fix.
//! Machines get every finding. Only text for people asks for this.

use std::collections::HashMap;

use super::{Finding, ObjectId, PolicyId, Severity};
use opensdn_policy_host::gist;

/// Findings of one object that differ only in where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake<'f> {
    /// The first of them.
    pub(super) first: &'f Finding,
    /// The others, in their order.
    pub(super) others: Vec<&'f Finding>,
    /// What is wrong; without the name of the component where there are several.
    pub(super) message: &'f str,
}

/// What findings of one mistake have in common.
type Key<'f> = (Severity, &'f str, &'f str, &'f str, &'f str, &'f ObjectId, Option<&'f PolicyId>);

/// The findings as mistakes, in the order of the first of each. Findings that point to another
/// object, such as the holder of a claim, stay alone.
pub(super) fn mistakes(findings: &[Finding]) -> Vec<Mistake<'_>> {
    let mut mistakes: Vec<Mistake<'_>> = Vec::new();
    let mut known: HashMap<Key<'_>, usize> = HashMap::new();
    for finding in findings {
        let Finding { code, severity, title, message, hint, object, policy, related, .. } = finding;
        let gist = gist(message);
        let object = object.as_ref().filter(|_| related.is_empty());
        let key = |object| {
            (*severity, code.as_str(), title.as_str(), gist, hint.as_str(), object, policy.as_ref())
        };
        let next = mistakes.len();
        let number = object.map_or(next, |object| *known.entry(key(object)).or_insert(next));
        match mistakes.get_mut(number) {
            None => mistakes.push(Mistake { first: finding, others: Vec::new(), message }),
            Some(mistake) => {
                if mistake.message != message {
                    mistake.message = gist;
                }
                mistake.others.push(finding);
            }
        }
    }
    mistakes
}
