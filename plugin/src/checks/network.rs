//! Huge pages: those that Vrouters ask for, those that kubelets report, and those of nodes that were looked at.

use opensdn_node_probe::Seen;
use serde_json::Value;

use super::cluster_api::allocatable;
use super::probed::each;
use super::report::{NodeResult, Outcome, Verdict};
use super::world::{World, is_up};
use super::{few, roles};
use crate::snapshot::{Read, name, number};

const MIB: f64 = 1_048_576.0;

pub(super) fn no_vrouter(world: &World) -> Option<Verdict> {
    if let Some(why) = world.managers.why_unknown() {
        return Some(Verdict::uncertain(format!("Managers may not be read: {why}")));
    }
    let is_there = world.services().iter().any(|service| service.facts.kind == "Vrouter");
    (!is_there).then(|| Verdict::skipped("no Manager here has vrouters"))
}

pub(super) fn huge_pages(world: &World) -> Verdict {
    if let Some(verdict) = no_vrouter(world) {
        return verdict;
    }
    let nodes = match &world.nodes {
        Read::Known(nodes) => nodes,
        Read::Absent | Read::Unknown(_) => return Verdict::uncertain("nodes may not be read"),
    };
    let mut bad = Vec::new();
    let mut silent = Vec::new();
    let mut asks = false;
    for service in world.services().iter().filter(|service| service.facts.kind == "Vrouter") {
        let of = |field: &str| {
            number(service.spec, &format!("/serviceConfiguration/{field}")).unwrap_or_default()
        };
        let wanted = [
            ("hugepages-2Mi", of("hugePages2M"), 2.0),
            ("hugepages-1Gi", of("hugePages1G"), 1024.0),
        ];
        for (what, count, size) in wanted.into_iter().filter(|(_, count, _)| *count > 0) {
            asks = true;
            let selected = || nodes.iter().filter(|node| roles::is_selected(service, node));
            let down = selected().filter(|node| !is_up(node)).map(|node| name(node).to_owned());
            silent.extend(down);
            bad.extend(selected().filter(|node| is_up(node)).filter_map(|node| {
                let has = pages(node, what, size);
                let count = f64::from(i32::try_from(count).unwrap_or(i32::MAX));
                let message = format!("has {has:.0} of {count:.0} {what}: restart its kubelet if they were allocated later");
                (has < count).then(|| NodeResult { name: name(node).to_owned(), result: Outcome::Fail, message })
            }));
        }
    }
    if !asks {
        return Verdict::skipped("no Vrouter asks for huge pages");
    }
    silent.dedup();
    if bad.is_empty() && world.probed.is_some() {
        return huge_pages_of_nodes(world);
    }
    if bad.is_empty() && !silent.is_empty() {
        return Verdict::uncertain(format!(
            "not ready, so that its pages are not known: {}",
            few(&silent)
        ));
    }
    if bad.is_empty() {
        return Verdict::ok("the nodes of vrouters report what these ask for");
    }
    let texts: Vec<String> =
        bad.iter().map(|one| format!("{} {}", one.name, one.message)).collect();
    Verdict::fail(few(&texts)).on(bad)
}

/// How many the node has.
fn pages(node: &Value, what: &str, size: f64) -> f64 {
    allocatable(node, what).unwrap_or_default() / (size * MIB)
}

/// The kernel has to have what kubelets report.
fn huge_pages_of_nodes(world: &World) -> Verdict {
    each(world, "the kernel has what vrouters ask for", |node, findings| {
        let pages = match &findings.huge_pages {
            Seen::Is(pages) => pages,
            Seen::Unknown(why) => {
                return (Outcome::Uncertain, format!("huge pages are not known: {why}"));
            }
        };
        let services = world.services();
        let vrouters = services.iter().filter(|one| one.facts.kind == "Vrouter");
        for vrouter in vrouters.filter(|one| roles::is_selected(one, node)) {
            let wanted = |field: &str| {
                let count = number(vrouter.spec, &format!("/serviceConfiguration/{field}"));
                u64::try_from(count.unwrap_or_default()).unwrap_or_default()
            };
            for (field, size, has) in
                [("hugePages2M", "2 MiB", pages.of_2_mib), ("hugePages1G", "1 GiB", pages.of_1_gib)]
            {
                let wanted = wanted(field);
                if has < wanted {
                    let text = format!(
                        "its kernel has {has} huge pages of {size}, and {wanted} are asked for"
                    );
                    return (Outcome::Fail, text);
                }
            }
        }
        (Outcome::Ok, "enough".to_owned())
    })
}
