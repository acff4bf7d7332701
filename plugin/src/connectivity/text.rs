//! A connectivity report as text, and as JUnit's XML.

use std::io::{self, Write};

use opensdn_validate::junit::{Case, Suite, write_suite};
use opensdn_validate::report::in_line;

use super::{ConnectivityReport, Tested};
use crate::checks::report::Outcome;
use crate::output::cluster_line;
use crate::ui::{Layout, style, wrap};

/// Where what is said begins, below a title.
const INDENT: usize = 8;

impl ConnectivityReport {
    /// Writes it; with `all` also what was not tried.
    pub(crate) fn write(&self, all: bool, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        let line = cluster_line(self.cluster.as_deref(), self.server.as_deref());
        writeln!(out, "{line}\n")?;
        self.write_tests(all, layout, out)?;
        writeln!(out, "\n{}", self.summary.text())?;
        match &self.bundle {
            Some(bundle) => writeln!(out, "support bundle: {}", in_line(bundle)),
            None => Ok(()),
        }
    }

    /// Writes what came of each.
    pub(crate) fn write_tests(
        &self,
        all: bool,
        layout: Layout,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let shown = self.tests.iter().filter(|one| all || one.result != Outcome::Skipped);
        let shown: Vec<&Tested> = shown.collect();
        for (number, one) in shown.iter().enumerate() {
            let before = shown.iter().take(number).find(|before| one.is_unknown_as(before));
            one.write(before.map(|before| before.id), layout, out)?;
        }
        Ok(())
    }

    /// Writes it as JUnit's XML.
    pub(crate) fn write_junit(
        &self,
        fails: impl Fn(&Tested) -> bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let case = |one: &Tested| Case {
            class: "connectivity".to_owned(),
            name: format!("{} {}", one.id, one.title),
            place: None,
            seconds: None,
            outcome: one.result.junit(&one.message, one.fix.as_deref(), fails(one)),
        };
        let cases = self.tests.iter().map(case).collect();
        write_suite(&Suite { name: "kubectl opensdn connectivity test".to_owned(), cases }, out)
    }
}

impl Tested {
    /// Whether nothing is known of it on any node, for the same reasons as of another.
    fn is_unknown_as(&self, other: &Self) -> bool {
        let is_unknown = self.nodes.iter().all(|one| one.result == Outcome::Uncertain);
        is_unknown && !self.nodes.is_empty() && self.nodes == other.nodes
    }

    /// What is not known for the reasons of another names that one.
    fn write(&self, same_as: Option<&str>, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        let (word, style) = (self.result.word(), self.result.style());
        let faint = style::FAINT;
        writeln!(out, "  {style}{word:<4}{style:#}  {}  {faint}{}{faint:#}", self.title, self.id)?;
        let width = layout.width.saturating_sub(INDENT);
        let message = match same_as {
            Some(other) => format!("not known, for the same reason as {other}"),
            None => in_line(&self.message),
        };
        for line in wrap(&message, width) {
            writeln!(out, "{:INDENT$}{line}", "")?;
        }
        match &self.fix {
            // In one line, so that it can be copied.
            Some(fix) => writeln!(out, "{:INDENT$}look: {}", "", in_line(fix)),
            None => Ok(()),
        }
    }
}
