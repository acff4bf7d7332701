//! The certificates as a table, the worst first.

use std::io::{self, Write};

use k8s_openapi::jiff::Timestamp;
use opensdn_validate::report::one_line;

use super::{CertificateStatus, CertificatesReport, State};
use crate::ui::{Layout, style, wrap};

/// So many columns are below where not all fit beside each other.
const BELOW: usize = 2;
/// Where the others begin, below.
const INDENT: usize = 12;
const HEAD: [&str; 6] = ["STATE", "DAYS", "SECRET", "KEY", "USED BY", "ISSUER"];
/// Where the column is that only a wide table has.
const NOT_AFTER: usize = 2;

impl CertificatesReport {
    /// Writes it.
    pub(crate) fn write(
        &self,
        is_wide: bool,
        layout: Layout,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if self.certificates.is_empty() {
            let what = if self.not_read.is_empty() {
                "there are no certificates of OpenSDN in this cluster"
            } else {
                "no certificate could be read"
            };
            return writeln!(out, "{what}");
        }
        let mut head: Vec<String> = HEAD.map(str::to_owned).into();
        let mut rows: Vec<Vec<String>> = self.certificates.iter().map(cells).collect();
        if is_wide {
            head.insert(NOT_AFTER, "NOT AFTER".to_owned());
            for (row, one) in rows.iter_mut().zip(&self.certificates) {
                row.insert(NOT_AFTER, not_after(one));
            }
        }
        let widths: Vec<usize> = (0..head.len())
            .map(|column| {
                let cells = rows.iter().filter_map(|row| row.get(column));
                let longest = cells.map(|cell| cell.chars().count()).max().unwrap_or_default();
                longest.max(head.get(column).map_or(0, String::len))
            })
            .collect();
        let total = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
        // What does not fit beside is below: who issued it is as long as people make it.
        let beside = if total <= layout.width { head.len() } else { head.len() - BELOW };
        line(&head, &widths, (beside, None), out)?;
        for (row, one) in rows.iter().zip(&self.certificates) {
            line(row, &widths, (beside, Some(one.state)), out)?;
            if beside < head.len() {
                below(row, layout, out)?;
            }
        }
        Ok(())
    }
}

/// When it ends, to the second; `?` where it cannot be read.
fn not_after(one: &CertificateStatus) -> String {
    let ends = one.not_after.and_then(|seconds| Timestamp::from_second(seconds).ok());
    ends.map_or_else(|| "?".to_owned(), |ends| ends.to_string())
}

fn cells(one: &CertificateStatus) -> Vec<String> {
    vec![
        word(one.state).to_owned(),
        one.days.map_or_else(|| "?".to_owned(), |days| days.to_string()),
        one_line(&format!("{}/{}", one.namespace, one.secret)),
        one_line(&one.key),
        one_line(&one.used_by),
        one_line(&one.issuer),
    ]
}

/// Used by what, and issued by whom.
fn below(cells: &[String], layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    let [.., used_by, issuer] = cells else { return Ok(()) };
    for (what, text) in [("used by", used_by), ("issuer", issuer)] {
        if !text.is_empty() {
            for line in wrap(&format!("{what} {text}"), layout.width.saturating_sub(INDENT)) {
                writeln!(out, "{:INDENT$}{line}", "")?;
            }
        }
    }
    Ok(())
}

fn line(
    cells: &[String],
    widths: &[usize],
    (beside, state): (usize, Option<State>),
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut text = String::new();
    for (column, (cell, width)) in cells.iter().zip(widths).take(beside).enumerate() {
        let filled = format!("{cell:width$}  ");
        match state.map(style_of).filter(|_| column == 0) {
            Some(style) => text.push_str(&format!("{style}{filled}{style:#}")),
            None => text.push_str(&filled),
        }
    }
    writeln!(out, "{}", text.trim_end())
}

fn style_of(state: State) -> anstyle::Style {
    match state {
        State::Ok => style::GOOD,
        State::Late => style::WARNING,
        _ => style::ERROR,
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Expired => "expired",
        State::Untrusted => "untrusted",
        State::Unreadable => "unreadable",
        State::Urgent => "urgent",
        State::Late => "late",
        State::Ok => "ok",
    }
}
