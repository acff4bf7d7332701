//! A status as text: the causes first, then a table of the components and of what is around them.

use std::collections::BTreeSet;
use std::io::{self, Write};

use k8s_openapi::jiff::Timestamp;
use opensdn_validate::report::{in_line, one_line, printable};

use super::causes;
use super::report::{ComponentStatus, Counts, Part, PodStatus, Role, State, StatusReport, Word};
use crate::snapshot::{age, time};
use crate::ui::{Layout, style, wrap};

/// How much is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detail {
    /// 1: components, 2: their pods, 3: the containers of these.
    pub(crate) depth: u8,
    /// More columns, whatever the width.
    pub(crate) wide: bool,
}

/// A row of the table.
struct Row {
    cells: Vec<String>,
    state: Option<Word>,
    note: String,
}

impl StatusReport {
    /// Writes it; ages are counted up to `now`.
    pub(crate) fn write(
        &self,
        now: Timestamp,
        detail: Detail,
        layout: Layout,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        writeln!(out, "{}", in_line(&self.headline(now)))?;
        if self.state == State::Absent {
            writeln!(out, "\nno Manager and no component of OpenSDN is in this cluster")?;
            // Of what is not there nothing more needs to be said.
            if self.around.iter().all(|part| part.state.is_none()) && self.connectivity.is_none() {
                return Ok(());
            }
        }
        self.causes(now, layout, out)?;
        writeln!(out)?;
        let rows = self.rows(now, detail);
        table(&heads(detail), &rows, detail, layout, out)?;
        let Some(connectivity) = &self.connectivity else { return Ok(()) };
        writeln!(out, "\nconnectivity  {}", connectivity.summary.text())?;
        connectivity.write_tests(detail.wide, layout, out)
    }

    pub(super) fn headline(&self, now: Timestamp) -> String {
        let cluster = self.cluster.as_deref().or(self.server.as_deref()).unwrap_or("cluster");
        let versions: BTreeSet<&str> =
            self.components.iter().flat_map(|one| &one.versions).map(String::as_str).collect();
        let version = Vec::from_iter(versions).join(", ");
        let version = if version.is_empty() { String::new() } else { format!(" {version}") };
        let since = self.since.as_deref().map(|since| elapsed(since, now));
        let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
        let (nodes, vrouters) = (self.nodes.text(), self.vrouters.text());
        let session = |what: &str, counts: Option<Counts>| {
            counts.map(|counts| format!("  {what} {}", counts.text())).unwrap_or_default()
        };
        format!(
            "{cluster}  OpenSDN{version}  {}{since}  nodes {nodes}  vrouters {vrouters}{}{}",
            self.state.word(),
            session("xmpp", self.xmpp),
            session("bgp", self.bgp)
        )
    }

    fn causes(&self, now: Timestamp, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
        for cause in &self.causes {
            let title = [cause.kind.as_str(), cause.name.as_str()].join(" ");
            let since = cause.since.as_deref().map(|since| elapsed(since, now));
            let since = since.map(|since| format!(" (for {since})")).unwrap_or_default();
            let text = format!("{}: {}{since}", title.trim_end(), cause.message);
            writeln!(out)?;
            let (bad, reset) = (style::ERROR, format!("{:#}", style::ERROR));
            let mut lead = format!("{bad}cause{reset}  ");
            for line in wrap(&one_line(&text), layout.width.saturating_sub(7)) {
                writeln!(out, "{lead}{line}")?;
                lead = " ".repeat(7);
            }
            if !cause.affects.is_empty() {
                let affects = format!("affects {}", cause.affects.join(", "));
                for line in wrap(&one_line(&affects), layout.width.saturating_sub(7)) {
                    writeln!(out, "       {line}")?;
                }
            }
            writeln!(out, "       {}", in_line(&cause.look))?;
        }
        Ok(())
    }

