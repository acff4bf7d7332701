//! What policies see of a request, for policy authors and reviewers. Deliberately not here: how
//! it is handed to them (`set.rs`), which copies nothing.

use serde::Serialize;

use super::PolicySet;
use crate::{contract::Step, request::Request, scan::Document};

/// What one policy sees of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// Name of the binding.
    pub policy: String,
    /// Which function is called.
    pub step: Step,
    /// Number of the interest that the request matched.
    pub interest: usize,
    /// The declared parts of the object; absent on delete.
    pub object: Option<Vec<Part>>,
    /// The declared parts of the old object; absent on create.
    pub old_object: Option<Vec<Part>>,
}

/// A part of an object that a policy declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// JSON Pointer; `""` is the whole object.
    pub pointer: String,
    /// Its JSON text; absent where the object has no such part.
    pub text: Option<String>,
}

impl PolicySet {
    /// What each policy that the request concerns sees of it.
    #[must_use]
    pub fn seen(&self, step: Step, request: &Request<'_>) -> Vec<Seen> {
        let see = |matched: super::Match<'_>| {
            let interests = &matched.entry.binding.policy.metadata().interests;
            let reads = interests.get(matched.interest).map(|interest| interest.reads.as_slice());
            let slots = matched.entry.slots.get(matched.interest).map(Vec::as_slice);
            let pairs: Vec<_> =
                reads.unwrap_or_default().iter().zip(slots.unwrap_or_default()).collect();
            let parts = |document: &Document<'_>| {
                let part = |(pointer, slot): &(&String, &crate::scan::Slot)| Part {
                    pointer: (*pointer).clone(),
                    text: document.part(**slot).map(str::to_owned),
                };
                pairs.iter().map(part).collect()
            };
            Seen {
                policy: matched.entry.binding.name.clone(),
                step,
                interest: matched.interest,
                object: request.object.as_ref().map(parts),
                old_object: request.old_object.as_ref().map(parts),
            }
        };
        self.matches(step, request).map(see).collect()
    }
}
