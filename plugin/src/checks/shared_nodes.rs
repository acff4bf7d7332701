//! Nodes on which services take from each other what a node has only once: its data plane, and its ports. Admission
//! compares selectors; which nodes have the labels, and which taints they have, a living cluster knows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::nodes::{nodes, result, rolled};
use super::patch::set_field;
use super::report::{NodeResult, Outcome, Verdict};
use super::world::{Service, World};
use super::{few, ports, roles};
use crate::snapshot::title;

const DATA_PLANE: &str = "Vrouter";

/// Two groups of vrouters on one node, of one Manager or of two.
pub(super) fn data_planes(world: &World) -> Verdict {
    judge(world, "at most one group of vrouters on each", |services, node| {
        let vrouters: Vec<_> = services.iter().filter(|one| one.facts.kind == DATA_PLANE).collect();
        let groups: Vec<_> = vrouters.iter().map(|one| subject(one)).collect();
        let last = vrouters.last().filter(|_| groups.len() > 1)?;
        Some((result(node, Outcome::Fail, groups.join(" and ")), other_nodes(last)))
    })
}

/// Two services on one node that want one port. Of two groups of vrouters it is said above.
pub(super) fn ports_of_services(world: &World) -> Verdict {
    judge(world, "no two services want one port", |services, node| {
        let clashes = clashes(services);
        let (_, other) = clashes.keys().next()?;
        let fix = other_nodes(services.get(*other)?);
        let texts: Vec<String> = clashes
            .iter()
            .map(|((one, other), ports)| {
                format!(
                    "{} and {} want {}",
                    name_of(services, *one),
                    name_of(services, *other),
                    few(ports)
                )
            })
            .collect();
        Some((result(node, Outcome::Fail, texts.join("; ")), fix))
    })
}

/// The command that has the service run where another label is.
fn other_nodes(service: &Service<'_>) -> String {
    let way = ["spec", "commonConfiguration", "nodeSelector"];
    // Of a type that the schema refuses: run as it is the command changes nothing.
    set_field(service, &way, json!(["LABEL", "VALUE"]))
}

fn name_of(services: &[&Service<'_>], number: usize) -> String {
    services.get(number).map(subject).unwrap_or_default()
}

/// `Control control1 of tf/cluster1`.
fn subject(service: &&Service<'_>) -> String {
    format!("{} {} of {}", service.facts.kind, service.name, title(service.manager))
}

/// Pairs of services, by their places, with the ports that both want.
fn clashes(services: &[&Service<'_>]) -> BTreeMap<(usize, usize), Vec<String>> {
    let mut owners: BTreeMap<(i64, &str), Vec<usize>> = BTreeMap::new();
    for (number, service) in services.iter().enumerate() {
        for port in ports::of_service(service.facts, service.spec) {
            let of_port = owners.entry((port.number, port.protocol)).or_default();
            // One service that names a port twice is judged where it is written.
            if of_port.last() != Some(&number) {
                of_port.push(number);
            }
        }
    }
    let is_vrouter =
        |number: usize| services.get(number).is_some_and(|one| one.facts.kind == DATA_PLANE);
    let mut pairs: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
    for ((port, protocol), wanting) in &owners {
        let Some((first, others)) = wanting.split_first() else { continue };
        for other in others.iter().filter(|other| !(is_vrouter(*first) && is_vrouter(**other))) {
            pairs.entry((*first, *other)).or_default().push(format!("{port}/{protocol}"));
        }
    }
    pairs
}

fn judge(
    world: &World,
    good: &str,
    of_node: impl Fn(&[&Service<'_>], &Value) -> Option<(NodeResult, String)>,
) -> Verdict {
    if let Some(why) = world.managers.why_unknown() {
        let message = format!("Managers, which say where components run, may not be read: {why}");
        return Verdict::uncertain(message)
            .fix("kubectl auth can-i list managers.tf.tungsten.io -A");
    }
    // That there is none is said by the checks of nodes.
    if world.nodes.known().is_some_and(Vec::is_empty) {
        return Verdict::skipped("the cluster has no node, so that nothing is shared");
    }
    let nodes = match nodes(world) {
        Ok(nodes) => nodes,
        Err(verdict) => return verdict,
    };
    let services = world.services();
    let bad = nodes.iter().filter_map(|node| {
        let runs = |service: &&Service<'_>| roles::may_run(service, node);
        of_node(&services.iter().filter(runs).collect::<Vec<_>>(), node)
    });
    let (bad, fixes): (Vec<_>, Vec<_>) = bad.unzip();
    let verdict = rolled(nodes.len(), bad, good);
    match fixes.into_iter().next() {
        Some(fix) => verdict.fix(fix),
        None => verdict,
    }
}
