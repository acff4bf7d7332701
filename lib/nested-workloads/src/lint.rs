//! What is wrong with a manifest of nested mode that was not made here: the defects of upstream's own, and of
//! what was derived of it. Ours has none of them.
//!
//! A set-up that works in some clusters is a warning: only a look at the nodes would show. Deliberately not
//! here: schemas, and anything about a live cluster.

mod access;
mod documents;
mod pods;
mod settings;

use serde_json::Value;

use self::documents::Documents;
use crate::finding::{Finding, Severity};

/// A key that is in one mapping twice. A value of JSON cannot show it, so the reader of the text has to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey {
    /// Which of the documents, from 0.
    pub document: usize,
    /// JSON pointer to the key, as `/spec`.
    pub pointer: String,
}

/// All that is wrong, in the order of the documents and then of the codes.
#[must_use]
pub fn lint(documents: &[Value], duplicates: &[DuplicateKey]) -> Vec<Finding> {
    let documents = Documents::of(documents);
    let mut found = Vec::new();
    for workload in documents.workloads() {
        pods::lint(workload, duplicates, &mut found);
        settings::of_workload(&documents, workload, &mut found);
    }
    settings::of_config_maps(&documents, &mut found);
    access::lint(&documents, &mut found);
    found.sort_by_key(|one| (one.document, one.code));
    found
}

/// A rule: what it is called, how bad it is, and what to do.
struct Rule {
    code: &'static str,
    severity: Severity,
    hint: &'static str,
}

impl Rule {
    fn at(&self, document: usize, pointer: &str, message: String) -> Finding {
        let Self { code, severity, hint } = *self;
        Finding { code, severity, document, pointer: pointer.to_owned(), message, hint }
    }
}

const fn error(code: &'static str, hint: &'static str) -> Rule {
    Rule { code, severity: Severity::Error, hint }
}

const fn warning(code: &'static str, hint: &'static str) -> Rule {
    Rule { code, severity: Severity::Warning, hint }
}

#[cfg(test)]
mod tests;
