//! What is wrong with a manifest of others, by its stable code.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It works, or may work, and has a price.
    Warning,
    /// It is refused, does not work, or must not be.
    Error,
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its code, which never changes its meaning.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Which of the documents, from 0.
    pub document: usize,
    /// JSON pointer to the field, or to where it is missing.
    pub pointer: String,
    /// What is wrong: one sentence without a full stop.
    pub message: String,
    /// What to do.
    pub hint: &'static str,
}
