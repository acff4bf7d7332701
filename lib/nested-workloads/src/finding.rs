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

/// What is looked for: its code, how bad it is, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its code, which never changes its meaning.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong in general.
    pub title: &'static str,
    /// What to do.
    pub hint: &'static str,
}

/// A document among those that were offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentId {
    /// Number of the text that it is in. What a workload refers to is looked for there first.
    pub text: usize,
    /// Its number in the text.
    pub document: usize,
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked for.
    pub rule: &'static Rule,
    /// Which of the documents.
    pub document: DocumentId,
    /// JSON pointer to the field, or to where it is missing.
    pub pointer: String,
    /// What is wrong: one sentence without a full stop.
    pub message: String,
}
