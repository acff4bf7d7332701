//! Findings that are accepted on purpose: by the annotation `opensdn.io/ignore` of the object
//! or by a comment at the line. Without a reason a suppression does not count.

use opensdn_manifests::{Document, Source, Span};
use serde_json::Value;

use crate::report::{By, Finding, Granted, Location, ObjectId, Origin, Severity, Step, codes};

/// The annotation: `CODE reason; CODE reason`.
const ANNOTATION: &str = "opensdn.io/ignore";
const ANNOTATION_POINTER: &str = "/metadata/annotations/opensdn.io~1ignore";

/// One suppression.
#[derive(Debug)]
struct Asked {
    code: String,
    reason: String,
    by: By,
    /// The line that it is about; none: the whole object.
    line: Option<usize>,
    place: Location,
    used: bool,
}

/// The suppressions of one object.
#[derive(Debug, Default)]
pub(crate) struct Suppressions {
    asked: Vec<Asked>,
}

impl Suppressions {
    /// Reads those of the object. Comments of a list belong to the entry whose findings they are
    /// about, so `lines` are the object's.
    pub(crate) fn read(
        document: &Document,
        source: &Source,
        origin: Origin,
        file_number: usize,
    ) -> Self {
        let place = |span| Location::of_span(origin, file_number, source, span);
        let mut asked = Vec::new();
        let annotation = document
            .value
            .pointer("/metadata/annotations")
            .and_then(|annotations| annotations.get(ANNOTATION).and_then(Value::as_str));
        let span = document.nearest(ANNOTATION_POINTER).value;
        for part in annotation.unwrap_or_default().split(';').map(str::trim) {
            if part.is_empty() {
                continue;
            }
            let (code, reason) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
            let (code, reason) = (code.to_owned(), reason.trim().to_owned());
            let place = place(span);
            asked.push(Asked { code, reason, by: By::Annotation, line: None, place, used: false });
        }
        let whole = document.nearest("").value;
        let lines = source.position(whole.start).line..=source.position(whole.end).line;
        for comment in document.comments().iter().filter_map(|comment| comment.suppression()) {
            let line = if comment.trailing {
                source.position(comment.span.start).line
            } else {
                next_line(source, comment.span)
            };
            // The comments of a list are handed to each of its entries.
            if !document.origin().is_empty() && !lines.contains(&line) {
                continue;
            }
            let codes = if comment.codes.is_empty() { vec![String::new()] } else { comment.codes };
            for code in codes {
                let (reason, place) = (comment.reason.clone(), place(comment.span));
                let (by, line) = (By::Comment, Some(line));
                asked.push(Asked { code, reason, by, line, place, used: false });
            }
        }
        Self { asked }
    }

    /// Why a finding with this code on this line does not count, if so.
    pub(crate) fn grant(&mut self, code: &str, line: Option<usize>) -> Option<Granted> {
        let fits = |asked: &&mut Asked| {
            asked.code == code
                && !asked.reason.is_empty()
                && asked.line.is_none_or(|about| Some(about) == line)
        };
        let asked = self.asked.iter_mut().find(fits)?;
        asked.used = true;
        Some(Granted { reason: asked.reason.clone(), by: asked.by })
    }

    /// What is wrong with the suppressions themselves, once everything has been found.
    pub(crate) fn findings(self, object: &ObjectId) -> Vec<Finding> {
        let findings = self.asked.into_iter().filter(|asked| !asked.used).map(|asked| {
            let (code, severity, message, hint) = if asked.code.is_empty() {
                let message = "the suppression names no code".to_owned();
                (codes::WITHOUT_REASON, Severity::Warning, message, "write: CODE reason")
            } else if asked.reason.is_empty() {
                let message = format!("the suppression of {} does not say why", asked.code);
                let hint = "write the reason behind the code; until then it does not count";
                (codes::WITHOUT_REASON, Severity::Warning, message, hint)
            } else {
                let message = format!("{} is not found here, but suppressed", asked.code);
                (codes::UNUSED, Severity::Info, message, "remove the suppression")
            };
            Finding {
                code: code.to_owned(),
                severity,
                step: Step::Suppression,
                title: String::new(),
                message,
                hint: hint.to_owned(),
                object: Some(object.clone()),
                pointer: None,
                place: asked.place,
                related: Vec::new(),
                policy: None,
                suppression: None,
                fix: None,
            }
        });
        findings.collect()
    }
}

/// The next line that is neither blank nor a comment.
fn next_line(source: &Source, comment: Span) -> usize {
    let line = source.position(comment.start).line;
    let rest = source.text().get(comment.end..).unwrap_or_default();
    let mut lines = rest.lines().skip(1).zip(line + 1..);
    let is_content = |text: &str| !text.trim().is_empty() && !text.trim_start().starts_with('#');
    lines.find(|(text, _)| is_content(text)).map_or(line, |(_, number)| number)
}
