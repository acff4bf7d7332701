//! Huge pages: those that vrouters ask for, those that kubelets report, and those of the kernels of nodes that were looked
//! at: how many are there, free, mounted, and for DPDK on each NUMA node.

use opensdn_node_probe::{HugePages, NumaPages, Seen};
use serde_json::Value;

use super::cluster_api::allocatable;
use super::probed::{Said, each, worst};
use super::report::{NodeResult, Outcome, Verdict};
use super::vrouter_settings::{Group, Settings, WantedPages, groups, no_vrouter};
use super::world::{World, is_up};
use super::{few, roles};
use crate::snapshot::{Read, name};

const MIB: f64 = 1_048_576.0;
/// Where upstream's images look for pages (`containers/base/common.sh`).
const FOLDER: &str = "/dev/hugepages";
/// MiB that DPDK takes of each NUMA node, by the same.
const OF_EACH_NODE: &str = "1024";

pub(super) fn huge_pages(world: &World) -> Verdict {
    if let Some(verdict) = no_vrouter(world) {
        return verdict;
    }
    let nodes = match &world.nodes {
        Read::Known(nodes) => nodes,
        Read::Absent | Read::Unknown(_) => return Verdict::uncertain("nodes may not be read"),
    };
    let groups = groups(world);
    if groups.iter().all(|one| one.settings.as_ref().is_ok_and(takes_none)) {
        return Verdict::skipped("no Vrouter asks for huge pages");
    }
    let bad = missing(nodes, &groups);
    if !bad.is_empty() {
        let texts: Vec<String> =
            bad.iter().map(|one| format!("{} {}", one.name, one.message)).collect();
        return Verdict::fail(few(&texts)).on(bad);
    }
    if world.probed.is_some() {
        return of_kernels(world, &groups);
    }
    if let Some((group, why)) =
        groups.iter().find_map(|one| Some((one, one.settings.as_ref().err()?)))
    {
        return Verdict::uncertain(format!("what Vrouter {} asks for: {why}", group.service.name));
    }
    let silent = silent(nodes, &groups);
    if !silent.is_empty() {
        return Verdict::uncertain(format!(
            "not ready, so that its pages are not known: {}",
            few(&silent)
        ));
    }
    let asks = |one: &Group<'_>| one.settings.as_ref().is_ok_and(|own| own.huge_pages().is_any());
    if !groups.iter().any(asks) {
        return Verdict::uncertain(
            "DPDK takes huge pages that no Vrouter asks the kubelet for: what nodes have needs --probe",
        );
    }
    Verdict::ok("the nodes of vrouters report what these ask for")
}

fn takes_none(settings: &Settings) -> bool {
    !settings.huge_pages().is_any() && settings.dpdk_driver().is_none()
}

