//! A document with the place where it was read, what a request about it would be about, and what
//! the text's and the schema's problems are as findings.

use opensdn_crds::{OPENSDN_GROUP, TUNGSTEN_GROUP};
use opensdn_manifests::{Document, Problem, Severity as Level, Source, Span};
use opensdn_nested_workloads::DocumentId;
use serde_json::Value;

use crate::claims::Identity;
use crate::fix;
use crate::report::{Finding, Location, ObjectId, Origin, Severity, Step};

/// A document, and where it was read.
#[derive(Clone, Copy)]
pub(crate) struct Located<'a> {
    pub(crate) document: &'a Document,
    pub(crate) source: &'a Source,
    pub(crate) origin: Origin,
    pub(crate) file_number: usize,
    /// Its number among the documents of the file.
    pub(crate) number: usize,
}

impl Located<'_> {
    /// By what it is known as one of all documents.
    pub(crate) fn id(&self) -> DocumentId {
        DocumentId { text: self.file_number, document: self.number }
    }

    /// The place of a range of bytes.
    pub(crate) fn place(&self, span: Span) -> Location {
        Location::of_span(self.origin, self.file_number, self.source, span)
    }

    /// The place of a field or, where the document has it not, of the innermost one around it. A
    /// field of many lines, and one that only contains a missing one, is shown by its key.
    pub(crate) fn place_of(&self, pointer: &str) -> Location {
        let found = self.document.nearest(pointer);
        let lines = |span: Span| {
            let end = self.source.position(span.end.saturating_sub(1));
            end.line > self.source.position(span.start).line
        };
        let exact = self.document.span(pointer).is_some();
        let span = match found.key {
            Some(key) if !exact || lines(found.value) => key,
            _ => found.value,
        };
        self.place(span)
    }
}

/// What a request would be about.
pub(crate) struct Subject {
    pub(crate) object: ObjectId,
    pub(crate) group: String,
    pub(crate) version: String,
}

impl Subject {
    pub(crate) fn of(value: &Value) -> Self {
        let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("/apiVersion");
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        Self {
            object: ObjectId {
                api_version: api_version.to_owned(),
                kind: text("/kind").to_owned(),
                namespace: text("/metadata/namespace").to_owned(),
                name: text("/metadata/name").to_owned(),
            },
            group: group.to_owned(),
            version: version.to_owned(),
        }
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.group == TUNGSTEN_GROUP || self.group == OPENSDN_GROUP
    }

    pub(crate) fn identity(&self) -> Identity {
        let ObjectId { kind, namespace, name, .. } = &self.object;
        (self.group.clone(), kind.clone(), namespace.clone(), name.clone())
    }
}

/// A problem of the schema or of the text, at its place.
pub(crate) fn of_problem(located: Located<'_>, object: &ObjectId, problem: Problem) -> Finding {
    let place = match (problem.span, &problem.pointer) {
        (Some(span), _) => located.place(span),
        (None, Some(pointer)) => located.place_of(pointer),
        (None, None) => located.place_of(""),
    };
    let fix = fix::of_problem(located.source, &problem);
    Finding { object: Some(object.clone()), fix, ..of_text(place, problem, Step::Schema) }
}

/// A problem without an object.
pub(crate) fn of_text(place: Location, problem: Problem, step: Step) -> Finding {
    let severity = match problem.severity {
        Level::Error => Severity::Error,
        Level::Warning => Severity::Warning,
        Level::Info => Severity::Info,
    };
    Finding {
        code: problem.code,
        severity,
        step,
        title: String::new(),
        message: problem.message,
        hint: problem.hint,
        object: None,
        pointer: problem.pointer,
        place,
        related: Vec::new(),
        policy: None,
        suppression: None,
        fix: None,
    }
}
