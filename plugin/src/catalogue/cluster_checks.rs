//! What is behind each check of a cluster.

use super::{Finder, Meaning, Severity};
use crate::checks::catalogue::{self, CHECKS};

/// `(id, meaning)` of each check.
pub(super) fn meanings() -> impl Iterator<Item = (&'static str, Meaning)> {
    CHECKS.iter().map(|check| {
        let meaning = Meaning {
            found_by: Finder::Check,
            policy: None,
            // No request is refused by a check.
            severity: match check.severity {
                catalogue::Severity::Info => Severity::Info,
                catalogue::Severity::Fatal | catalogue::Severity::Warning => Severity::Warn,
            },
            title: check.title.to_owned(),
            why: check.why.to_owned(),
            remedy: check.fix.to_owned(),
            rules: Vec::new(),
            sources: Vec::new(),
        };
        (check.id, meaning)
    })
}

/// Whether it is written as the ids of checks are: a letter and three digits.
pub(super) fn is_id(text: &str) -> bool {
    catalogue::of_id(text).is_some()
}
