//! What the cloud has under the keys and names of the plan's rows. An agent takes the first row of a key, so one of
//! another owner cannot be overruled but only replaced.

use std::collections::BTreeMap;

use super::World;
use crate::allocate::own_record;
use crate::catalogue::Code;
use crate::finding::{Report, Severity, Subject};
use crate::input::Permission;
use crate::list::{Seen, shortened};
use crate::rows::{Change, PlannedRow, Sharing, is_held};

pub(super) fn check(world: &World, report: &mut Report) {
    let codes = [Code::KeyTaken, Code::NameTaken, Code::Shadowed];
    let is_listed = report.known(&world.live.rows, &codes).is_some();
    let is_recorded = report.known(&world.live.records, &codes).is_some();
    if is_listed && is_recorded {
        for row in world.rows.iter().filter(|row| row.change == Change::Replace) {
            taken(world, row, report);
        }
    }
    names(world, report);
}

fn is_ours(world: &World, seen: &Seen) -> bool {
    let held = own_record(world.live).and_then(|record| record.rows.get(&seen.key));
    held.is_some_and(|held| held.how.is_ours() && is_held(seen, held))
}

fn taken(world: &World, row: &PlannedRow, report: &mut Report) {
    let Some(first) = world.list.first(row.key()) else { return };
    let owner = if is_ours(world, first) { "ours" } else { "another owner's" };
    let is_shared = row.sharing == Sharing::Shared;
    if owner == "ours" && !is_shared {
        return;
    }
    let is_good = |seen: &Seen| is_ours(world, seen) || seen.leads_to(&row.leads_to());
    let (code, what) = match world.list.at(row.key()).skip(1).any(is_good) {
        true if owner != "ours" => (Code::Shadowed, "is before ours and wins"),
        _ => (Code::KeyTaken, "has the address and port"),
    };
    let leads = match first.is_metadata() {
        true => "to Nova's metadata service, because of its name".to_owned(),
        false => format!("to {}", shortened(&first.target.to_string())),
    };
    let message = format!("row {}, {owner}, {what}, and leads {leads}", first.title());
    let about = Subject::Row(row.title());
    let may_replace = world.input.choices.permissions.take_over == Permission::Granted;
    if is_shared {
        let message = format!("{message}; another nested cluster uses it");
        report.find(code, about, message, "choose another service address for this node");
    } else if first.is_metadata() {
        report.find(code, about, message, "choose another service address for this node");
    } else if may_replace {
        let message = format!("{message}; it is replaced, as was asked for");
        report.find_as(Severity::Warning, code, about, message, "make sure that no user needs it");
    } else {
        let hint = "choose another service address for this node, or take the row over if no user needs it";
        report.find(code, about, message, hint);
    }
}

/// Agents do not care: a query for the name gets the addresses of all rows that have it. Those who find rows by name
/// do, with regard to case.
fn names(world: &World, report: &mut Report) {
    let network = &world.input.network;
    let claimed = format!("{}-{}-kubernetes-", network.domain, network.project);
    let mut by_name: BTreeMap<String, Vec<&Seen>> = BTreeMap::new();
    for seen in &world.list.rows {
        by_name.entry(seen.row.name().to_lowercase()).or_default().push(seen);
    }
    for row in world.rows.iter().filter(|row| row.change != Change::None) {
        if row.name.eq_ignore_ascii_case("metadata") || row.name.starts_with(&claimed) {
            let message = format!(
                "the name {:?} is one by which kube-manager or the provisioner finds its own rows: it would be replaced",
                row.name
            );
            report.find_as(
                Severity::Error,
                Code::NameTaken,
                Subject::Row(row.title()),
                message,
                "choose another name of the cluster",
            );
            continue;
        }
        let same = by_name.get(&row.name.to_lowercase()).into_iter().flatten();
        let others = same.filter(|seen| seen.key != row.key() && !is_ours(world, seen));
        if let Some(other) = others.min_by_key(|seen| seen.number) {
            report.find(
                Code::NameTaken,
                Subject::Row(row.title()),
                format!(
                    "row {} has the name too: a query of DNS gets the addresses of both",
                    other.title()
                ),
                "choose the naming by clusters, or leave it where both lead to the same service",
            );
        }
    }
}
