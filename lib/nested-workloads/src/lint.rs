//! What is wrong with a manifest of nested mode that was not made here: the defects of upstream's own, and of
//! what was derived of it. Ours has none of them.
//!
//! Documents are offered one by one, as a reader of many files has them; kept are those that may be of nested
//! mode, and of these what is looked at. Objects of anything else are of no concern: a ConfigMap with a
//! password is one only where a workload of nested mode reads it. A set-up that works in some clusters is a
//! warning, for only a look at the nodes would show. Deliberately not here: schemas, and anything about a live
//! cluster.

mod access;
mod documents;
mod pods;
mod reduced;
mod settings;

use std::collections::BTreeSet;

use serde_json::Value;

use self::documents::Documents;
use crate::finding::{DocumentId, Finding, Rule, Severity};

pub use self::documents::is_workload;

/// All rules, in the order of their codes.
pub static RULES: [&Rule; 15] = [
    &settings::MODE,
    &settings::NAMES,
    &pods::TWO_SPECS,
    &pods::SELECTOR,
    &pods::LABELLED_NODE,
    &pods::CONTROL_PLANE_TAINT,
    &pods::NODES_LEFT_OUT,
    &settings::PASSWORD,
    &access::EVERYTHING,
    &pods::NAMELESS_SECRET,
    &access::TOKEN,
    &pods::SEVERAL,
    &pods::NO_READINESS,
    &settings::TRACE,
    &settings::LIST,
];

/// A document that may be of nested mode.
struct Kept {
    id: DocumentId,
    value: Value,
    /// Pointers to keys that are in one mapping twice.
    duplicates: Vec<String>,
}

/// The documents that may be of nested mode, so far.
#[derive(Default)]
pub struct Lint {
    kept: Vec<Kept>,
}

/// What is wrong, and whose business it was.
#[derive(Debug, Default)]
pub struct Linted {
    /// What is wrong, in the order of the documents and then of the codes.
    pub findings: Vec<Finding>,
    /// The documents that are of nested mode.
    pub concerned: BTreeSet<DocumentId>,
}

impl Lint {
    /// A document, and the JSON pointers to keys that are in one mapping twice: its value cannot show these.
    pub fn offer(&mut self, id: DocumentId, document: &Value, duplicates: Vec<String>) {
        if let Some(value) = reduced::reduced(document) {
            self.kept.push(Kept { id, value, duplicates });
        }
    }

    /// All that is wrong.
    #[must_use]
    pub fn finish(&self) -> Linted {
        let documents = Documents::of(&self.kept);
        let mut found = Vec::new();
        for workload in documents.workloads() {
            pods::lint(workload, &mut found);
            settings::of_workload(&documents, workload, &mut found);
        }
        let mut concerned: BTreeSet<_> =
            documents.workloads().iter().map(|workload| workload.id()).collect();
        concerned.extend(settings::of_config_maps(&documents, &mut found));
        concerned.extend(access::lint(&documents, &mut found));
        found.sort_by_key(|one| (one.document, one.rule.code));
        Linted { findings: found, concerned }
    }
}

impl Rule {
    fn at(&'static self, document: DocumentId, pointer: &str, message: String) -> Finding {
        Finding { rule: self, document, pointer: pointer.to_owned(), message }
    }
}

const fn error(code: &'static str, title: &'static str, hint: &'static str) -> Rule {
    Rule { code, severity: Severity::Error, title, hint }
}

const fn warning(code: &'static str, title: &'static str, hint: &'static str) -> Rule {
    Rule { code, severity: Severity::Warning, title, hint }
}

#[cfg(test)]
mod tests;
