//! What a policy returns: messages, findings, claims, and why it was inconclusive.

use std::fmt;

use crate::{Pointer, bindings::opensdn::policy::types as wire};

/// What a finding does to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The request is refused.
    Deny,
    /// The request passes; the user sees a warning.
    Warn,
}

/// A message that a policy can give: a constant, listed in `policy!`.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Stable code, never used for another meaning.
    pub code: &'static str,
    /// Severity unless a finding says otherwise.
    pub severity: Severity,
    /// One line: what is wrong.
    pub title: &'static str,
    /// Why it is wrong and what happens without the rule.
    pub explanation: &'static str,
    /// What to do: a value, a field or a command.
    pub hint: &'static str,
}

impl Message {
    /// A finding of this message about the field at `pointer`.
    #[must_use]
    pub fn at(&self, pointer: impl Into<Pointer>) -> Finding {
        Finding {
            code: self.code,
            severity: self.severity,
            pointer: pointer.into(),
            text: self.title.to_owned(),
            hint: self.hint.to_owned(),
        }
    }
}

/// One thing that is wrong with the object.
#[derive(Clone, Debug)]
pub struct Finding {
    code: &'static str,
    severity: Severity,
    pointer: Pointer,
    text: String,
    hint: String,
}

impl Finding {
    /// What is wrong with this very object, with the value found. Never a secret's value.
    #[must_use]
    pub fn says(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// What to do about it, where the message's own hint is too general.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Another severity than the message's.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }
}

/// Something that must be unique in the cluster.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What kind of thing: `link-local-address`.
    pub scope: &'static str,
    /// The value that must be unique within the scope.
    pub key: String,
    /// What objects that share the key must agree on; `None`: they may not share it.
    pub shared: Option<String>,
    /// Code of the message to give where something else holds the key.
    pub code: &'static str,
    /// The field that claims it.
    pub pointer: Pointer,
}

/// What a policy found: everything, never only the first.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    findings: Vec<Finding>,
    claims: Vec<Claim>,
}

impl Verdict {
    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Whether a finding refuses the request.
    #[must_use]
    pub fn refuses(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Deny)
    }

    /// Makes warnings of all findings so far that refuse the request, of an object that is what another one says:
    /// `owner` is where it is put right, for the hints.
    pub fn leave_to(&mut self, owner: &str) {
        let refusals = self.findings.iter_mut();
        for finding in refusals.filter(|finding| finding.severity == Severity::Deny) {
            finding.severity = Severity::Warn;
            finding.hint = format!("in {owner}: {}", finding.hint);
        }
    }

    /// Claims that `key` is unique within `scope`; `pointer` is the field that says so. Where
    /// something else holds it, the request is refused with `message`. The policy must be declared
    /// with `claims: true`.
    pub fn claim(
        &mut self,
        message: &Message,
        scope: &'static str,
        key: impl Into<String>,
        pointer: impl Into<Pointer>,
    ) {
        let (key, pointer) = (key.into(), pointer.into());
        self.claims.push(Claim { scope, key, shared: None, code: message.code, pointer });
    }

    /// Claims `key` as [`Verdict::claim`] does, but objects that claim it with the same `value` share it: which
    /// of two that say the same was there first makes no difference.
    pub fn claim_shared(
        &mut self,
        message: &Message,
        scope: &'static str,
        (key, value): (impl Into<String>, impl Into<String>),
        pointer: impl Into<Pointer>,
    ) {
        let (key, pointer, shared) = (key.into(), pointer.into(), Some(value.into()));
        self.claims.push(Claim { scope, key, shared, code: message.code, pointer });
    }

    pub(crate) fn into_wire(self) -> wire::Verdict {
        wire::Verdict {
            findings: self.findings.into_iter().map(finding_into_wire).collect(),
            claims: self.claims.into_iter().map(claim_into_wire).collect(),
        }
    }
}

/// The policy was inconclusive. The host never takes that for a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// What a policy's function returns: `Ok(())` when it reached a verdict.
pub type Outcome = Result<(), Failure>;

pub(crate) fn severity_into_wire(severity: Severity) -> wire::Severity {
    match severity {
        Severity::Deny => wire::Severity::Deny,
        Severity::Warn => wire::Severity::Warn,
    }
}

pub(crate) fn message_into_wire(message: &Message) -> wire::Message {
    wire::Message {
        code: message.code.to_owned(),
        severity: severity_into_wire(message.severity),
        title: message.title.to_owned(),
        explanation: message.explanation.to_owned(),
        hint: message.hint.to_owned(),
    }
}

fn finding_into_wire(finding: Finding) -> wire::Finding {
    wire::Finding {
        code: finding.code.to_owned(),
        severity: severity_into_wire(finding.severity),
        pointer: finding.pointer.to_string(),
        message: finding.text,
        hint: finding.hint,
    }
}

fn claim_into_wire(claim: Claim) -> wire::Claim {
    // A record of the contract cannot grow: see sdk/wit/policy.wit.
    let (scope, key) = match claim.shared {
        Some(value) => (format!("{};shared", claim.scope), format!("{}\u{1f}{value}", claim.key)),
        None => (claim.scope.to_owned(), claim.key),
    };
    wire::Claim { scope, key, code: claim.code.to_owned(), pointer: claim.pointer.to_string() }
}
