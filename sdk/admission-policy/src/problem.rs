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
//! | OSDN4015 | OperationNotJudged | refused | no policy is asked about the operation |
//! | OSDN4016 | SecretNotAllowed | refused | the policy looks up more of Secrets than may ever be known |
//! | OSDN4017 | NotCompiled | warning | the module could not be compiled here (yet) |
//! | OSDN4018 | CacheFull | warning | there is no room for the compiled module |
//! | OSDN4019 | Starting | warning | the webhook has just started and loads the module |
//!
//! Warnings are about the state of the cluster, which may change in any order: a policy may be
//! applied before its ConfigMap or its kind.

use opensdn_error_chain::error_chain;
use opensdn_policy_host::{Finding, LoadError, Mode, Severity};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No built-in policy has that name.
    UnknownBuiltIn,
    /// The digest is missing or malformed.
    DigestInvalid,
    /// The module has another digest than the pinned one.
    DigestMismatch,
    /// The module is no policy: it does not compile or fit the world.
    ModuleUnusable,
    /// The settings do not fit the policy's own schema.
    SettingsInvalid,
    /// The policy is not about a kind or operation in `kinds`.
    KindNotCovered,
    /// The policy looks up a kind that `allowedLookups` does not name.
    LookupNotAllowed,
    /// A limit is too small or too large.
    LimitOutOfRange,
    /// A selector cannot be evaluated.
    SelectorInvalid,
    /// The module cannot be read (yet).
    SourceUnreachable,
    /// The cluster does not serve the kind (yet).
    KindAbsent,
    /// Not exactly one source of the module, or a bad one.
    SourceInvalid,
    /// The object is not an AdmissionPolicy.
    Unreadable,
    /// The policy is about any kind, and `kinds` names none.
    KindsRequired,
    /// No policy is asked about the operation.
    OperationNotJudged,
    /// The policy looks up more of Secrets than may ever be known.
    SecretNotAllowed,
    /// The module could not be compiled here (yet).
    NotCompiled,
    /// There is no room for the compiled module.
    CacheFull,
    /// The webhook has just started and loads the module.
    Starting,
}

impl Fault {
    /// The code, as the table has it.
    #[must_use]
    pub fn code(self) -> &'static str {
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
            Self::OperationNotJudged => "OSDN4015",
            Self::SecretNotAllowed => "OSDN4016",
            Self::NotCompiled => "OSDN4017",
            Self::CacheFull => "OSDN4018",
            Self::Starting => "OSDN4019",
        }
    }

    /// The reason in the status.
    #[must_use]
    pub fn reason(self) -> String {
        format!("{self:?}")
    }

    /// Whether it says nothing of the module, which may be as it should be: where it is read or compiled something is
    /// missing.
    #[must_use]
    pub fn is_of_place(self) -> bool {
        matches!(
            self,
            Self::SourceUnreachable | Self::NotCompiled | Self::CacheFull | Self::Starting
        )
    }

    fn severity(self) -> Severity {
        match self {
            Self::DigestMismatch | Self::KindAbsent => Severity::Warn,
            fault if fault.is_of_place() => Severity::Warn,
            _ => Severity::Deny,
        }
    }
}

/// One thing that is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, by the table.
    pub fault: Fault,
    /// JSON Pointer into the AdmissionPolicy.
    pub pointer: String,
    /// What is wrong, in words.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl Problem {
    /// A problem at that place.
    pub fn new(
        fault: Fault,
        pointer: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (pointer, message, hint) = (pointer.into(), message.into(), hint.into());
        Self { fault, pointer, message, hint }
    }

    /// The module is no policy that can be used.
    #[must_use]
    pub fn unusable(why: String) -> Self {
        let hint = "rebuild it with the SDK of this version and try it with `kubectl opensdn \
                    policy test`";
        Self::new(Fault::ModuleUnusable, "/spec/module", why, hint)
    }

    /// The same as a finding of admission.
    #[must_use]
    pub fn finding(self) -> Finding {
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
    #[must_use]
    pub fn text(&self) -> String {
        let Self { fault, pointer, message, hint } = self;
        let place = if pointer.is_empty() { String::new() } else { format!(" {pointer}:") };
        format!("{}:{place} {message}; {hint}", fault.code())
    }
}

impl From<&LoadError> for Problem {
    fn from(error: &LoadError) -> Self {
        match error {
            LoadError::Digest { .. } => Self::new(
                Fault::DigestMismatch,
                "/spec/module/digest",
                error.to_string(),
                "pin the digest of the module that you mean, or put that module in place",
            ),
            other => Self::unusable(error_chain(other)),
        }
    }
}
