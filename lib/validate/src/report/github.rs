//! Findings as workflow commands of GitHub, which shows them at the lines of a pull request.

use std::io::{self, Write};

use super::{Severity, ValidationReport};

/// Writes one command a finding.
pub fn write(report: &ValidationReport, out: &mut dyn Write) -> io::Result<()> {
    for finding in &report.findings {
        let level = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        let place = &finding.place;
        let mut properties = vec![format!("file={}", property(&place.file))];
        let numbers = [
            ("line", place.line),
            ("endLine", place.end_line),
            ("col", place.column),
            ("endColumn", place.end_column),
        ];
        // GitHub refuses columns where the lines differ.
        let one_line = place.line == place.end_line;
        for (name, number) in numbers {
            if let Some(number) = number.filter(|_| one_line || name.ends_with("ine")) {
                properties.push(format!("{name}={number}"));
            }
        }
        properties.push(format!("title={}", property(&finding.code)));
        let mut message = finding.message.clone();
        if !finding.hint.is_empty() {
            message.push_str(&format!("\n{}", finding.hint));
        }
        for related in &finding.related {
            message.push_str(&format!("\n{}: {}", related.place.text(), related.message));
        }
        writeln!(out, "::{level} {}::{}", properties.join(","), data(&message))?;
    }
    Ok(())
}

/// Text behind the command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Text of a property, where more has a meaning.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
