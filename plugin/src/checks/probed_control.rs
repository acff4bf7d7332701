//! Whether nodes of Control have an address in the network that a Control names.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use opensdn_node_probe::{NodeFindings, Seen};
use serde_json::Value;

use super::probed::{Said, each, worst};
use super::report::{Outcome, Verdict};
use super::roles;
use super::subnets::Network;
use super::world::{Service, World, addresses};
use crate::snapshot::{name, text};

/// A Control with its network.
struct Named<'a> {
    service: Service<'a>,
    text: String,
    network: Network,
}

fn named(world: &World) -> Vec<Named<'_>> {
    let controls = world.services().into_iter().filter(|service| service.facts.kind == "Control");
    let named = controls.filter_map(|service| {
        let text = text(service.spec, "/serviceConfiguration/dataSubnet").to_owned();
        // What is no network the schema refuses.
        Some(Named { network: Network::of(&text)?, text, service })
    });
    named.collect()
}

/// The networks in which addresses of nodes are to be shown.
pub(crate) fn data_subnets(world: &World) -> Vec<String> {
    let mut all: Vec<String> = named(world).into_iter().map(|one| one.text).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Where a Control listens: on each of its nodes the address in its network of data, else the node's own.
pub(super) fn addresses_of(world: &World, control: &Service<'_>) -> Vec<Ipv4Addr> {
    let network = Network::of(text(control.spec, "/serviceConfiguration/dataSubnet"));
    let answers = world.probed.as_ref();
    let nodes = world.nodes.items().iter().filter(|node| roles::is_selected(control, node));
    let of = |node| {
        let own = addresses(node).filter_map(|one| one.parse::<Ipv4Addr>().ok());
        let Some(network) = network else { return own.take(1).collect::<Vec<_>>() };
        let answer = answers.and_then(|all| all.get(name(node))?.as_ref().ok());
        let local = answer.and_then(|one| one.findings.local.as_ref()?.known());
        let mut all = own.chain(local.into_iter().flatten().copied());
        all.find(|address| network.has((*address).into())).into_iter().collect()
    };
    let all: BTreeSet<Ipv4Addr> = nodes.flat_map(of).collect();
    all.into_iter().collect()
}

pub(super) fn in_data_subnet(world: &World) -> Verdict {
    if let Some(why) = world.managers.why_unknown() {
        return Verdict::uncertain(format!("Managers may not be read: {why}"));
    }
    let named = named(world);
    if named.is_empty() {
        return Verdict::skipped("no Control names a dataSubnet");
    }
    each(world, "control nodes have an address in their dataSubnet", |node, findings| {
        let own = named.iter().filter(|one| roles::is_selected(&one.service, node));
        worst(own.map(|one| in_network(one, node, findings)).collect(), "it has, or needs none")
    })
}

fn in_network(one: &Named<'_>, node: &Value, findings: &NodeFindings) -> Said {
    let Named { service, text, network } = one;
    let of_node = addresses(node).filter_map(|one| one.parse().ok());
    let mut known = of_node.chain(findings.addresses.iter().copied());
    if known.any(|address: IpAddr| network.has(address)) {
        return (Outcome::Ok, String::new());
    }
    match &findings.local {
        Some(Seen::Is(local)) if local.iter().any(|address| network.has((*address).into())) => {
            (Outcome::Ok, String::new())
        }
        Some(Seen::Is(_)) => {
            (Outcome::Fail, format!("no address in {text}, which Control {} names", service.name))
        }
        Some(Seen::Unknown(why)) => {
            (Outcome::Uncertain, format!("the addresses of the node are not known: {why}"))
        }
        None => (
            Outcome::Uncertain,
            format!(
                "whether it has an address in {text}: the image that looked is older, take that of this release with --probe-image"
            ),
        ),
    }
}
