//! What is looked at in a plan, by subject. Each check says all that it finds, and none stops the others; one that lacks
//! what it needs says so. Deliberately not here: checks of manifests, of nodes and of what answers.

use crate::allocate::Allocation;
use crate::finding::Report;
use crate::input::Input;
use crate::list::List;
use crate::live::Live;
use crate::rows::PlannedRow;

mod addresses;
pub(crate) mod cluster;
mod exposure;
mod foreign;
mod keys;
mod members;
mod nodes;
mod rights;
mod snat;
mod subnets;
mod tables;

pub use tables::check_table;

/// All that checks know.
pub(crate) struct World<'a> {
    pub(crate) input: &'a Input,
    pub(crate) live: &'a Live,
    pub(crate) list: &'a List<'a>,
    pub(crate) allocation: &'a Allocation,
    pub(crate) rows: &'a [PlannedRow],
}

const CHECKS: &[fn(&World, &mut Report)] = &[
    addresses::check,
    tables::check,
    keys::check,
    foreign::check,
    members::check,
    snat::check,
    nodes::check,
    cluster::check,
    subnets::check,
    exposure::check,
    rights::check,
];

/// Makes them all.
pub(crate) fn run(world: &World) -> Report {
    let mut report = Report::default();
    report.findings.extend(world.input.problems.iter().cloned());
    CHECKS.iter().for_each(|check| check(world, &mut report));
    report.sorted()
}

#[cfg(test)]
mod tests;