    fn rows(&self, now: Timestamp, detail: Detail) -> Vec<Row> {
        let mut rows = Vec::new();
        for one in &self.components {
            rows.push(self.component(one, now, detail));
            rows.extend(one.roles.iter().map(|role| role_row(role, detail)));
            if detail.depth > 1 {
                rows.extend(one.pods.iter().flat_map(|pod| pod_rows(pod, now, detail)));
            }
        }
        rows.extend(self.around.iter().map(|part| around(part, now, detail)));
        for row in &mut rows {
            // What is quoted of a cluster may be anything, and a terminal obeys it.
            row.cells.iter_mut().for_each(|one| *one = cell(one));
            row.note = cell(&row.note);
        }
        rows
    }

    /// The kind alone says which it is where there is one of it.
    fn title(&self, one: &ComponentStatus) -> String {
        let kind = one.kind.to_lowercase();
        let alike = self.components.iter().filter(|other| other.kind == one.kind).count();
        let spaces: BTreeSet<&str> =
            self.components.iter().map(|one| one.namespace.as_str()).collect();
        match (spaces.len() > 1, alike > 1) {
            (true, _) => format!("{kind} {}/{}", one.namespace, one.name),
            (false, true) => format!("{kind} {}", one.name),
            (false, false) => kind,
        }
    }

    fn component(&self, one: &ComponentStatus, now: Timestamp, detail: Detail) -> Row {
        let created = one.created.as_deref().map(|created| elapsed(created, now));
        let mut cells = vec![
            self.title(one),
            one.pods_ready.text(),
            one.state.text().to_owned(),
            one.versions.join(","),
            created.unwrap_or_default(),
        ];
        if detail.wide {
            let nodes: BTreeSet<&str> = one.pods.iter().map(|pod| pod.node.as_str()).collect();
            cells.extend([one.reason.clone(), Vec::from_iter(nodes).join(",")]);
        }
        Row { cells, state: Some(one.state), note: note(one) }
    }
}

/// What there is to say of a component.
pub(super) fn note(one: &ComponentStatus) -> String {
    let blocked = one.blocked_by.join(", ");
    match one.state {
        Word::Active => one.not_asked.clone().unwrap_or_default(),
        Word::Backup | Word::Unknown => String::new(),
        _ if one.is_cause => format!("<- cause: {}", causes::why(one)),
        _ if blocked.is_empty() => causes::why(one),
        _ if one.is_block_certain => format!("blocked by {blocked}"),
        _ => format!("perhaps because of {blocked}; {}", causes::why(one)),
    }
}

fn role_row(role: &Role, detail: Detail) -> Row {
    let blank = String::new;
    let counts = format!("{}+{}", role.active, role.backup);
    let mut cells =
        vec![format!("  {}", role.daemon), counts, role.word().to_owned(), blank(), blank()];
    if detail.wide {
        cells.extend([blank(), blank()]);
    }
    Row { cells, state: Some(Word::Active), note: blank() }
}

fn pod_rows(pod: &PodStatus, now: Timestamp, detail: Detail) -> Vec<Row> {
    let blank = String::new;
    let since = pod.since.as_deref().map(|since| elapsed(since, now)).unwrap_or_default();
    let mut cells =
        vec![format!("  {}", pod.name), blank(), pod.state.text().to_owned(), blank(), since];
    if detail.wide {
        cells.extend([blank(), pod.node.clone()]);
    }
    let note = match (pod.node.as_str(), pod.message.as_str()) {
        (node, "") if detail.wide || node.is_empty() => String::new(),
        (node, "") => format!("on {node}"),
        (node, message) if detail.wide || node.is_empty() => message.to_owned(),
        (node, message) => format!("on {node}: {message}"),
    };
    let mut rows = vec![Row { cells, state: Some(pod.state), note }];
    for one in pod.containers.iter().filter(|_| detail.depth > 2) {
        let state = one.state.text().to_owned();
        let restarts = match one.restarts {
            0 => String::new(),
            number => format!("{number} restarts "),
        };
        let mut cells = vec![format!("    {}", one.name), blank(), state, blank(), blank()];
        if detail.wide {
            cells.extend([blank(), blank()]);
        }
        let note = format!("{restarts}{}", one.message).trim_end().to_owned();
        rows.push(Row { cells, state: Some(one.state), note });
    }
    rows
}

