//! How bad a finding must be for a command to end with 1.

use clap::ValueEnum;
use opensdn_validate::report::Severity;

use crate::checks::report::Outcome;

/// How bad a finding must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// What fails, or would be refused.
    #[default]
    Error,
    /// What warns too.
    Warning,
    /// Also what is uncertain, and all other findings.
    Info,
}

impl FailOn {
    /// Whether what a check says is bad enough.
    pub(crate) fn is_reached_by(self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Ok | Outcome::Skipped => false,
            Outcome::Fail => true,
            Outcome::Warn => self != Self::Error,
            Outcome::Uncertain => self == Self::Info,
        }
    }

    pub(crate) fn severity(self) -> Severity {
        match self {
            Self::Error => Severity::Error,
            Self::Warning => Severity::Warning,
            Self::Info => Severity::Info,
        }
    }
}
