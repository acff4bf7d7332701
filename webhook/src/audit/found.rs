//! What the policies say of one stored object, each thing once. Pure.

use std::collections::BTreeSet;

use opensdn_policy_host::{EvalFailure, Finding, Mode, Severity, Verdict, beginning};

/// Longest message, in bytes.
const MESSAGE: usize = 500;

/// A finding, or an evaluation without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Name of the AdmissionPolicy.
    pub(super) policy: String,
    pub(super) mode: Mode,
    /// Empty for a failure.
    pub(super) code: String,
    pub(super) weight: Weight,
    pub(super) pointer: String,
    pub(super) message: String,
    pub(super) hint: String,
}

/// What it would do at admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// Refuse, where the policy enforces.
    Denial,
    /// Be said.
    Warning,
    /// There is no answer.
    Failure,
}

impl Weight {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Denial => "deny",
            Self::Warning => "warn",
            Self::Failure => "failure",
        }
    }
}

/// What an object was found to be as created and as updated: what both say is there once.
pub(super) fn distinct(verdicts: Vec<Verdict>) -> Vec<Found> {
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
