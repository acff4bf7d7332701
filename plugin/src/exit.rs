//! How a command ends: the table of exit codes, and the error that people read. Codes never depend
//! on the output format.

use std::process::ExitCode;

use opensdn_error_chain::error_causes;
use opensdn_validate::Category;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::Answer;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[repr(u8)]
pub enum Exit {
    /// Done, or nothing found.
    Done = 0,
    /// It worked, and there are findings, a difference or a failed case.
    Findings = 1,
    /// The command line, an input file or the place of the answer cannot be dealt with.
    Usage = 2,
    /// Something could not be asked: no cluster, no rights.
    Unreachable = 3,
    /// Waiting took too long; the work may continue.
    TimedOut = 4,
    /// A safety rule, or the user, said no.
    Refused = 5,
    /// The user interrupted it.
    Interrupted = 130,
    /// It was asked to end, as by `kill` or a shutdown.
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not get as far as an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Failure {
    /// How the process ends.
    #[serde(skip)]
    #[schemars(skip)]
    pub exit: Exit,
    /// A stable word for scripts: `unreadable-file`.
    pub code: &'static str,
    /// What is wrong, and where.
    pub message: String,
    /// What led to it, outermost first.
    pub causes: Vec<String>,
    /// What to do.
    pub hint: String,
}

impl From<opensdn_validate::Error> for Failure {
    fn from(error: opensdn_validate::Error) -> Self {
        let opensdn_validate::Error { category, code, message, causes, hint } = error;
        let exit = match category {
            Category::Input => Exit::Usage,
            Category::Cluster => Exit::Unreachable,
        };
        Self { exit, code, message, causes, hint }
    }
}

/// The cluster's own refusal, on its way through a validation.
impl From<Failure> for opensdn_validate::Error {
    fn from(failure: Failure) -> Self {
        let Failure { exit: _, code, message, causes, hint } = failure;
        Self { category: Category::Cluster, code, message, causes, hint }
    }
}

impl Answer for Failure {
    const KIND: &'static str = "Error";
}

impl Failure {
    /// A failure with what is wrong and what to do about it.
    pub fn new(
        exit: Exit,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { exit, code, message: message.into(), causes: Vec::new(), hint: hint.into() }
    }

    /// A failure of the command line.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message, hint)
    }

    /// The same where some of the work is done: how it continues. Where calls were answered before it is the right cluster.
    #[must_use]
    pub(crate) fn half_way(self, next: &str) -> Self {
        if self.exit != Exit::Unreachable {
            return self;
        }
        let own = match self.code {
            "unreachable-cluster" => {
                "look after the API server: kubectl get --raw '/readyz?verbose'"
            }
            _ => &self.hint,
        };
        let hint = if own.is_empty() { next.to_owned() } else { format!("{own}; {next}") };
        Self { hint, ..self }
    }

    /// The same, with what led to it.
    #[must_use]
    pub fn because(mut self, error: &dyn std::error::Error) -> Self {
        self.causes.extend(error_causes(error));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_half_way_says_how_it_continues_and_not_that_the_cluster_may_be_another() {
        let of = |exit, code, hint| Failure::new(exit, code, "failed", hint).half_way("again").hint;
        let lost = of(Exit::Unreachable, "unreachable-cluster", "is this the right cluster?");
        assert_eq!(lost, "look after the API server: kubectl get --raw '/readyz?verbose'; again");
        assert_eq!(of(Exit::Unreachable, "forbidden", "ask for it"), "ask for it; again");
        assert_eq!(of(Exit::Unreachable, "refused-by-server", ""), "again");
        assert_eq!(of(Exit::TimedOut, "timed-out", "longer"), "longer");
    }
}
