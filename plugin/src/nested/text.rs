//! A plan and its findings, for people. Pure text.

use std::io::{self, Write};

use opensdn_nested::plan::{PoolsAction, SnatAction};
use opensdn_nested::{Change, Code, Fate, Finding, Plan, PlannedRow, Severity, Unknown, table};

use crate::ui::{Layout, one_line, style, wrap};

/// Writes the plan: the table, what is to be done, and all that speaks against it.
pub(crate) fn write(plan: &Plan, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{}", table(&plan.rows))?;
    writeln!(out)?;
    for line in actions(plan) {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "\nWorkloads find the services by:")?;
    for (name, value) in &plan.environment {
        writeln!(out, "  {}", one_line(&format!("{name}={value}")))?;
    }
    if !plan.findings.is_empty() || !plan.unknown.is_empty() {
        writeln!(out)?;
    }
    for finding in &plan.findings {
        write_finding(finding, layout, out)?;
    }
    for (why, codes) in by_reason(&plan.unknown) {
        let codes: Vec<String> = codes.iter().map(|code| format!("[{code}]")).collect();
        let mut lines =
            wrap(&one_line(&format!("{}: {why}", codes.join(" "))), text_width(layout)).into_iter();
        writeln!(out, "unknown  {}", lines.next().unwrap_or_default())?;
        lines.try_for_each(|line| writeln!(out, "    {line}"))?;
    }
    Ok(())
}

/// The checks that one reason leaves unknown, in the order of their codes.
fn by_reason(unknown: &[Unknown]) -> Vec<(&str, Vec<Code>)> {
    let mut reasons: Vec<(&str, Vec<Code>)> = Vec::new();
    for one in unknown {
        match reasons.iter_mut().find(|(why, _)| *why == one.why) {
            Some((_, codes)) => codes.push(one.code),
            None => reasons.push((&one.why, vec![one.code])),
        }
    }
    reasons
}

fn text_width(layout: Layout) -> usize {
    layout.width.saturating_sub(4)
}

/// The same without colours, a line each.
pub(crate) fn lines(plan: &Plan, layout: Layout) -> Vec<String> {
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = write(plan, layout, &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    anstream::adapter::strip_str(&text).to_string().lines().map(str::to_owned).collect()
}

fn write_finding(finding: &Finding, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    let (word, style) = match finding.severity {
        Severity::Error => ("error", style::ERROR),
        Severity::Warning => ("warning", style::WARNING),
    };
    // Names of others may be anything.
    let text = one_line(&format!("{}: {} -> {}", finding.about, finding.message, finding.hint));
    write!(out, "{style}{word:<7}{style:#}  [{}] ", finding.code)?;
    let mut lines = wrap(&text, text_width(layout)).into_iter();
    writeln!(out, "{}", lines.next().unwrap_or_default())?;
    lines.try_for_each(|line| writeln!(out, "    {line}"))
}

/// What would be done, a line each; of names of others only what a terminal shows.
pub(crate) fn actions(plan: &Plan) -> Vec<String> {
    all_actions(plan).iter().map(|line| one_line(line)).collect()
}

fn all_actions(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    if let PoolsAction::Add(pools) = &plan.pools {
        let ranges =
            pools.iter().map(|pool| format!("{} {}-{}", pool.protocol, pool.first, pool.last));
        let ranges = ranges.collect::<Vec<String>>().join(", ");
        lines.push(format!("add the port translation pools that SNAT needs: {ranges}"));
    }
    lines.extend(plan.rows.iter().map(of_row));
    lines.extend(plan.removed.iter().map(|row| {
        let fate = match row.fate {
            Fate::Deleted => "remove",
            Fate::Kept => "leave for now, though it is not wanted any more (--prune removes it)",
            Fate::Shared => "leave to another cluster",
            Fate::Adopted => "leave as it was there before",
            Fate::Gone => "forget, as it is gone",
        };
        format!("{fate}: {} -> {}", row.service, row.target)
    }));
    lines.extend(plan.former_snat.iter().map(|uuid| match plan.prune {
        true => format!(
            "turn off fabric SNAT of the network {uuid}, which the nodes do not need any more"
        ),
        false => format!(
            "leave fabric SNAT of the former network {uuid} on for now (--prune turns it off)"
        ),
    }));
    match plan.snat {
        SnatAction::Enable { .. } => {
            lines.push(format!("turn on fabric SNAT of {}", plan.network.joined()));
        }
        SnatAction::AlreadyOn => {
            lines.push(format!("leave fabric SNAT of {} on", plan.network.joined()));
        }
        SnatAction::Leave | SnatAction::Unknown => {}
    }
    lines
}

fn of_row(row: &PlannedRow) -> String {
    let what = match row.change {
        Change::None => "leave",
        Change::Add => "add",
        Change::Replace => "replace",
    };
    format!("{what} the link-local service {} ({} -> {})", row.name, row.service, row.target)
}
