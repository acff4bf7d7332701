//! Workloads of nested mode among the documents: what is known to be wrong with manifests of others. They are looked
//! at as a set, since kube-manager reads ConfigMaps and is bound to roles, so the first reading gathers them, and
//! the second says at each document what is wrong with it. The rules are opensdn-nested-workloads's.

use std::collections::BTreeMap;

use opensdn_manifests::{Document, Problem, codes};
use opensdn_nested_workloads::{self as workloads, DocumentId, Lint, Linted};

use crate::located::Located;
use crate::report::{Finding, ObjectId, Severity, Step};

/// What is wrong with each document that is of nested mode.
#[derive(Default)]
pub(crate) struct NestedFindings {
    of: BTreeMap<DocumentId, Vec<workloads::Finding>>,
}

/// Hands over a document of the first reading, with the keys in it that are there twice.
pub(crate) fn offer(lint: &mut Lint, id: DocumentId, document: &Document, problems: &[Problem]) {
    let whole = document.nearest("").value;
    let is_within = |one: &&Problem| {
        one.span.is_some_and(|span| whole.start <= span.start && span.end <= whole.end)
    };
    let twice = problems.iter().filter(|one| one.code == codes::DUPLICATE_KEY).filter(is_within);
    // Of an entry of a list the pointer begins with the entry's own.
    let pointers = twice.filter_map(|one| one.pointer.as_deref()?.strip_prefix(document.origin()));
    lint.offer(id, &document.value, pointers.map(str::to_owned).collect());
}

impl NestedFindings {
    pub(crate) fn of(lint: &Lint) -> Self {
        let Linted { findings, concerned } = lint.finish();
        let mut of: BTreeMap<_, Vec<_>> =
            concerned.into_iter().map(|id| (id, Vec::new())).collect();
        for finding in findings {
            of.entry(finding.document).or_default().push(finding);
        }
        Self { of }
    }

    /// What is wrong with the document; nothing where it is not of nested mode.
    pub(crate) fn at(&self, located: Located<'_>, object: &ObjectId) -> Option<Vec<Finding>> {
        let found = self.of.get(&located.id())?;
        Some(found.iter().map(|one| finding(one, located, object)).collect())
    }
}

/// The rule whose line is a password, which goes into no report.
const OF_PASSWORD: &str = "OSDN3046";

fn finding(found: &workloads::Finding, located: Located<'_>, object: &ObjectId) -> Finding {
    let mut place = located.place_of(&found.pointer);
    if found.rule.code == OF_PASSWORD {
        place.excerpt = None;
    }
    Finding {
        code: found.rule.code.to_owned(),
        severity: match found.rule.severity {
            workloads::Severity::Error => Severity::Error,
            workloads::Severity::Warning => Severity::Warning,
        },
        step: Step::Nested,
        title: found.rule.title.to_owned(),
        message: found.message.clone(),
        hint: found.rule.hint.to_owned(),
        object: Some(object.clone()),
        pointer: Some(found.pointer.clone()),
        place,
        related: Vec::new(),
        policy: None,
        suppression: None,
        fix: None,
    }
}
