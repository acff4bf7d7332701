//! A check report as text, and as JUnit's XML.

use std::io::{self, Write};
use std::time::Duration;

use anstyle::Style;
use opensdn_validate::junit::{Case, Outcome as Case_, Problem, Suite, write_suite};
use opensdn_validate::report::{in_line, one_line};

/// Where the command is to be run: what asks the cluster here, all others on the node that is named.
fn place_of(fix: &str) -> &'static str {
    const HERE: [&str; 7] = ["kubectl", "oc", "skopeo", "openstack", "podman", "nc", "in"];
    match HERE.contains(&fix.split(' ').next().unwrap_or_default()) {
        true => "fix",
        false => "on the node",
    }
}

#[cfg(test)]
use super::catalogue::{CHECKS, Check};
use super::report::{CheckCatalogue, CheckReport, Checked, Outcome, Summary};
use crate::output::cluster_line;
use crate::ui::{Layout, style, wrap};

/// Indent of what is said of a check below its line.
const INDENT: usize = 12;

impl CheckReport {
    /// Writes it; with `all` also what was not looked at, and how long each took.
    pub(crate) fn write(&self, all: bool, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        let line = cluster_line(self.cluster.as_deref(), self.server.as_deref());
        let nodes = self.nodes.map(|nodes| super::number_of(nodes, "node")).unwrap_or_default();
        let line = [line.as_str(), self.kubernetes.as_str(), nodes.as_str()];
        let line: Vec<&str> = line.into_iter().filter(|part| !part.is_empty()).collect();
        writeln!(out, "{}", in_line(&line.join("  ")))?;
        let mut category = None;
        for check in self.checks.iter().filter(|one| all || one.result != Outcome::Skipped) {
            if category != Some(check.category) {
                let strong = style::STRONG;
                writeln!(out, "\n{strong}{}{strong:#}", check.category.word())?;
                category = Some(check.category);
            }
            check.write(all, layout, out)?;
        }
        let skipped = self.summary.skipped;
        if skipped > 0 && !all {
            writeln!(out, "\nskipped {skipped}: -o wide says why, --list shows all checks")?;
        }
        let read = if all { format!("; read in {} ms", self.read_ms) } else { String::new() };
        writeln!(out, "\n{}{read}", self.summary.text())
    }

    /// Writes it as JUnit's XML: what fails `fails`, what is only doubtful says so.
    pub(crate) fn write_junit(
        &self,
        fails: impl Fn(&Checked) -> bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let case = |check: &Checked| Case {
            class: check.category.word().to_owned(),
            name: format!("{} {}", check.id, check.title),
            place: None,
            seconds: Some(Duration::from_millis(check.duration_ms).as_secs_f64()),
            outcome: check.result.junit(&check.message, check.fix.as_deref(), fails(check)),
        };
        let cases = self.checks.iter().map(case).collect();
        write_suite(&Suite { name: "kubectl opensdn check".to_owned(), cases }, out)
    }
}

impl Summary {
    pub(crate) fn text(&self) -> String {
        let Self { passed, warning, failed, skipped: _, uncertain } = self;
        let parts = [(*warning, "warning"), (*failed, "failed"), (*uncertain, "uncertain")];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, word)| format!(", {count} {word}")).collect();
        format!("{passed} passed{}", parts.concat())
    }
}

impl Outcome {
    /// As JUnit has it: what `fails`, what was not looked at, and what is only doubtful.
    pub(crate) fn junit(self, message: &str, fix: Option<&str>, fails: bool) -> Case_ {
        match self {
            Self::Skipped => Case_::Skipped(message.to_owned()),
            _ if fails => Case_::Failed(Problem {
                kind: Some(self.word().to_owned()),
                message: message.to_owned(),
                text: fix.unwrap_or_default().to_owned(),
            }),
            Self::Ok => Case_::Passed,
            Self::Uncertain => Case_::Skipped(format!("uncertain: {message}")),
            Self::Warn | Self::Fail => Case_::Output(message.to_owned()),
        }
    }

    /// In which its word is shown.
    pub(crate) fn style(self) -> Style {
        match self {
            Self::Ok => style::GOOD,
            Self::Warn | Self::Uncertain => style::WARNING,
            Self::Fail => style::ERROR,
            Self::Skipped => style::FAINT,
        }
    }
}

impl Checked {
    fn write(&self, is_timed: bool, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        let (word, style) = (self.result.word(), self.result.style());
        let took = if is_timed { format!(" ({} ms)", self.duration_ms) } else { String::new() };
        write!(out, "  {style}{word:<4}{style:#}  {}  ", self.id)?;
        let text = match self.result {
            Outcome::Ok => &self.message,
            _ => self.title,
        };
        let text = format!("{text}{took}");
        let lead = "  FAIL  ".len() + self.id.len() + 2;
        lines(&text, Layout { width: layout.width.saturating_sub(lead - INDENT), ..layout }, out)?;
        if self.result == Outcome::Ok {
            return Ok(());
        }
        write!(out, "{:INDENT$}", "")?;
        lines(&self.message, layout, out)?;
        match &self.fix {
            // In one line, so that it can be copied.
            Some(fix) => writeln!(out, "{:INDENT$}{}: {}", "", place_of(fix), in_line(fix)),
            None => Ok(()),
        }
    }
}

/// The text, whose first line begins where the cursor is.
fn lines(text: &str, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    for (at, line) in wrap(&one_line(text), layout.width.saturating_sub(INDENT)).iter().enumerate()
    {
        let indent = if at == 0 { 0 } else { INDENT };
        writeln!(out, "{:indent$}{line}", "")?;
    }
    Ok(())
}

impl CheckCatalogue {
    /// A line for each check.
    pub(crate) fn write(&self, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        for one in &self.checks {
            let (mode, severity) = (one.mode.word(), one.severity.word());
            let lead = format!("{}  {mode:<9}  {severity:<7}  ", one.id);
            let width = lead.len();
            let mut lead = lead;
            for line in wrap(one.title, layout.width.saturating_sub(width)) {
                writeln!(out, "{lead}{line}")?;
                lead = " ".repeat(width);
            }
        }
        Ok(())
    }
}

/// The page of the book with all checks, and what shows each of them.
#[cfg(test)]
pub(super) fn page(sources: impl Fn(&str) -> Vec<&'static str>) -> String {
    use std::fmt::Write as _;
    let mut page = String::from(
        "<!-- Generated: UPDATE=1 cargo test -p kubectl-opensdn the_page_of_checks_is_current -->\n\n# Checks\n\nWhat \
         [`kubectl opensdn check`](../check.md) looks at. The same with `kubectl opensdn explain ID`. Checks of mode \
         `probe`, and a part of those of mode `api+probe`, need `--probe`; without it they are skipped, with the reason.\n",
    );
    let mut category = None;
    for check in CHECKS.iter() {
        if category != Some(check.category) {
            let _ = write!(page, "\n## {}\n", check.category.word());
            category = Some(check.category);
        }
        let Check { id, title, why, fix, .. } = check;
        let (mode, severity) = (check.mode.word(), check.severity.word());
        let judged = if check.judge.is_some() { "" } else { ", not judged yet" };
        let sources = sources(id).join("`, `");
        let _ = write!(
            page,
            "\n### {id}\n\nHas to be so: {title}. Mode `{mode}`, severity `{severity}`{judged}.\n\n{why}\n\n**Where it is shown:** \
             `{sources}`\n\n```\n{fix}\n```\n"
        );
    }
    page
}
