//! Findings as JUnit's XML: a suite a file, a case a finding. A file without findings is one case
//! that has passed.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{Finding, Severity, ValidationReport};

/// Writes the document. `files` are all that were read, in their order.
pub(crate) fn write(
    report: &ValidationReport,
    files: &[String],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut suites: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in report.findings.iter().chain(&report.suppressed) {
        suites.entry(&finding.place.file).or_default().push(finding);
    }
    let others: Vec<&str> =
        suites.keys().copied().filter(|name| !files.iter().any(|file| file == name)).collect();
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(
        out,
        r#"<testsuites name="kubectl opensdn validate" tests="{}" failures="{}">"#,
        suites.values().map(Vec::len).sum::<usize>()
            + files.iter().filter(|file| !suites.contains_key(file.as_str())).count(),
        failures(report.findings.iter()),
    )?;
    for file in files.iter().map(String::as_str).chain(others) {
        suite(file, suites.get(file).map(Vec::as_slice).unwrap_or_default(), out)?;
    }
    writeln!(out, "</testsuites>")
}

/// What passes with a warning does not fail a build here; `--fail-on` decides on the exit code.
fn failures<'a>(findings: impl Iterator<Item = &'a Finding>) -> usize {
    findings.filter(|one| one.severity == Severity::Error && one.suppression.is_none()).count()
}

fn suite(file: &str, findings: &[&Finding], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        r#"  <testsuite name="{}" tests="{}" failures="{}" skipped="{}">"#,
        escape(file),
        findings.len().max(1),
        failures(findings.iter().copied()),
        findings.iter().filter(|one| one.suppression.is_some()).count(),
    )?;
    if findings.is_empty() {
        writeln!(out, r#"    <testcase classname="{0}" name="{0}"/>"#, escape(file))?;
    }
    for finding in findings {
        case(file, finding, out)?;
    }
    writeln!(out, "  </testsuite>")
}

fn case(file: &str, finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let name = format!("{} {}", finding.code, finding.place.text());
    let line = finding.place.line.map(|line| format!(r#" line="{line}""#)).unwrap_or_default();
    writeln!(
        out,
        r#"    <testcase classname="{0}" name="{1}" file="{0}"{line}>"#,
        escape(file),
        escape(&name)
    )?;
    let mut text = finding.message.clone();
    for related in &finding.related {
        text.push_str(&format!("\n{}: {}", related.place.text(), related.message));
    }
    if !finding.hint.is_empty() {
        text.push_str(&format!("\n{}", finding.hint));
    }
    match (&finding.suppression, finding.severity) {
        (Some(granted), _) => {
            writeln!(out, r#"      <skipped message="{}"/>"#, escape(&granted.reason))?;
        }
        (None, Severity::Error) => writeln!(
            out,
            r#"      <failure type="{}" message="{}">{}</failure>"#,
            escape(&finding.code),
            escape(finding.headline()),
            escape(&text)
        )?,
        (None, _) => {
            let text = format!("{}: {text}", finding.code);
            writeln!(out, "      <system-out>{}</system-out>", escape(&text))?;
        }
    }
    writeln!(out, "    </testcase>")
}

/// Text that XML takes: what it has no notation for becomes the replacement character.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push('\t'),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            letter if letter.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}
