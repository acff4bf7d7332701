//! Everything that can be wrong with an AdmissionPolicy, found when it is applied and again when
//! it is loaded: one table for both, so that `kubectl apply` and the status say the same.
//!
//! | code | reason in the status | at `kubectl apply` | what is wrong |
//! |---|---|---|---|
//! | OSDN4001 | UnknownBuiltIn | refused | no built-in policy has that name |
//! | OSDN4002 | DigestInvalid | refused | the digest is missing or malformed |
//! | OSDN4003 | DigestMismatch | warning | the module has another digest than the pinned one |
//! | OSDN4004 | ModuleUnusable | refused | the module is no policy: it does not compile or fit the world |
//! | OSDN4005 | SettingsInvalid | refused | the settings do not fit the policy's own schema |
//! | OSDN4006 | KindNotCovered | refused | the policy is not about a kind or operation in `kinds` |
//! | OSDN4007 | LookupNotAllowed | refused | the policy looks up a kind that `allowedLookups` does not name |
//! | OSDN4008 | LimitOutOfRange | refused | a limit is too small or too large |
//! | OSDN4009 | SelectorInvalid | refused | a selector cannot be evaluated |
//! | OSDN4010 | SourceUnreachable | warning | the module cannot be read (yet) |
//! | OSDN4011 | KindAbsent | warning | the cluster does not serve the kind (yet) |
//! | OSDN4012 | SourceInvalid | refused | not exactly one source of the module, or a bad one |
//! | OSDN4013 | Unreadable | refused | the object is not an AdmissionPolicy |
//! | OSDN4014 | KindsRequired | refused | the policy is about any kind, and `kinds` names none |
//!
//! Warnings are about the state of the cluster, which may change in any order: a policy may be
//! applied before its ConfigMap or its kind.

use opensdn_policy_host::{Finding, Mode, Severity};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    UnknownBuiltIn,
    DigestInvalid,
    DigestMismatch,
    ModuleUnusable,
    SettingsInvalid,
    KindNotCovered,
    LookupNotAllowed,
    LimitOutOfRange,
    SelectorInvalid,
    SourceUnreachable,
    KindAbsent,
    SourceInvalid,
    Unreadable,
    KindsRequired,
}

impl Fault {
    /// The code, as the table has it.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::UnknownBuiltIn => "OSDN4001",
            Self::DigestInvalid => "OSDN4002",
            Self::DigestMismatch => "OSDN4003",
            Self::ModuleUnusable => "OSDN4004",
            Self::SettingsInvalid => "OSDN4005",
            Self::KindNotCovered => "OSDN4006",
            Self::LookupNotAllowed => "OSDN4007",
            Self::LimitOutOfRange => "OSDN4008",
            Self::SelectorInvalid => "OSDN4009",
            Self::SourceUnreachable => "OSDN4010",
            Self::KindAbsent => "OSDN4011",
            Self::SourceInvalid => "OSDN4012",
            Self::Unreadable => "OSDN4013",
            Self::KindsRequired => "OSDN4014",
        }
    }

    /// The reason in the status.
    pub(crate) fn reason(self) -> String {
        format!("{self:?}")
    }

    fn severity(self) -> Severity {
        match self {
            Self::DigestMismatch | Self::SourceUnreachable | Self::KindAbsent => Severity::Warn,
            _ => Severity::Deny,
        }
    }
}

/// One thing that is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) fault: Fault,
    /// JSON Pointer into the AdmissionPolicy.
    pub(crate) pointer: String,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Problem {
    pub(crate) fn new(
        fault: Fault,
        pointer: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (pointer, message, hint) = (pointer.into(), message.into(), hint.into());
        Self { fault, pointer, message, hint }
    }

    /// The same as a finding of admission.
    pub(crate) fn finding(self) -> Finding {
        Finding {
            policy: "admission-policy".to_owned(),
            mode: Mode::Enforce,
            code: self.fault.code().to_owned(),
            severity: self.fault.severity(),
            pointer: self.pointer,
            message: self.message,
            hint: self.hint,
        }
    }

    /// The same as text of a status.
    pub(crate) fn text(&self) -> String {
        let Self { fault, pointer, message, hint } = self;
        let place = if pointer.is_empty() { String::new() } else { format!(" {pointer}:") };
        format!("{}:{place} {message}; {hint}", fault.code())
    }
}
