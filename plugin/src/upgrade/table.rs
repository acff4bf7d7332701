//! A table whose last column is as long as it has to be: what does not fit behind a row is below it.

use std::io::{self, Write};

use anstyle::Style;

use crate::ui::{Layout, one_line, wrap};

/// Below its row a note is so far to the right.
const INDENT: usize = 6;

/// A row.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// One for each head.
    pub(super) cells: Vec<String>,
    /// Which cell has which style.
    pub(super) style: Option<(usize, Style)>,
    /// What there is to say of it.
    pub(super) note: String,
}

/// Writes it; of texts of others only what a terminal shows.
pub(super) fn write(
    heads: &[&str],
    rows: &[Row],
    layout: Layout,
    out: &mut dyn Write,
) -> io::Result<()> {
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| row.cells.iter().map(|cell| one_line(cell)).collect()).collect();
    let width = |column: usize, head: &str| {
        let cells = cells.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default().max(head.len())
    };
    let widths: Vec<usize> =
        heads.iter().enumerate().map(|(column, head)| width(column, head)).collect();
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    writeln!(out, "{}", line(&heads, &widths, None).trim_end())?;
    let used = widths.iter().map(|width| width + 2).sum::<usize>();
    for (row, cells) in rows.iter().zip(&cells) {
        let (text, note) = (line(cells, &widths, row.style), one_line(&row.note));
        if note.is_empty() || used + note.chars().count() <= layout.width {
            writeln!(out, "{}", format!("{text}{note}").trim_end())?;
            continue;
        }
        writeln!(out, "{}", text.trim_end())?;
        for line in wrap(&note, layout.width.saturating_sub(INDENT)) {
            writeln!(out, "{:INDENT$}{line}", "")?;
        }
    }
    Ok(())
}

fn line(cells: &[String], widths: &[usize], style: Option<(usize, Style)>) -> String {
    let mut text = String::new();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        match style.filter(|(styled, _)| *styled == column) {
            Some((_, style)) => text.push_str(&format!("{style}{cell}{style:#}")),
            None => text.push_str(cell),
        }
        let fill = width.saturating_sub(cell.chars().count()) + 2;
        text.push_str(&" ".repeat(fill));
    }
    text
}
