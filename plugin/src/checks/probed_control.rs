//! Whether nodes of Control have an address in the network that a Control names.

use std::net::IpAddr;

use opensdn_node_probe::{NodeFindings, Seen};
use serde_json::Value;

use super::probed::{Said, each, worst};
use super::report::{Outcome, Verdict};
use super::roles;
use super::subnets::Network;
use super::world::{Service, World, addresses};
use crate::snapshot::text;

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
