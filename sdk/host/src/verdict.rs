//! What evaluations come to: findings, claims, failures, patches.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{contract::Severity, text::shown};

/// What a policy's findings do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A denial refuses the request.
    #[default]
    Enforce,
    /// A denial becomes a warning; nothing is patched or claimed.
    Warn,
    /// The user sees nothing; findings are counted and reported.
    Audit,
}

impl Mode {
    /// The name in metrics and logs.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
            Self::Audit => "audit",
        }
    }
}

/// What becomes of a request that a policy could not judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureMode {
    /// It is refused.
    Fail,
    /// It passes with a warning.
    Ignore,
}

/// One thing that a policy found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Name of the binding (the AdmissionPolicy) that says so.
    pub policy: String,
    /// What its word is worth.
    pub mode: Mode,
    /// Stable code.
    pub code: String,
    /// Deny or warn, as the policy said it.
    pub severity: Severity,
    /// JSON Pointer of the field.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl Finding {
    /// Whether this finding refuses the request.
    #[must_use]
    pub fn denies(&self) -> bool {
        self.mode == Mode::Enforce && self.severity == Severity::Deny
    }
}

/// Something that must be unique in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// What kind of thing.
    pub scope: String,
    /// The value.
    pub key: String,
    /// What objects that share the key agree on; `None`: it is not shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// JSON Pointer of the field that claims it.
    pub pointer: String,
    /// Name of the binding that says so.
    pub policy: String,
    /// Code of the message to give where something else holds it.
    pub code: String,
}

impl Claim {
    /// Whether two objects that make these claims share the key.
    #[must_use]
    pub fn shares_with(&self, value: Option<&str>) -> bool {
        value.is_some() && self.value.as_deref() == value
    }
}

/// An evaluation that came to no answer. Never a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvalFailure {
    /// Name of the binding whose policy failed.
    pub policy: String,
    /// What its word is worth.
    pub mode: Mode,
    /// What becomes of the request.
    pub failure_mode: FailureMode,
    /// Why.
    pub reason: FailureReason,
}

impl EvalFailure {
    /// Whether this failure refuses the request.
    #[must_use]
    pub fn denies(&self) -> bool {
        self.mode == Mode::Enforce && self.failure_mode == FailureMode::Fail
    }
}

/// Why an evaluation came to no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "camelCase", tag = "category", content = "detail")]
pub enum FailureReason {
    /// The policy's code hit an instruction that ends it: a panic, mostly.
    #[error("the policy crashed: {0}")]
    Trap(String),
    /// Out of time.
    #[error("the policy was stopped after {0:?}: its time limit")]
    Deadline(Duration),
    /// Out of memory.
    #[error("the policy was stopped: it wanted more than {} MiB of memory", .0 >> 20)]
    Memory(usize),
    /// Recursion too deep.
    #[error("the policy was stopped: its recursion is too deep")]
    Stack,
    /// The answer is too large.
    #[error("the answer of the policy is larger than {} KiB", .0 >> 10)]
    ReplyTooLarge(usize),
    /// What it looked up is too large.
    #[error("the lookups of the policy found more than {} MiB", .0 >> 20)]
    LookupTooLarge(usize),
    /// It looked up what it had not declared, or what the administrator has not allowed.
    #[error("the policy looked up {0:?}, which it has not declared")]
    UndeclaredLookup(String),
    /// It says itself that it came to no answer, mostly because a lookup failed.
    #[error("the policy is inconclusive: {0}")]
    Inconclusive(String),
    /// The answer breaks the contract.
    #[error("the answer of the policy breaks the contract: {0}")]
    BadReply(String),
    /// Two policies patch the same place, or a patch does not fit the object.
    #[error("the patch of the policy cannot be used: {0}")]
    BadPatch(String),
    /// It should judge, and its module could not be loaded.
    #[error("the policy is not active: {0}")]
    Inactive(String),
    /// No evaluation slot became free in time.
    #[error("too many evaluations at once; none became free in time")]
    Overloaded,
}

impl FailureReason {
    /// The same with no more of the policy's own text than a log line can take.
    #[must_use]
    pub fn shortened(self) -> Self {
        match self {
            Self::Trap(text) => Self::Trap(shown(text)),
            Self::UndeclaredLookup(name) => Self::UndeclaredLookup(shown(name)),
            Self::Inconclusive(text) => Self::Inconclusive(shown(text)),
            Self::BadReply(text) => Self::BadReply(shown(text)),
            Self::BadPatch(text) => Self::BadPatch(shown(text)),
            Self::Inactive(text) => Self::Inactive(shown(text)),
            Self::Deadline(_)
            | Self::Memory(_)
            | Self::Stack
            | Self::ReplyTooLarge(_)
            | Self::LookupTooLarge(_)
            | Self::Overloaded => self,
        }
    }

    /// A short static name, for metrics.
    #[must_use]
    pub fn category(&self) -> &'static str {
        match self {
            Self::Trap(_) => "trap",
            Self::Deadline(_) => "deadline",
            Self::Memory(_) => "memory",
            Self::Stack => "stack",
            Self::ReplyTooLarge(_) => "reply_too_large",
            Self::LookupTooLarge(_) => "lookup_too_large",
            Self::UndeclaredLookup(_) => "undeclared_lookup",
            Self::Inconclusive(_) => "inconclusive",
            Self::BadReply(_) => "bad_reply",
            Self::BadPatch(_) => "bad_patch",
            Self::Inactive(_) => "inactive",
            Self::Overloaded => "overloaded",
        }
    }
}

/// That a policy was run, for metrics and traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// Number of the binding in its set.
    pub binding: usize,
    /// How long it took.
    pub duration: Duration,
    /// How it ended.
    pub outcome: Outcome,
}

/// How one evaluation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing was wrong.
    Passed,
    /// There were findings or patches.
    Reported,
    /// No answer.
    Failed,
}

/// What all matching policies say of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Everything that was found, in the order of the bindings.
    pub findings: Vec<Finding>,
    /// What must be unique, sorted; only of enforcing policies.
    pub claims: Vec<Claim>,
    /// Evaluations without an answer.
    pub failures: Vec<EvalFailure>,
    /// What was run.
    pub evaluations: Vec<Evaluation>,
}

impl Verdict {
    /// Whether the request is refused.
    #[must_use]
    pub fn denies(&self) -> bool {
        self.findings.iter().any(Finding::denies) || self.failures.iter().any(EvalFailure::denies)
    }
}

/// What all matching policies want changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mutation {
    /// The patches of all policies, to be applied in this order.
    pub patch: json_patch::Patch,
    /// What policies in another mode than enforce would have patched.
    pub unapplied: Vec<UnappliedPatch>,
    /// Evaluations without an answer.
    pub failures: Vec<EvalFailure>,
    /// What was run.
    pub evaluations: Vec<Evaluation>,
}

/// A patch that is not applied, because its policy does not enforce.
#[derive(Clone, Debug, PartialEq)]
pub struct UnappliedPatch {
    /// Name of the AdmissionPolicy.
    pub policy: String,
    /// Its mode: warn or audit.
    pub mode: Mode,
    /// What it would have changed.
    pub patch: json_patch::Patch,
}

impl Mutation {
    /// Whether the request is refused.
    #[must_use]
    pub fn denies(&self) -> bool {
        self.failures.iter().any(EvalFailure::denies)
    }
}
