//! The data plane as the configuration has it: MTUs, huge pages; and what nodes that were looked at have.

use opensdn_node_probe::{NodeFindings, Seen};
use serde_json::Value;

use super::cluster_api::allocatable;
use super::probed::{Said, each};
use super::probed_data_path::fabric;
use super::report::{NodeResult, Outcome, Verdict};
use super::world::{World, is_up};
use super::{few, roles};
use crate::snapshot::{Read, name, number};

/// The smallest in which IPv4 has room (RFC 791), and the largest of which interfaces of Ethernet are known.
const MTUS: std::ops::RangeInclusive<i64> = 576..=9978;
/// What the CNI takes where nothing is said.
const DEFAULT_MTU: i64 = 1500;
/// What VXLAN, the largest of the encapsulations, puts around a packet.
const OVERHEAD: i64 = 50;
const MIB: f64 = 1_048_576.0;

pub(super) fn no_vrouter(world: &World) -> Option<Verdict> {
    if let Some(why) = world.managers.why_unknown() {
        return Some(Verdict::uncertain(format!("Managers may not be read: {why}")));
    }
    let is_there = world.services().iter().any(|service| service.facts.kind == "Vrouter");
    (!is_there).then(|| Verdict::skipped("no Manager here has vrouters"))
}

pub(super) fn mtu(world: &World) -> Verdict {
    if let Some(verdict) = no_vrouter(world) {
        // Before an installation the interfaces can be compared all the same.
        let is_probed = world.probed.is_some() && world.managers.why_unknown().is_none();
        return if is_probed { mtu_of_nodes(world, None) } else { verdict };
    }
    let services = world.services();
    let vrouters = services.iter().filter(|service| service.facts.kind == "Vrouter");
    let stated: Vec<(String, Option<i64>)> = vrouters
        .map(|one| (one.name.to_owned(), number(one.spec, "/serviceConfiguration/cniMTU")))
        .collect();
    let wrong = stated.iter().filter(|(_, mtu)| mtu.is_some_and(|mtu| !MTUS.contains(&mtu)));
    let wrong: Vec<String> = wrong
        .map(|(name, mtu)| format!("Vrouter {name} has {}", mtu.unwrap_or_default()))
        .collect();
    if !wrong.is_empty() {
        return Verdict::fail(format!("no interface has such an MTU: {}", few(&wrong)));
    }
    let mut different: Vec<i64> =
        stated.iter().map(|(_, mtu)| mtu.unwrap_or(DEFAULT_MTU)).collect();
    different.sort_unstable();
    different.dedup();
    if different.len() > 1 {
        let all: Vec<String> = stated
            .iter()
            .map(|(name, mtu)| {
                format!("{name} {}", mtu.map_or("the default".to_owned(), |mtu| mtu.to_string()))
            })
            .collect();
        return Verdict::warn(format!("pods of one network have different MTUs: {}", few(&all)));
    }
    let mtu = stated.first().and_then(|(_, mtu)| *mtu);
    if world.probed.is_some() {
        return mtu_of_nodes(world, mtu);
    }
    Verdict::uncertain(match mtu {
        Some(mtu) => format!("pods have {mtu}, as the Vrouter says; the interfaces of nodes need at least {} (needs --probe)", mtu + OVERHEAD),
        None => "pods have the default; what the interfaces of nodes have needs --probe".to_owned(),
    })
    .fix("ip link show")
}

/// What the fabric has on each node, against what pods have, and against that of most nodes.
fn mtu_of_nodes(world: &World, of_pods: Option<i64>) -> Verdict {
    let of = |node: &Value, findings: &NodeFindings| -> Result<(String, i64), Said> {
        let one = fabric(world, node, findings)?;
        match &one.mtu {
            Seen::Is(mtu) => Ok((one.name.clone(), i64::from(*mtu))),
            Seen::Unknown(why) => {
                Err((Outcome::Uncertain, format!("the MTU of {} is not known: {why}", one.name)))
            }
        }
    };
    let mut all: Vec<i64> = world
        .probed
        .iter()
        .flatten()
        .filter_map(|(node, answer)| {
            let object = world.nodes.items().iter().find(|one| name(one) == node);
            let (_, mtu) = of(object?, &answer.as_ref().ok()?.findings).ok()?;
            Some(mtu)
        })
        .collect();
    all.sort_unstable();
    let most = all.get(all.len() / 2).copied().unwrap_or_default();
    let good = match of_pods {
        Some(mtu) => format!("the interface of the fabric carries {mtu} of pods"),
        None if all.is_empty() => "interfaces of the fabric have one MTU".to_owned(),
        None => format!("interfaces of the fabric have {most}: cniMTU {} fits", most - OVERHEAD),
    };
    let verdict = each(world, &good, |node, findings| {
        let (name, mtu) = match of(node, findings) {
            Ok(found) => found,
            Err(said) => return said,
        };
        match of_pods {
            Some(of_pods) if of_pods + OVERHEAD > mtu => (
                Outcome::Fail,
                format!(
                    "{name} has {mtu}, and pods have {of_pods}: with {OVERHEAD} around it does not fit"
                ),
            ),
            _ if mtu != most => (Outcome::Warn, format!("{name} has {mtu}, others have {most}")),
            _ => (Outcome::Ok, format!("{name} has {mtu}")),
        }
    });
    let fits = all.first().copied().unwrap_or_default() - OVERHEAD;
    verdict.fix(format!(
        "set serviceConfiguration.cniMTU of the Vrouter to {fits}: kubectl edit managers -n tf"
    ))
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