/// What is wanted of each size: its name for kubelets, MiB of a page, and how many.
fn sizes(wanted: WantedPages) -> [(&'static str, f64, u64); 2] {
    [("hugepages-2Mi", 2.0, wanted.of_2_mib), ("hugepages-1Gi", 1024.0, wanted.of_1_gib)]
}

fn wanted(group: &Group<'_>) -> WantedPages {
    group.settings.as_ref().map(Settings::huge_pages).unwrap_or_default()
}

/// Nodes whose kubelets report less than is asked for.
fn missing(nodes: &[Value], groups: &[Group<'_>]) -> Vec<NodeResult> {
    let mut bad = Vec::new();
    for group in groups {
        for (what, size, count) in sizes(wanted(group)) {
            let own = nodes.iter().filter(|node| roles::is_selected(&group.service, node));
            bad.extend(own.filter(|node| is_up(node)).filter_map(|node| {
                let has = allocatable(node, what).unwrap_or_default() / (size * MIB);
                let count = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
                let message = format!("has {has:.0} of {count:.0} {what}: restart its kubelet if they were allocated later");
                (has < count).then(|| NodeResult { name: name(node).to_owned(), result: Outcome::Fail, message })
            }));
        }
    }
    bad
}

/// Nodes of groups that ask for pages, whose kubelets report nothing.
fn silent(nodes: &[Value], groups: &[Group<'_>]) -> Vec<String> {
    let asking = groups.iter().filter(|one| wanted(one).is_any());
    let own = asking.flat_map(|group| {
        nodes.iter().filter(move |node| roles::is_selected(&group.service, node) && !is_up(node))
    });
    let mut silent: Vec<String> = own.map(|node| name(node).to_owned()).collect();
    silent.sort_unstable();
    silent.dedup();
    silent
}

/// The kernel has to have what kubelets report.
fn of_kernels(world: &World, groups: &[Group<'_>]) -> Verdict {
    each(world, "the kernel has what vrouters ask for", |node, findings| {
        let pages = match &findings.huge_pages {
            Seen::Is(pages) => pages,
            Seen::Unknown(why) => {
                return (Outcome::Uncertain, format!("huge pages are not known: {why}"));
            }
        };
        let own = groups.iter().filter(|one| roles::is_selected(&one.service, node));
        let said = own.flat_map(|group| match &group.settings {
            Ok(settings) if takes_none(settings) => Vec::new(),
            Ok(settings) => of_kernel(pages, settings, world.has_vrouter(name(node))),
            Err(why) => vec![(
                Outcome::Uncertain,
                format!("what Vrouter {} asks for: {why}", group.service.name),
            )],
        });
        worst(said.collect(), "enough")
    })
}

fn of_kernel(pages: &HugePages, settings: &Settings, is_there: Option<bool>) -> Vec<Said> {
    let wanted = settings.huge_pages();
    let sizes = [
        ("2 MiB", wanted.of_2_mib, pages.of_2_mib, pages.free_of_2_mib),
        ("1 GiB", wanted.of_1_gib, pages.of_1_gib, pages.free_of_1_gib),
    ];
    let counted = sizes.into_iter().filter_map(|(size, wanted, has, free)| {
        let have = format!("its kernel has {has} huge pages of {size}");
        if has < wanted {
            return Some((Outcome::Fail, format!("{have}, and {wanted} are asked for")));
        }
        let text = format!("{have}, of which {free} are free, and {wanted} are asked for");
        (free < wanted).then(|| held(text, is_there)).flatten()
    });
    let mut said: Vec<Said> = counted.collect();
    said.extend(not_mounted(pages, settings));
    if settings.dpdk_driver().is_some() {
        said.extend(on_numa_nodes(pages, settings, is_there));
    }
    said
}

/// Of a vrouter that runs, the pages that are not free may be its own.
fn held(text: String, is_there: Option<bool>) -> Option<Said> {
    match is_there {
        Some(true) => None,
        Some(false) => {
            Some((Outcome::Fail, format!("{text}: no vrouter runs, others have the rest")))
        }
        None => Some((
            Outcome::Uncertain,
            format!("{text}: whether a vrouter has the rest is not known, pods may not be read"),
        )),
    }
}

/// Upstream's agent and its data plane of DPDK end where nothing is mounted. The agent takes a file system with pages of
/// the size that it is to have, else the usual folder.
fn not_mounted(pages: &HugePages, settings: &Settings) -> Option<Said> {
    let mounts = match &pages.mounts {
        Seen::Is(mounts) => mounts,
        Seen::Unknown(why) => {
            return Some((Outcome::Uncertain, format!("where huge pages are mounted: {why}")));
        }
    };
    let large = settings.huge_pages().of_1_gib > 0;
    let (size, words, option, own) = match large {
        true => (1024, "1 GiB", "1G", "HUGE_PAGES_1GB_DIR"),
        false => (2, "2 MiB", "2M", "HUGE_PAGES_2MB_DIR"),
    };
    let of = |variable: &str| settings.variable(variable).filter(|value| !value.is_empty());
    let usual = of("HUGE_PAGES_DIR").unwrap_or(FOLDER);
    let is_dpdk = settings.dpdk_driver().is_some();
    let named = of(own).filter(|_| !is_dpdk);
    let folder = named.unwrap_or(usual).trim_end_matches('/');
    let is_of_size = |of: Option<u64>| of.is_none_or(|of| of == size);
    if !is_dpdk && named.is_none() && mounts.iter().any(|one| one.mebibytes_of_page == Some(size)) {
        return None;
    }
    match mounts.iter().find(|one| one.path == folder) {
        Some(mount) if is_dpdk || is_of_size(mount.mebibytes_of_page) => None,
        Some(_) => Some((
            Outcome::Warn,
            format!(
                "no pages of {words} are mounted, and those at {folder}, which the agent takes, have another size"
            ),
        )),
        None => Some((
            Outcome::Fail,
            format!(
                "no huge pages are mounted at {folder}: mount -t hugetlbfs -o pagesize={option} none {folder}"
            ),
        )),
    }
}

/// DPDK takes the same of each, and does not start where one has less.
fn on_numa_nodes(pages: &HugePages, settings: &Settings, is_there: Option<bool>) -> Vec<Said> {
    let stated = settings.variable("DPDK_MEM_PER_SOCKET").filter(|stated| !stated.is_empty());
    let stated = stated.unwrap_or(OF_EACH_NODE);
    let Ok(wanted) = stated.parse::<u64>() else {
        let text = format!("what DPDK takes of each NUMA node: {stated:?} is no number of MiB");
        return vec![(Outcome::Uncertain, text)];
    };
    let all = match &pages.numa_nodes {
        Seen::Is(all) => all,
        Seen::Unknown(why) => {
            return vec![(
                Outcome::Uncertain,
                format!("what NUMA nodes have of huge pages: {why}"),
            )];
        }
    };
    let said = all.iter().filter_map(|NumaPages { node, mebibytes, free }| {
        let have = format!("NUMA node {node} has {mebibytes} MiB of huge pages");
        let takes = format!("DPDK takes {wanted} of each (DPDK_MEM_PER_SOCKET)");
        if *mebibytes < wanted {
            return Some((Outcome::Fail, format!("{have}, and {takes}")));
        }
        let text = format!("{have}, of which {free} are free, and {takes}");
        (*free < wanted).then(|| held(text, is_there)).flatten()
    });
    said.collect()
}
