//! Whether nodes of the control plane are large enough: what the machine has, without what other pods have requested there,
//! against what is documented and what the services of the node state in sum.

use std::collections::BTreeMap;

use serde_json::Value;

use super::cluster_api::capacity;
use super::nodes::{nodes, result, rolled};
use super::report::{NodeResult, Outcome, Verdict};
use super::roles;
use super::world::{Service, World, is_of_control_plane};
use crate::snapshot::{Read, name, text};

const GIB: f64 = 1_073_741_824.0;
/// A node with all controllers, of tf-operator's readme: 4 cores, 32 GB, 64 GB. The machine's, as the kubelet takes its
/// reservations and a tenth of the disk off what it lets pods have; a little less, as a kernel and a file system take some
/// of what a machine is sold with.
const LEAST: [(&str, f64, f64, &str); 3] = [
    ("cpu", 4.0, 1.0, "cores"),
    ("memory", 29.0 * GIB, GIB, "GiB of memory"),
    ("ephemeral-storage", 56.0 * GIB, GIB, "GiB of disk"),
];
/// What is read of the requests of pods.
pub(in crate::checks) const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Memory that is set aside, and no pod without huge pages has.
const HUGE_PAGES: [&str; 2] = ["hugepages-2Mi", "hugepages-1Gi"];
/// Upstream's default, in GB (`pkg/apis/tf/v1alpha1/cassandra_types.go`).
const MINIMUM_DISK: f64 = 4.0;
const GB: f64 = 1e9;
/// Kubernetes' own pods: they ran on the machine that is documented, too.
const SYSTEM: &str = "system-";

pub(super) fn sizes(world: &World) -> Verdict {
    let nodes = match nodes(world) {
        Ok(nodes) => nodes,
        Err(verdict) => return verdict,
    };
    let services = world.services();
    let of_controllers: Vec<&Service<'_>> =
        services.iter().filter(|service| service.facts.kind != "Vrouter").collect();
    let here = |node: &Value| -> Vec<&Service<'_>> {
        let here = of_controllers.iter().filter(|service| roles::is_selected(service, node));
        here.copied().collect()
    };
    let is_controller = |node: &&Value| match of_controllers.is_empty() {
        true => is_of_control_plane(node),
        false => !here(node).is_empty(),
    };
    let controllers: Vec<&Value> = nodes.iter().filter(is_controller).collect();
    if controllers.is_empty() {
        return Verdict::uncertain(
            "no node is labelled as one of the control plane, or selected by a Manager: which are meant is not known",
        );
    }
    let requested = requested(world);
    let none = BTreeMap::new();
    let of_node = |node: &&Value| {
        let requested = requested.as_ref().map(|all| all.get(name(node)).unwrap_or(&none));
        of_node(node, &here(node), requested)
    };
    let bad = controllers.iter().filter_map(of_node).collect();
    rolled(controllers.len(), bad, "at least 4 cores, 32 GB of memory, 64 GB of disk")
}

/// By node and resource, what pods of others request; nothing where pods may not be read.
fn requested(world: &World) -> Option<BTreeMap<String, BTreeMap<&'static str, f64>>> {
    if matches!(world.pods, Read::Unknown(_)) {
        return None;
    }
    let mut all: BTreeMap<String, BTreeMap<&'static str, f64>> = BTreeMap::new();
    let others = world.pods.items().iter().filter(|pod| {
        let is_over = ["Succeeded", "Failed"].contains(&text(pod, "/status/phase"));
        let is_system = text(pod, "/spec/priorityClassName").starts_with(SYSTEM);
        !world.is_ours(pod) && !is_over && !is_system
    });
    for pod in others {
        let of_node = all.entry(text(pod, "/spec/nodeName").to_owned()).or_default();
        for what in RESOURCES {
            let asks =
                pod.pointer("/requests").and_then(|all| all.get(what)).and_then(Value::as_f64);
            *of_node.entry(what).or_default() += asks.unwrap_or_default();
        }
    }
    Some(all)
}

fn of_node(
    node: &Value,
    services: &[&Service<'_>],
    requested: Option<&BTreeMap<&'static str, f64>>,
) -> Option<NodeResult> {
    let (mut small, mut unknown) = (Vec::new(), Vec::new());
    for (what, least, unit, word) in LEAST {
        let Some(has) = capacity(node, what) else {
            unknown.push(word);
            continue;
        };
        let pods = requested.and_then(|all| all.get(what)).copied().unwrap_or_default();
        let left = has - pods - set_aside(node, what);
        let shown = |amount: f64| format!("{:.1}", amount / unit);
        if left < least {
            small.push(match left < has {
                true => format!(
                    "only {} of {} {word} left beside requests of others",
                    shown(left.max(0.0)),
                    shown(has)
                ),
                false => format!("only {} {word}", shown(has)),
            });
        } else if let Some((needs, of)) = stated(services, what).filter(|(needs, _)| left < *needs)
        {
            small.push(format!("{} {word} left, and {of} {} in sum", shown(left), shown(needs)));
        }
    }
    if !small.is_empty() {
        return Some(result(node, Outcome::Warn, small.join(", ")));
    }
    if !unknown.is_empty() {
        let message = format!("does not report its {}", unknown.join(", "));
        return Some(result(node, Outcome::Uncertain, message));
    }
    let message = "what its pods request is not known: pods may not be read";
    requested.is_none().then(|| result(node, Outcome::Uncertain, message))
}

fn set_aside(node: &Value, what: &str) -> f64 {
    let pages = HUGE_PAGES.iter().filter_map(|pages| capacity(node, pages));
    if what == "memory" { pages.sum() } else { 0.0 }
}

/// What the services of a node state of it in sum, and what that is.
fn stated(services: &[&Service<'_>], what: &str) -> Option<(f64, &'static str)> {
    let databases = services.iter().filter(|service| service.facts.kind == "Cassandra");
    let fields = |field: &str| format!("/serviceConfiguration/{field}");
    match what {
        "memory" => {
            let heaps = databases.filter_map(|one| heap(text(one.spec, &fields("maxHeapSize"))));
            Some((heaps.sum(), "heaps of Cassandra (maxHeapSize) have"))
        }
        "ephemeral-storage" => {
            let pointer = fields("minimumDiskGB");
            let stated = |one: &&&Service<'_>| one.spec.pointer(&pointer).and_then(Value::as_f64);
            let disks: f64 = databases.map(|one| stated(&one).unwrap_or(MINIMUM_DISK)).sum();
            Some((disks * GB, "Cassandra is to have (minimumDiskGB)"))
        }
        _ => None,
    }
}

/// Bytes of a size as the JVM takes it: `16g`, `4096M`.
fn heap(text: &str) -> Option<f64> {
    const UNITS: [(char, f64); 4] =
        [('k', 1024.0), ('m', 1_048_576.0), ('g', GIB), ('t', 1024.0 * GIB)];
    let text = text.trim().to_lowercase();
    let unit = UNITS.iter().find(|(letter, _)| text.ends_with(*letter));
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    Some(digits.parse::<f64>().ok()? * unit.map_or(1.0, |(_, factor)| *factor))
}

#[cfg(test)]
mod tests {
    use super::{GIB, heap};

    #[test]
    fn sizes_of_heaps_are_as_the_jvm_takes_them() {
        assert_eq!((heap("16g"), heap("1024M")), (Some(16.0 * GIB), Some(GIB)));
        assert_eq!((heap("1024"), heap(""), heap("many")), (Some(1024.0), None, None));
    }
}
