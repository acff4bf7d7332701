//! A verification as text: a line for each thing that was looked at, with the nodes that are not as they have to be.

use std::io::{self, Write};

use opensdn_validate::report::printable;

use super::{NestedVerification, Part, Verified};
use crate::checks::report::Outcome;
use crate::ui::{Layout, style, wrap};

/// Where what is said begins, below a subject.
const INDENT: usize = 8;

impl Part {
    fn title(self) -> &'static str {
        match self {
            Self::Cloud => "cloud",
            Self::Services => "services, from the nodes",
            Self::NodeFiles => "files of nodes",
            Self::Workloads => "workloads",
            Self::Pods => "pods",
        }
    }
}

impl NestedVerification {
    /// Writes it.
    pub(crate) fn write(&self, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        let connectivity = serde_json::to_value(self.connectivity).unwrap_or_default();
        let connectivity = connectivity.as_str().unwrap_or_default();
        let cluster = printable(&self.cluster);
        writeln!(out, "cluster  {cluster}  {connectivity}  {}", self.config_api.join(", "))?;
        let mut part = None;
        for one in &self.results {
            if part != Some(one.part) {
                let strong = style::STRONG;
                writeln!(out, "\n{strong}{}{strong:#}", one.part.title())?;
                part = Some(one.part);
            }
            one.write(layout, out)?;
        }
        writeln!(out, "\n{}", self.summary.text())
    }
}

impl Verified {
    fn write(&self, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        let (word, style) = (self.result.word(), self.result.style());
        let code = match self.result {
            Outcome::Ok | Outcome::Skipped => String::new(),
            _ => format!("[{}] ", self.code),
        };
        writeln!(out, "  {style}{word:<4}{style:#}  {code}{}", printable(&self.subject))?;
        let mut lines = |text: &str| -> io::Result<()> {
            let width = layout.width.saturating_sub(INDENT);
            let lines = wrap(&printable(text), width);
            lines.iter().try_for_each(|line| writeln!(out, "{:INDENT$}{line}", ""))
        };
        lines(&self.message)?;
        match &self.fix {
            Some(fix) => lines(&format!("do: {fix}")),
            None => Ok(()),
        }
    }
}
