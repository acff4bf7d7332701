//! The checks: what has to be so, that OpenSDN can be installed in a cluster and works there. Each is an entry of
//! `catalogue` with a pure function over the `world` as it was read; `ask` reads it, and `crate::probe` what only nodes
//! know (the files `probed_*` judge that). What a check cannot know is
//! *uncertain* and never a pass. An id and its meaning never change, and one that is gone is never given again.

pub(crate) mod ask;
pub(crate) mod catalogue;
mod cluster_api;
mod cni;
pub(crate) mod fabric;
mod huge_pages;
pub(crate) mod images;
pub(crate) mod mtu;
pub(crate) mod nested;
mod node_software;
mod nodes;
mod owners;
mod patch;
mod paths;
pub(crate) mod planned;
pub(crate) mod ports;
pub(crate) mod privileged;
pub(crate) mod probed;
pub(crate) mod probed_control;
mod probed_data_path;
mod probed_devices;
pub(crate) mod probed_dpdk;
mod probed_functions;
mod probed_matrix;
pub(crate) mod probed_members;
pub(crate) mod probed_node;
mod probed_ports;
pub(crate) mod probed_storage;
mod quotas;
pub(crate) mod registry;
pub(crate) mod report;
mod rights;
pub(crate) mod roles;
mod shared_nodes;
mod sizes;
pub(crate) mod subnets;
pub(crate) mod surroundings;
#[cfg(test)]
pub(crate) mod tests;
mod text;
pub(crate) mod upgrade;
pub(crate) mod vrouter_settings;
pub(crate) mod world;

use std::time::Instant;

use catalogue::{CHECKS, Check, Mode};
use report::{CheckReport, Checked, Summary};
use world::World;

use crate::snapshot::text;

/// Which checks are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// Only these; all where there are none.
    pub(crate) only: Vec<String>,
    /// None of these.
    pub(crate) skip: Vec<String>,
    /// For what the cluster is.
    pub(crate) purpose: Purpose,
}

/// For what a cluster is, by which checks are about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// OpenSDN itself: a control plane and vrouters.
    #[default]
    Installation,
    /// Workloads on virtual machines of a cloud that has OpenSDN.
    Nested,
    /// An OpenSDN that is there, and shall have the images of another release.
    Upgrade,
}

impl Chosen {
    /// Whether the check of that id is wanted, and about such a cluster.
    pub(crate) fn asks(&self, id: &str) -> bool {
        let check = catalogue::of_id(id).filter(|check| self.has(check));
        check.is_some_and(|check| catalogue::other_purpose(check, self.purpose).is_none())
    }

    fn has(&self, check: &Check) -> bool {
        let named = |ids: &[String]| ids.iter().any(|id| id.eq_ignore_ascii_case(check.id));
        (self.only.is_empty() || named(&self.only)) && !named(&self.skip)
    }

    /// Whether every check that is named is left out.
    pub(crate) fn leaves_nothing(&self) -> bool {
        !CHECKS.iter().any(|check| self.has(check))
    }

    /// The ids that are asked for by their names, if none of them is looked at: by what they would be.
    pub(crate) fn looks_at_nothing(&self, with_probe: bool) -> Option<&'static str> {
        let named: Vec<&Check> = CHECKS.iter().filter(|check| self.has(check)).collect();
        let is_of_another =
            |check: &&Check| catalogue::other_purpose(check, self.purpose).is_some();
        let needs_probe = |check: &&Check| check.mode == catalogue::Mode::Probe && !with_probe;
        let is_left = |check: &&Check| is_of_another(check) || needs_probe(check);
        if self.only.is_empty() || !named.iter().all(is_left) {
            return None;
        }
        Some(match named.iter().all(is_of_another) {
            true => {
                "they are about another kind of cluster, or about an upgrade: --nested, --upgrade VERSION, or without them"
            }
            false => "add --probe, which runs a pod on each node for a moment",
        })
    }

    /// The first id that there is not.
    pub(crate) fn unknown(&self) -> Option<&str> {
        let mut all = self.only.iter().chain(&self.skip);
        all.find(|id| catalogue::of_id(id).is_none()).map(String::as_str)
    }
}

/// What the checks say of a cluster.
pub(crate) fn judge(world: &World, chosen: &Chosen) -> CheckReport {
    let checks: Vec<Checked> = CHECKS
        .iter()
        .filter(|check| chosen.only.is_empty() || chosen.has(check))
        .map(|check| {
            let started = Instant::now();
            let verdict = judge_one(check, world, chosen);
            Checked::of(check, verdict, started.elapsed())
        })
        .collect();
    let outcomes: Vec<report::Outcome> = checks.iter().map(|check| check.result).collect();
    CheckReport {
        cluster: None,
        server: None,
        kubernetes: text(&world.version, "/gitVersion").to_owned(),
        nodes: world.nodes.known().map(Vec::len),
        read_ms: report::milliseconds(world.took),
        summary: Summary::of(&outcomes),
        checks,
    }
}

fn judge_one(check: &Check, world: &World, chosen: &Chosen) -> report::Verdict {
    if !chosen.has(check) {
        return report::Verdict::skipped("left out by --skip");
    }
    if let Some(why) = catalogue::other_purpose(check, chosen.purpose) {
        return report::Verdict::skipped(why);
    }
    match (check.judge, check.mode) {
        (Some(_), Mode::Probe) if world.probed.is_none() => {
            report::Verdict::skipped("needs --probe, which runs a pod on each node for a moment")
        }
        (Some(judge), _) => judge(world).within(check.severity),
        (None, Mode::Nested) => report::Verdict::skipped("kubectl opensdn nested verify tries it"),
        (None, _) => {
            report::Verdict::skipped("this version cannot look at it, also not with --probe")
        }
    }
}

/// A number of things in words: `3 nodes`.
fn number_of(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// The first of many, in a line: `a, b and 3 more`.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    match names.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{} and {more} more", shown.join(", ")),
        _ => shown.join(", "),
    }
}