fn around(part: &Part, now: Timestamp, detail: Detail) -> Row {
    let created = part.created.as_deref().filter(|created| !created.is_empty());
    let is_counted = part.ready.ready.is_some();
    let mut cells = vec![
        part.name.clone(),
        if is_counted { part.ready.text() } else { String::new() },
        part.state.map_or("-", Word::text).to_owned(),
        part.version.clone(),
        created.map(|created| elapsed(created, now)).unwrap_or_default(),
    ];
    if detail.wide {
        cells.extend([String::new(), String::new()]);
    }
    Row { cells, state: part.state, note: part.message.clone() }
}

fn elapsed(since: &str, now: Timestamp) -> String {
    time(since).map_or("?".to_owned(), |since| age(now.as_second() - since.as_second()))
}

/// Without what a terminal obeys, in one line. Blanks at the beginning stay: they show what belongs to what.
pub(super) fn cell(text: &str) -> String {
    printable(text).replace(['\n', '\r', '\t'], " ")
}

fn heads(detail: Detail) -> Vec<&'static str> {
    let narrow = ["COMPONENT", "READY", "STATE", "VERSION", "AGE"];
    let wide = ["REASON", "NODES"];
    narrow.into_iter().chain(wide.into_iter().filter(|_| detail.wide)).collect()
}

/// Names have so much room, whatever is beside them.
const LEAST_NAME: usize = 20;
/// What ends the first line.
const NOTE: &str = "  NOTE";

fn table(
    heads: &[&str],
    rows: &[Row],
    detail: Detail,
    layout: Layout,
    out: &mut dyn Write,
) -> io::Result<()> {
    let width = |column: usize, head: &str| {
        let cells = rows.iter().filter_map(|row| row.cells.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default().max(head.len())
    };
    let mut widths: Vec<usize> =
        heads.iter().enumerate().map(|(column, head)| width(column, head)).collect();
    let others = widths.iter().skip(1).map(|width| width + 2).sum::<usize>();
    if let Some(first) = widths.first_mut().filter(|_| !detail.wide) {
        *first = (*first).min(layout.width.saturating_sub(others + NOTE.len()).max(LEAST_NAME));
    }
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ")
    };
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    writeln!(out, "{}{NOTE}", line(&heads))?;
    for row in rows {
        let mut cells = row.cells.clone();
        // A name that is too long has its line for itself.
        if let (Some(name), Some(width)) = (cells.first_mut(), widths.first())
            && name.chars().count() > *width
        {
            writeln!(out, "{name}")?;
            name.clear();
        }
        let plain = line(&cells);
        let used = plain.chars().count() + 2;
        let text = colored(&plain, row);
        let room = layout.width.saturating_sub(used);
        if row.note.is_empty() {
            writeln!(out, "{}", text.trim_end())?;
        } else if detail.wide || row.note.chars().count() <= room {
            writeln!(out, "{text}  {}", row.note)?;
        } else {
            // Below its row rather than in a narrow column at the right.
            writeln!(out, "{}", text.trim_end())?;
            for line in wrap(&row.note, layout.width.saturating_sub(6)) {
                writeln!(out, "      {line}")?;
            }
        }
    }
    Ok(())
}

/// The line with its word in a colour; nothing is said by the colour alone.
fn colored(line: &str, row: &Row) -> String {
    let (Some(state), Some(word)) = (row.state, row.cells.get(2)) else { return line.to_owned() };
    let style = match state {
        Word::Active | Word::Backup => style::GOOD,
        Word::Unknown | Word::Initializing => style::WARNING,
        Word::Timeout | Word::Inactive => style::ERROR,
    };
    // The first cell may have the same letters, the third stands between blanks.
    match line.rsplit_once(&format!(" {word} ")) {
        Some((before, after)) => format!("{before} {style}{word}{style:#} {after}"),
        None => line.to_owned(),
    }
}
