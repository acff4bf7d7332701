//! Ports of components on nodes that were looked at, and firewalls there.

use std::collections::BTreeMap;
use std::net::IpAddr;

use opensdn_node_probe::{Holder, NodeFindings, PortFinding, Seen, WantedPort};
use serde_json::Value;

use super::ports;
use super::probed::{Said, each, worst};
use super::report::{Outcome, Verdict};
use super::world::{World, runs_on};
use crate::snapshot::{name, text, title};

pub(super) fn free(world: &World) -> Verdict {
    let ours = ports::ours(world);
    let good = format!("{} ports of components are free, or held by their own pods", ours.len());
    each(world, &good, |node, findings| {
        if findings.addresses.is_empty() {
            return (Outcome::Uncertain, "the pod was not given the node's addresses".to_owned());
        }
        let mut by_port: BTreeMap<WantedPort, Vec<&PortFinding>> = BTreeMap::new();
        for finding in &findings.ports {
            by_port.entry(finding.port).or_default().push(finding);
        }
        let of_port = |(port, found): (&WantedPort, &Vec<&PortFinding>)| {
            let kind = ours.get(&(i64::from(port.number), port.transport.word()))?;
            runs_on(world, kind, node).then(|| {
                // A holder of all addresses, or of that of the node, says more than one of 127.0.0.1.
                let is_local = |one: &&PortFinding| one.address.is_loopback();
                let of_node = found.iter().copied().find(|one| !is_local(one));
                let first = of_node.or(found.first().copied())?;
                let what = format!("port {}/{} of {kind}", port.number, port.transport.word());
                said(world, node, findings, first, &what)
            })?
        };
        worst(by_port.iter().filter_map(of_port).collect(), "all free")
    })
}

/// What is to be said of a port that is not free; nothing where it is ours.
fn said(
    world: &World,
    node: &Value,
    findings: &NodeFindings,
    found: &PortFinding,
    what: &str,
) -> Option<Said> {
    let holder = match &found.holder {
        Seen::Unknown(why) => {
            return Some((Outcome::Uncertain, format!("{what} on {}: {why}", found.address)));
        }
        Seen::Is(holder) => holder,
    };
    let (bad, place) = match found.address {
        IpAddr::V4(address) if address.is_loopback() => (Outcome::Warn, " on 127.0.0.1 alone"),
        _ => (Outcome::Fail, ""),
    };
    match holder {
        Holder::Process { program, pid, pod } => {
            let pod = pod.as_ref().map(|uid| (uid, pod_of(world, uid)));
            if pod.as_ref().is_some_and(|(_, pod)| pod.is_some_and(|pod| world.is_ours(pod))) {
                return None;
            }
            let of = match pod {
                Some((_, Some(pod))) => format!(" of pod {}", title(pod)),
                Some((uid, None)) => format!(" of the pod with UID {uid}"),
                None => String::new(),
            };
            Some((bad, format!("{what} is held{place} by {program} (process {pid}){of}")))
        }
        Holder::Kernel if findings.kernel.loaded.known() == Some(&true) => None,
        Holder::Kernel => {
            Some((bad, format!("{what} is held{place} by the kernel: a tunnel of another network")))
        }
        Holder::Hidden(why) => {
            let is_maybe_ours = world.ours_on(name(node)).is_none_or(|pods| !pods.is_empty());
            let (outcome, whose) = if is_maybe_ours {
                (Outcome::Uncertain, ", maybe by our own pod")
            } else {
                (bad, "")
            };
            Some((outcome, format!("{what} is held{place}{whose}; by whom is not seen: {why}")))
        }
    }
}

fn pod_of<'a>(world: &'a World, uid: &str) -> Option<&'a Value> {
    world.pods.items().iter().find(|pod| text(pod, "/metadata/uid") == uid)
}

pub(super) fn firewalls(world: &World) -> Verdict {
    each(world, "no packet is filtered", |_, findings| match &findings.firewall {
        Seen::Is(firewall) if !firewall.programs.is_empty() => {
            let programs = firewall.programs.join(", ");
            (
                Outcome::Warn,
                format!("{programs} is active: are the ports of components open in it?"),
            )
        }
        Seen::Is(firewall) if firewall.can_filter => (
            Outcome::Uncertain,
            "the kernel filters packets, and its rules are not read: that needs more rights"
                .to_owned(),
        ),
        Seen::Is(_) => (Outcome::Ok, "the kernel has no filter".to_owned()),
        Seen::Unknown(why) => (Outcome::Uncertain, format!("firewalls are not known: {why}")),
    })
}
