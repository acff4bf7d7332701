//! Findings as JUnit's XML: a suite a file, a case a finding. A file without findings is one case
//! that has passed.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{Finding, Severity, ValidationReport};
use crate::junit::{Case, Outcome, Problem, Suite, write_suites};

/// Writes the document. `files` are all that were read, in their order.
///
/// # Errors
/// The stream's own.
pub fn write(report: &ValidationReport, files: &[String], out: &mut dyn Write) -> io::Result<()> {
    let mut findings: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in report.findings.iter().chain(&report.suppressed) {
        findings.entry(&finding.place.file).or_default().push(finding);
    }
    let others: Vec<&str> =
        findings.keys().copied().filter(|name| !files.iter().any(|file| file == name)).collect();
    let names = files.iter().map(String::as_str).chain(others);
    let suites: Vec<Suite> =
        names.map(|file| suite(file, findings.get(file).map_or(&[], Vec::as_slice))).collect();
    write_suites("kubectl opensdn validate", &suites, out)
}

fn suite(file: &str, findings: &[&Finding]) -> Suite {
    let mut cases: Vec<Case> = findings.iter().map(|finding| case(file, finding)).collect();
    if cases.is_empty() {
        let (class, name) = (file.to_owned(), file.to_owned());
        cases.push(Case { class, name, place: None, seconds: None, outcome: Outcome::Passed });
    }
    Suite { name: file.to_owned(), cases }
}

fn case(file: &str, finding: &Finding) -> Case {
    let mut text = finding.message.clone();
    for related in &finding.related {
        text.push_str(&format!("\n{}: {}", related.place.text(), related.message));
    }
    if !finding.hint.is_empty() {
        text.push_str(&format!("\n{}", finding.hint));
    }
    // What passes with a warning does not fail a build here; `--fail-on` decides on the exit code.
    let outcome = match (&finding.suppression, finding.severity) {
        (Some(granted), _) => Outcome::Skipped(granted.reason.clone()),
        (None, Severity::Error) => Outcome::Failed(Problem {
            kind: Some(finding.code.clone()),
            message: finding.headline().to_owned(),
            text,
        }),
        (None, _) => Outcome::Output(format!("{}: {text}", finding.code)),
    };
    Case {
        class: file.to_owned(),
        name: format!("{} {}", finding.code, finding.place.text()),
        place: Some((file.to_owned(), finding.place.line)),
        seconds: None,
        outcome,
    }
}
