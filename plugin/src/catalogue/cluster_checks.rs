//! What is behind each check of a cluster.

use super::{Finder, Meaning, Severity, nested_verify};
use crate::checks::catalogue::{self, CHECKS, Category, Check};

/// `(id, meaning)` of each check.
pub(super) fn meanings() -> impl Iterator<Item = (&'static str, Meaning)> {
    CHECKS.iter().map(|check| (check.id, meaning(check, check.title)))
}

/// The same by the codes of nested mode that some have. What another part of the product explains is explained there.
pub(super) fn codes() -> impl Iterator<Item = (&'static str, Meaning)> {
    let of_nested = CHECKS.iter().filter(|check| check.category == Category::Nested);
    let with_code = of_nested.filter_map(|check| {
        let (title, code) = check.title.strip_suffix(']')?.rsplit_once(" [")?;
        Some((code, meaning(check, title)))
    });
    with_code.filter(|(code, _)| nested_verify::meanings().all(|known| known.0 != *code))
}

fn meaning(check: &Check, title: &str) -> Meaning {
    Meaning {
        found_by: Finder::Check,
        policy: None,
        severity: severity(check),
        title: title.to_owned(),
        why: check.why.to_owned(),
        remedy: check.fix.to_owned(),
        rules: Vec::new(),
        sources: Vec::new(),
    }
}

fn severity(check: &Check) -> Severity {
    match check.severity {
        catalogue::Severity::Fatal => Severity::Fatal,
        catalogue::Severity::Warning => Severity::Warn,
        catalogue::Severity::Info => Severity::Info,
    }
}

/// Whether it is written as the ids of checks are: a letter and three digits.
pub(super) fn is_id(text: &str) -> bool {
    catalogue::of_id(text).is_some()
}
