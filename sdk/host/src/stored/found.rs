//! What the policies say of one stored object, each thing once. Pure.

use std::collections::BTreeSet;

use crate::contract::Severity;
use crate::text::beginning;
use crate::verdict::{EvalFailure, Finding, Mode, Verdict};

/// Longest message, in bytes.
const MESSAGE: usize = 500;

/// A finding, or an evaluation without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Name of the AdmissionPolicy.
    pub policy: String,
    /// What its word is worth.
    pub mode: Mode,
    /// Stable code; empty for a failure.
    pub code: String,
    /// What it would do at admission.
    pub weight: Weight,
    /// JSON Pointer of the field.
    pub pointer: String,
    /// What is wrong; of bounded length.
    pub message: String,
    /// What to do; of bounded length.
    pub hint: String,
}

/// What it would do at admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Refuse, where the policy enforces.
    Denial,
    /// Be said.
    Warning,
    /// There is no answer.
    Failure,
}

impl Weight {
    /// The word in reports and metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Denial => "deny",
            Self::Warning => "warn",
            Self::Failure => "failure",
        }
    }
}

/// What an object was found to be as created and as updated: what both say is there once.
#[must_use]
pub fn distinct(verdicts: Vec<Verdict>) -> Vec<Found> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut add = |one: Found| {
        let Found { policy, code, pointer, message, .. } = &one;
        if seen.insert((policy.clone(), code.clone(), pointer.clone(), message.clone())) {
            found.push(one);
        }
    };
    for Verdict { findings, failures, .. } in verdicts {
        findings.into_iter().map(of_finding).for_each(&mut add);
        failures.into_iter().map(of_failure).for_each(&mut add);
    }
    found
}

fn of_finding(finding: Finding) -> Found {
    let Finding { policy, mode, code, severity, pointer, message, hint } = finding;
    Found {
        policy,
        mode,
        code,
        weight: if severity == Severity::Deny { Weight::Denial } else { Weight::Warning },
        pointer,
        message: beginning(&message, MESSAGE).to_owned(),
        hint: beginning(&hint, MESSAGE).to_owned(),
    }
}

fn of_failure(failure: EvalFailure) -> Found {
    let reason = failure.reason.to_string();
    Found {
        policy: failure.policy,
        mode: failure.mode,
        code: String::new(),
        weight: Weight::Failure,
        pointer: String::new(),
        message: format!("could not be evaluated: {}", beginning(&reason, MESSAGE)),
        hint: String::new(),
    }
}
