//! How a command ends: the table of exit codes, and the error that people read. Codes never depend
//! on the output format.

use std::process::ExitCode;

use serde::Serialize;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[repr(u8)]
pub enum Exit {
    /// Done, or nothing found.
    Done = 0,
    /// It worked, and the answer is negative: findings, a difference, a failed case.
    Negative = 1,
    /// The command line or an input file cannot be understood.
    Usage = 2,
    /// Somebody could not be asked: no cluster, no rights.
    Unreachable = 3,
    /// Waiting took too long; the work may go on.
    TimedOut = 4,
    /// A safety rule, or the user, said no.
    Refused = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not get as far as an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// How the process ends.
    #[serde(skip)]
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

    /// The same, with what led to it.
    #[must_use]
    pub fn because(mut self, error: &dyn std::error::Error) -> Self {
        let mut cause = Some(error);
        while let Some(one) = cause {
            self.causes.push(one.to_string());
            cause = one.source();
        }
        self
    }
}
