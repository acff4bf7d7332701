//! The report of `policy test` as JUnit XML, which CI systems show.

use std::io::{self, Write};

use super::test_report::{CaseAnswer, CaseResult, PolicyTest};

/// Writes the report. A message without a case is a failed case named `coverage`.
pub(crate) fn write(report: &PolicyTest, out: &mut dyn Write) -> io::Result<()> {
    let uncovered = report.uncovered();
    let coverage = usize::from(!uncovered.is_empty());
    let name = escaped(report.policy_name());
    let seconds = report.cases.iter().map(CaseAnswer::microseconds).sum::<f64>() / 1e6;
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(
        out,
        r#"<testsuite name="{name}" tests="{}" failures="{}" errors="{}" time="{seconds:.6}">"#,
        report.cases.len() + coverage,
        report.summary.failed + coverage,
        report.summary.unreadable,
    )?;
    for case in &report.cases {
        write_case(&name, case, out)?;
    }
    if coverage > 0 {
        let text = escaped(&format!("no case gives {}", uncovered.join(", ")));
        writeln!(out, r#"  <testcase classname="{name}" name="coverage">"#)?;
        writeln!(out, r#"    <failure message="{text}"/>"#)?;
        writeln!(out, "  </testcase>")?;
    }
    writeln!(out, "</testsuite>")
}

fn write_case(policy: &str, case: &CaseAnswer, out: &mut dyn Write) -> io::Result<()> {
    let (name, seconds) = (escaped(&case.file), case.microseconds() / 1e6);
    write!(out, r#"  <testcase classname="{policy}" name="{name}" time="{seconds:.6}""#)?;
    let element = match case.result {
        CaseResult::Passed | CaseResult::Updated => return writeln!(out, "/>"),
        CaseResult::Failed => "failure",
        CaseResult::Unreadable => "error",
    };
    let first = escaped(case.problems.first().map_or("", String::as_str));
    let all = escaped(&case.problems.join("\n"));
    writeln!(out, ">")?;
    writeln!(out, r#"    <{element} message="{first}">{all}</{element}>"#)?;
    writeln!(out, "  </testcase>")
}

/// Text for an attribute or an element. Characters that XML has not become a question mark.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            other if other.is_control() || matches!(other, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('?');
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn nothing_can_end_an_attribute_or_an_element() {
        assert_eq!(escaped("a\"<b>&\n\u{1b}"), "a&quot;&lt;b&gt;&amp;&#10;?");
    }
}
