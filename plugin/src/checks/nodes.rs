//! Checks of nodes: health, addresses, clocks. Their software and sizes have files of their own.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

use super::report::{NodeResult, Outcome, Verdict};
use super::world::{World, addresses, is_up};
use super::{few, number_of, roles};
use crate::snapshot::{Read, condition_is, label, name, number, text, time, waits_for_network};

/// A Lease is renewed every ten seconds, and takes its way.
const MOST_SECONDS: i64 = 15;
pub(super) fn nodes(world: &World) -> Result<&[Value], Verdict> {
    match &world.nodes {
        Read::Known(nodes) if nodes.is_empty() => Err(Verdict::fail("the cluster has no node")),
        Read::Known(nodes) => Ok(nodes),
        Read::Absent => Err(Verdict::uncertain("the API server has no nodes")),
        Read::Unknown(why) => Err(Verdict::uncertain(format!("nodes may not be read: {why}"))),
    }
}

pub(super) fn result(node: &Value, result: Outcome, message: impl Into<String>) -> NodeResult {
    NodeResult { name: name(node).to_owned(), result, message: message.into() }
}

/// A check with a result for each bad node.
pub(super) fn rolled(all: usize, bad: Vec<NodeResult>, good: &str) -> Verdict {
    let outcome = Outcome::worst(bad.iter().map(|one| one.result));
    if outcome == Outcome::Ok {
        return Verdict::ok(format!("{}: {good}", number_of(all, "node"))).on(bad);
    }
    let texts: Vec<String> =
        bad.iter().map(|one| format!("{}: {}", one.name, one.message)).collect();
    let message = format!("{} of {}: {}", bad.len(), number_of(all, "node"), few(&texts));
    Verdict::new(outcome, message).on(bad)
}

pub(super) fn health(world: &World) -> Verdict {
    let nodes = match nodes(world) {
        Ok(nodes) => nodes,
        Err(verdict) => return verdict,
    };
    let chosen = roles::chosen(world, nodes);
    let of_node = |node: &Value| {
        let is_chosen = chosen.contains(name(node));
        if !is_up(node) {
            // Where nothing of ours is to run it does no harm.
            let outcome = if is_chosen { Outcome::Fail } else { Outcome::Warn };
            return Some(result(node, outcome, "not ready"));
        }
        // Not NetworkUnavailable: a network that is not there yet is what OpenSDN is installed for.
        let pressures = ["MemoryPressure", "DiskPressure", "PIDPressure"];
        if let Some(one) = pressures.iter().find(|one| condition_is(node, one, "True")) {
            return Some(result(node, Outcome::Warn, *one));
        }
        if node.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true) {
            return Some(result(node, Outcome::Warn, "cordoned"));
        }
        let arch = text(node, "/status/nodeInfo/architecture");
        (is_chosen && arch != "amd64").then(|| {
            let what = if arch.is_empty() { "no architecture is reported" } else { arch };
            result(
                node,
                Outcome::Uncertain,
                format!("{what}: whether the images have it is not known"),
            )
        })
    };
    let waiting = nodes.iter().filter(|node| waits_for_network(node)).count();
    let good = match waiting {
        0 => "ready, amd64".to_owned(),
        waiting => format!("amd64, ready or ({waiting}) waiting for a network of pods only"),
    };
    rolled(nodes.len(), nodes.iter().filter_map(of_node).collect(), &good)
}

pub(super) fn addresses_of(node: &Value) -> Vec<IpAddr> {
    addresses(node).filter_map(|address| address.parse().ok()).collect()
}

pub(super) fn addresses_verdict(world: &World) -> Verdict {
    let nodes = match nodes(world) {
        Ok(nodes) => nodes,
        Err(verdict) => return verdict,
    };
    let mut owners: BTreeMap<IpAddr, Vec<String>> = BTreeMap::new();
    let mut hosts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for node in nodes {
        // The operator takes the first; others are often the same on all nodes, as that of a container engine's bridge.
        if let Some(address) = addresses_of(node).first() {
            owners.entry(*address).or_default().push(name(node).to_owned());
        }
        if let Some(host) = label(node, "kubernetes.io/hostname") {
            hosts.entry(host).or_default().push(name(node).to_owned());
        }
    }
    let of_node = |node: &Value| {
        let own = addresses_of(node);
        let has = |address: &IpAddr| owners.get(address).is_some_and(|names| names.len() > 1);
        if let Some(address) = own.first().filter(|address| has(address)) {
            return Some(result(node, Outcome::Fail, format!("another node has {address} too")));
        }
        if own.first().is_some_and(IpAddr::is_ipv6) && own.iter().any(IpAddr::is_ipv4) {
            let message = "its first InternalIP, which components take, is of IPv6";
            return Some(result(node, Outcome::Fail, message));
        }
        if !own.iter().any(IpAddr::is_ipv4) {
            let message =
                if own.is_empty() { "has no InternalIP" } else { "has no InternalIP of IPv4" };
            return Some(result(node, Outcome::Fail, message));
        }
        let host = label(node, "kubernetes.io/hostname")?;
        let is_shared = hosts.get(host).is_some_and(|names| names.len() > 1);
        is_shared.then(|| result(node, Outcome::Fail, format!("another node is called {host} too")))
    };
    rolled(
        nodes.len(),
        nodes.iter().filter_map(of_node).collect(),
        "each with an address and a name of its own",
    )
}

pub(super) fn clocks(world: &World) -> Verdict {
    let Some(date) = world.date else {
        return Verdict::uncertain("the API server does not say what time it is");
    };
    let here = world.now.map(|now| now.as_second() - date.as_second()).unwrap_or_default();
    if here.abs() > MOST_SECONDS {
        let side = if here > 0 { "ahead of" } else { "behind" };
        return Verdict::warn(format!(
            "your clock is {} s {side} that of the API server",
            here.abs()
        ));
    }
    let leases = match &world.leases {
        Read::Known(leases) => leases,
        Read::Absent => {
            return Verdict::uncertain("nodes have no Leases by which their clocks could be known");
        }
        Read::Unknown(why) => {
            return Verdict::uncertain(format!("the Leases of nodes may not be read: {why}"));
        }
    };
    let ready = world.nodes.items().iter().filter(|node| is_up(node));
    let mut all = 0;
    let mut bad = Vec::new();
    for node in ready {
        let lease = leases.iter().find(|lease| name(lease) == name(node));
        let Some(renewed) = lease.and_then(|lease| time(text(lease, "/spec/renewTime"))) else {
            continue;
        };
        all += 1;
        let late = date.as_second() - renewed.as_second();
        // Behind by up to one interval it is because the Lease was not renewed since: a quarter of how long it is valid.
        let valid = lease.and_then(|lease| number(lease, "/spec/leaseDurationSeconds"));
        let interval = valid.map_or(MOST_SECONDS, |valid| (valid / 4).max(MOST_SECONDS));
        if !(-MOST_SECONDS..=MOST_SECONDS + interval).contains(&late) {
            let side = if late > 0 { "behind" } else { "ahead" };
            let message = format!("its clock, or its heartbeat, is {} s {side}", late.abs());
            bad.push(result(node, Outcome::Warn, message));
        }
    }
    if all == 0 {
        return Verdict::uncertain("no ready node has a Lease by which its clock could be known");
    }
    rolled(all, bad, "clocks within 15 s, as far as Leases show")
}
