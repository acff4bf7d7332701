//! The cloud against the plan of this moment: a plan that would change nothing is what was applied.

use opensdn_nested::drift::{State, is_of_row};
use opensdn_nested::plan::{Part as Unread, PoolsAction, SnatAction};
use opensdn_nested::{Code as PlanCode, Drift, Fate, Plan, PlannedRow, Severity};

use super::code::Code;
use super::{Part, Verified};
use crate::checks::report::Verdict;

const APPLY: &str = "kubectl opensdn nested apply";

/// Each row, SNAT, the pools, and what forbids the plan.
pub(super) fn judge(plan: &Plan) -> Vec<Verified> {
    let mut all: Vec<Verified> = plan.rows.iter().map(|row| of_row(plan, row)).collect();
    all.extend(plan.removed.iter().map(|row| {
        let subject = format!("{} -> {}", row.service, row.target);
        let what = match row.fate {
            Fate::Deleted => "it is ours, and the plan does not have it",
            Fate::Kept => {
                "it is ours, is not wanted any more, and stays until nested apply --prune"
            }
            Fate::Shared => "it is in our record, and another cluster's: only that one needs it",
            Fate::Adopted => "it is in our record, was there before, and the plan does not have it",
            Fate::Gone => "it is in our record, and not in the cloud or not as it was written",
        };
        Verified::of(Part::Cloud, Code::RowOrphaned, subject, Verdict::warn(what))
    }));
    all.extend(snat(plan));
    all.extend(pools(plan));
    let others =
        plan.findings.iter().filter(|one| one.severity == Severity::Error && !is_of_row(one));
    all.extend(others.map(|finding| {
        let verdict = Verdict::fail(&finding.message).fix(&finding.hint);
        Verified::new(Part::Cloud, finding.code.as_str(), finding.about.to_string(), verdict)
    }));
    all
}

fn of_row(plan: &Plan, row: &PlannedRow) -> Verified {
    let subject = format!("{} {} -> {}", row.name, row.service, row.target);
    let of = |code: Code, verdict| Verified::of(Part::Cloud, code, subject.clone(), verdict);
    if plan.unread.iter().any(|part| matches!(part, Unread::Rows | Unread::Records)) {
        let reasons = plan.unknown.iter().find(|one| one.code == PlanCode::KeyTaken);
        let why = reasons.map_or("the list was not read", |one| one.why.as_str());
        return of(Code::RowMissing, Verdict::uncertain(why));
    }
    let Drift { state, found, .. } = Drift::of(plan, row);
    let found = found.unwrap_or_default();
    match state {
        State::InPlace => of(Code::RowMissing, Verdict::ok("in place")),
        State::Renamed => of(Code::RowRenamed, Verdict::ok(format!("in place; {found}"))),
        State::Missing => of(Code::RowMissing, Verdict::fail("it is not in the cloud")),
        State::Changed => of(Code::RowElsewhere, Verdict::fail("it leads elsewhere in the cloud")),
        State::Shadowed => of(Code::RowShadowed, Verdict::fail(&found)),
        State::Taken => of(Code::RowTaken, Verdict::fail(&found)),
        State::Orphan | State::Leaving => {
            of(Code::RowOrphaned, Verdict::warn("it is ours, and not wanted"))
        }
    }
}

fn snat(plan: &Plan) -> Option<Verified> {
    let verdict = match &plan.snat {
        SnatAction::Leave => return None,
        SnatAction::AlreadyOn => Verdict::ok("on"),
        SnatAction::Enable { .. } => {
            Verdict::fail("it is off: nodes do not reach the fabric").fix(APPLY)
        }
        SnatAction::Unknown => Verdict::uncertain("the network of the nodes was not read"),
    };
    let subject = format!("fabric SNAT of {}", plan.network.joined());
    Some(Verified::new(Part::Cloud, PlanCode::SnatWillBeOn.as_str(), subject, verdict))
}

fn pools(plan: &Plan) -> Option<Verified> {
    let verdict = match &plan.pools {
        PoolsAction::Leave if plan.snat == SnatAction::Leave => return None,
        PoolsAction::Leave => Verdict::ok("in place"),
        PoolsAction::Add(_) => {
            Verdict::fail("not both protocols have some: agents drop TCP or UDP to the fabric")
                .fix(APPLY)
        }
        PoolsAction::Unknown => Verdict::uncertain("the pools were not read"),
    };
    let subject = "port translation pools";
    Some(Verified::new(Part::Cloud, PlanCode::PoolsWillBeMade.as_str(), subject, verdict))
}
