//! JUnit's XML, which CI systems show: suites of cases, each with what came of it. What a case is
//! about is not known here. The crate quick-junit would bring nine others, and knows no lines.

use std::io::{self, Write};

/// Cases that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// The cases, in their order.
    pub cases: Vec<Case>,
}

/// One case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// What the case is of, as JUnit's `classname`.
    pub class: String,
    /// Its name.
    pub name: String,
    /// The file and, where there is one, the line that it is about.
    pub place: Option<(String, Option<usize>)>,
    /// How long it took.
    pub seconds: Option<f64>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is as it has to be.
    Passed,
    /// It is as it has to be, and has something to say.
    Output(String),
    /// It is not as it has to be.
    Failed(Problem),
    /// It could not be run.
    Error(Problem),
    /// It was left out, and why.
    Skipped(String),
}

/// What is wrong with a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// A word for programs, if there is one.
    pub kind: Option<String>,
    /// In one line.
    pub message: String,
    /// In full.
    pub text: String,
}

/// Writes a document of several suites.
///
/// # Errors
/// The stream's own.
pub fn write_suites(name: &str, suites: &[Suite], out: &mut dyn Write) -> io::Result<()> {
    let sum = |count: fn(&Counts) -> usize| suites.iter().map(|one| count(&one.counts())).sum();
    let counts = Counts {
        tests: sum(|one| one.tests),
        failures: sum(|one| one.failures),
        errors: sum(|one| one.errors),
        skipped: sum(|one| one.skipped),
    };
    begin(out)?;
    writeln!(out, r#"<testsuites name="{}"{counts}>"#, escape(name))?;
    for suite in suites {
        suite.write("  ", out)?;
    }
    writeln!(out, "</testsuites>")
}

/// Writes a document of one suite.
///
/// # Errors
/// The stream's own.
pub fn write_suite(suite: &Suite, out: &mut dyn Write) -> io::Result<()> {
    begin(out)?;
    suite.write("", out)
}

fn begin(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)
}

/// How many cases ended in which way.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { tests, failures, errors, skipped } = self;
        write!(
            formatter,
            r#" tests="{tests}" failures="{failures}" errors="{errors}" skipped="{skipped}""#
        )
    }
}

impl Suite {
    fn counts(&self) -> Counts {
        let mut counts = Counts { tests: self.cases.len(), ..Counts::default() };
        for case in &self.cases {
            match case.outcome {
                Outcome::Passed | Outcome::Output(_) => {}
                Outcome::Failed(_) => counts.failures += 1,
                Outcome::Error(_) => counts.errors += 1,
                Outcome::Skipped(_) => counts.skipped += 1,
            }
        }
        counts
    }

    fn write(&self, indent: &str, out: &mut dyn Write) -> io::Result<()> {
        let timed = self.cases.iter().filter_map(|case| case.seconds);
        let time = time(timed.reduce(|sum, seconds| sum + seconds));
        let (name, counts) = (escape(&self.name), self.counts());
        writeln!(out, r#"{indent}<testsuite name="{name}"{counts}{time}>"#)?;
        for case in &self.cases {
            case.write(indent, out)?;
        }
        writeln!(out, "{indent}</testsuite>")
    }
}

impl Case {
    fn write(&self, indent: &str, out: &mut dyn Write) -> io::Result<()> {
        let (class, name, time) = (escape(&self.class), escape(&self.name), time(self.seconds));
        write!(out, r#"{indent}  <testcase classname="{class}" name="{name}"{time}"#)?;
        if let Some((file, line)) = &self.place {
            write!(out, r#" file="{}""#, escape(file))?;
            if let Some(line) = line {
                write!(out, r#" line="{line}""#)?;
            }
        }
        let inner = match &self.outcome {
            Outcome::Passed => return writeln!(out, "/>"),
            Outcome::Output(text) => format!("<system-out>{}</system-out>", escape(text)),
            Outcome::Failed(problem) => problem.element("failure"),
            Outcome::Error(problem) => problem.element("error"),
            Outcome::Skipped(why) => format!(r#"<skipped message="{}"/>"#, escape(why)),
        };
        writeln!(out, ">\n{indent}    {inner}\n{indent}  </testcase>")
    }
}

impl Problem {
    fn element(&self, element: &str) -> String {
        let Self { kind, message, text } = self;
        let kind = kind.as_ref().map(|kind| format!(r#" type="{}""#, escape(kind)));
        let (kind, message) = (kind.unwrap_or_default(), escape(message));
        match text.as_str() {
            "" => format!(r#"<{element}{kind} message="{message}"/>"#),
            text => {
                format!(r#"<{element}{kind} message="{message}">{}</{element}>"#, escape(text))
            }
        }
    }
}

fn time(seconds: Option<f64>) -> String {
    seconds.map(|seconds| format!(r#" time="{seconds:.6}""#)).unwrap_or_default()
}

/// Text for an attribute or an element; what XML cannot hold becomes the replacement character.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            character if character.is_control() => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_can_end_an_attribute_or_an_element() {
        assert_eq!(escape("a\"<b>&\n\t\u{1b}"), "a&quot;&lt;b&gt;&amp;&#10;&#9;\u{fffd}");
    }
}
