//! How far an Upgrade is and how it went, for people and as a document. What it says is the view of `opensdn-upgrade`.

use std::io::{self, Write};

use anstyle::Style;
use k8s_openapi::jiff::Timestamp;
use opensdn_crds::upgrade::{NodeInterruption, Phase, State, Step, Upgrade, UpgradeStatus, Wave};
use opensdn_upgrade::gate;
use opensdn_upgrade::interruption::{self, Summary};
use opensdn_upgrade::report::{Report, report};
use schemars::JsonSchema;
use serde::Serialize;

use super::plan::remark;
use super::stage;
use super::table::{self, Row};
use crate::output::Answer;
use crate::snapshot::{age, time};
use crate::ui::{Layout, one_line, style, wrap};

/// What `upgrade status` answers, and `upgrade apply` at its end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct UpgradeReport {
    /// How far it is, in the operator's word; none before the operator has seen it.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Phase>,
    /// The wave at work, and of how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    wave: Option<String>,
    /// How it went so far.
    #[serde(flatten)]
    report: Report,
    /// Of which the text is made.
    #[serde(skip)]
    status: UpgradeStatus,
}

impl Answer for UpgradeReport {
    const KIND: &'static str = "UpgradeReport";
}

impl UpgradeReport {
    /// Of an Upgrade as it is stored.
    pub(crate) fn of(upgrade: &Upgrade) -> Self {
        let status = stage::status(upgrade);
        Self {
            phase: status.phase,
            wave: status.wave.clone(),
            report: report(&stage::id(upgrade), &upgrade.spec, &status),
            status,
        }
    }

    /// Writes it; what is at work is timed up to `now`.
    pub(crate) fn write(
        &self,
        now: Timestamp,
        layout: Layout,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        writeln!(out, "{}", one_line(&self.headline(now)))?;
        if let Some(message) = &self.report.message {
            wrap(&one_line(message), layout.width)
                .iter()
                .try_for_each(|line| writeln!(out, "{line}"))?;
        }
        let rows = self.rows(now);
        if !rows.is_empty() {
            writeln!(out)?;
            table::write(&["WAVE", "SERVICE", "STATE", "TIME", "RESTARTS"], &rows, layout, out)?;
        }
        for (service, text) in self.interruptions() {
            let lines = wrap(&one_line(&format!("{service} {text}")), layout.width);
            writeln!(out)?;
            lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        if !self.report.remarks.is_empty() {
            writeln!(out)?;
        }
        self.report.remarks.iter().try_for_each(|one| remark(one, layout, out))?;
        writeln!(out, "\n{}", one_line(&self.last_line()))
    }

    fn headline(&self, now: Timestamp) -> String {
        let Report { upgrade, from, to, .. } = &self.report;
        let releases = match (from, to) {
            (Some(from), Some(to)) => format!("  {from} -> {to}"),
            _ => String::new(),
        };
        let phase = self.phase.map_or("not seen by the operator", Phase::as_str);
        let wave = self.wave.as_ref().map(|wave| format!("  wave {wave}")).unwrap_or_default();
        let status = &self.status;
        let time = elapsed(status.started_at.as_ref(), status.finished_at.as_ref(), now);
        format!("Upgrade {upgrade}{releases}  {phase}{wave}  {time}").trim_end().to_owned()
    }

    fn rows(&self, now: Timestamp) -> Vec<Row> {
        let mut rows = Vec::new();
        for wave in self.status.waves.iter().flatten() {
            rows.push(wave_row(wave, now));
            let steps = self.status.steps.iter().flatten().filter(|step| step.wave == wave.name);
            rows.extend(steps.map(|step| step_row(step, now)));
        }
        rows
    }

    /// For how long nodes were without their vrouter.
    fn interruptions(&self) -> impl Iterator<Item = (&str, String)> {
        let services = self.report.waves.iter().flat_map(|wave| &wave.services);
        services.filter_map(|one| Some((&*one.service, in_words(&one.interruptions)?)))
    }

    fn last_line(&self) -> String {
        let Report { predicted_restarts, unplanned_restarts, requested_by, plan, manager, .. } =
            &self.report;
        let plan = plan.as_ref().map(|plan| format!(", plan {plan}")).unwrap_or_default();
        let who =
            requested_by.as_ref().map(|who| format!(", requested by {who}")).unwrap_or_default();
        format!(
            "Manager {manager}{plan}{who}; pods to be replaced: {predicted_restarts}; containers restarted besides: \
             {unplanned_restarts}"
        )
    }
}

fn in_words(all: &[NodeInterruption]) -> Option<String> {
    let Summary { over, nodes, seconds, longest, open } = interruption::summary(all);
    let count = i64::try_from(over).ok()?;
    let of_all = longest.map(|(node, longest)| {
        let each = seconds / count.max(1);
        let times = if over == nodes { String::new() } else { format!(", {over} times in all") };
        let word = if nodes == 1 { "node" } else { "nodes" };
        format!(
            "was away on {nodes} {word}{times}: {} each, {} at most, on {node}",
            age(each),
            age(longest)
        )
    });
    let open = (open > 0).then(|| format!("of {open} it is not known when it was back"));
    let texts: Vec<String> = [of_all, open].into_iter().flatten().collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn wave_row(wave: &Wave, now: Timestamp) -> Row {
    let time = elapsed(wave.started_at.as_ref(), wave.finished_at.as_ref(), now);
    let is_open = matches!(wave.state, State::Succeeded | State::Pending | State::RolledBack);
    let shut = wave.gate.as_deref().filter(|_| !is_open).and_then(gate::shut);
    let shut = shut.map(|why| format!("gate: {why}"));
    let point = wave.no_way_back.as_ref().filter(|_| stage::is_started(wave.state));
    let point = point.map(|why| format!("no way back: {why}"));
    let note = [shut, point].into_iter().flatten().collect::<Vec<_>>().join("; ");
    let cells = vec![wave.name.clone(), String::new(), wave.state.to_string(), time, String::new()];
    Row { cells, style: Some((2, style_of(wave.state))), note }
}

fn step_row(step: &Step, now: Timestamp) -> Row {
    let time = elapsed(step.started_at.as_ref(), step.finished_at.as_ref(), now);
    let restarts = step.restarts.map(|number| number.to_string()).unwrap_or_default();
    let tries = step.attempts.filter(|number| *number > 1);
    let tries = tries.map(|number| format!("try {number}"));
    let note = [tries, step.message.clone()].into_iter().flatten().collect::<Vec<_>>().join(": ");
    let cells = vec![String::new(), step.id.clone(), step.state.to_string(), time, restarts];
    Row { cells, style: Some((2, style_of(step.state))), note }
}

fn style_of(state: State) -> Style {
    match state {
        State::Succeeded => style::GOOD,
        State::Failed => style::ERROR,
        State::Pending | State::Skipped => style::FAINT,
        State::Canary | State::Running | State::RollingBack | State::RolledBack => style::WARNING,
    }
}

/// How long something took, or takes until now.
pub(super) fn elapsed(from: Option<&String>, to: Option<&String>, now: Timestamp) -> String {
    let Some(from) = from.and_then(|text| time(text)) else { return String::new() };
    let to = to.and_then(|text| time(text)).unwrap_or(now);
    age(to.as_second() - from.as_second())
}
