//! Which interfaces of a node are the fabric's: those that the Vrouter names, else the one by which the node reaches the
//! gateway of vrouters, else its control nodes, as the images find it (tf-container-builder,
//! `containers/base/contrail-functions.sh`, `get_vrouter_physical_iface`).

use std::net::{IpAddr, Ipv4Addr};

use opensdn_node_probe::{Interface, NodeFindings, Route, Seen};
use serde_json::Value;

use super::probed::Said;
use super::probed_control::addresses_of;
use super::report::Outcome;
use super::roles;
use super::subnets::Network;
use super::world::{Service, World};
use crate::snapshot::text;

/// The vrouter's interface on the node, which takes the address of the fabric's over.
pub(super) const VHOST: &str = "vhost0";
const VROUTER: &str = "Vrouter";

/// The first of [`legs`].
pub(super) fn fabric<'a>(
    world: &World,
    node: &Value,
    findings: &'a NodeFindings,
) -> Result<&'a Interface, Said> {
    let legs = legs(world, node, findings)?;
    let unknown = || uncertain("which interface is the fabric's is not known".to_owned());
    legs.first().copied().ok_or_else(unknown)
}

/// The interfaces of the fabric, of which L3MH has several. On a node that a vrouter runs on the first is vhost0, and the
/// named ones follow as far as DPDK has left them.
pub(super) fn legs<'a>(
    world: &World,
    node: &Value,
    findings: &'a NodeFindings,
) -> Result<Vec<&'a Interface>, Said> {
    let interfaces = match &findings.interfaces {
        Seen::Is(interfaces) => &interfaces.shown,
        Seen::Unknown(why) => return Err(uncertain(format!("interfaces are not known: {why}"))),
    };
    let find = |name: &str| interfaces.iter().find(|one| one.name == name);
    let services = world.services();
    let mut vrouters = services.iter().filter(|one| one.facts.kind == VROUTER);
    let vrouter = vrouters.find(|one| roles::is_selected(one, node));
    let of = |field: &str| vrouter.map_or("", |one| setting(one, field));
    let named = of("physicalInterface").split(',').map(str::trim).filter(|name| !name.is_empty());
    if let Some(vhost) = find(VHOST).filter(|vhost| has_address(findings, vhost)) {
        return Ok([vhost].into_iter().chain(named.filter_map(find)).collect());
    }
    let is_there = |named: &str| {
        find(named).ok_or_else(|| {
            let text = format!("the Vrouter names {named}, and the node has no such interface");
            (Outcome::Fail, text)
        })
    };
    let named = named.map(is_there).collect::<Result<Vec<_>, _>>()?;
    if !named.is_empty() {
        return Ok(named);
    }
    if !of("l3mhCidr").is_empty() {
        let text = "which interfaces L3MH takes is not known: physicalInterface names none, and routes on the node decide";
        return Err(uncertain(text.to_owned()));
    }
    let name = found(world, vrouter, findings).map_err(uncertain)?;
    let unshown = || uncertain(format!("the fabric's interface is {name}, which is not shown"));
    Ok(vec![find(name).ok_or_else(unshown)?])
}

fn uncertain(text: String) -> Said {
    (Outcome::Uncertain, text)
}

fn setting<'a>(service: &Service<'a>, field: &str) -> &'a str {
    text(service.spec, &format!("/serviceConfiguration/{field}")).trim()
}

/// Whether it has an address; of those of other networks than the node's an older answer shows nothing.
fn has_address(findings: &NodeFindings, one: &Interface) -> bool {
    let mut routes = findings.routes.known().into_iter().flatten();
    one.networks.as_ref().is_some_and(|networks| !networks.is_empty())
        || routes.any(|route| route.interface == one.name && route.gateway.is_none())
}

/// The interface that no field names.
fn found<'a>(
    world: &World,
    vrouter: Option<&Service<'_>>,
    findings: &'a NodeFindings,
) -> Result<&'a str, String> {
    let routes = match &findings.routes {
        Seen::Is(routes) => routes,
        Seen::Unknown(why) => return Err(format!("routes are not known: {why}")),
    };
    let own = own(findings);
    let Targets { addresses, what } = vrouter.map(|one| reached(world, one)).unwrap_or_default();
    let Some((first, others)) = addresses.split_first() else {
        return direct(routes, &own).ok_or_else(|| {
            "no direct route has the node's address: which interface is the fabric's is not known"
                .to_owned()
        });
    };
    let way = |address: Ipv4Addr| {
        // What is the node's own is reached by no route.
        let is_own = own.contains(&address);
        let name = if is_own { direct(routes, &[address]) } else { towards(routes, address) };
        name.ok_or_else(|| {
            format!("no route leads to {address}, {what}: the fabric's interface is not known")
        })
    };
    let name = way(*first)?;
    let others = others.iter().map(|address| Ok((address, way(*address)?)));
    let others = others.collect::<Result<Vec<_>, String>>()?;
    match others.iter().find(|(_, other)| *other != name) {
        None => Ok(name),
        Some((address, other)) => Err(format!(
            "which interface is the fabric's is not known: {first} is reached by {name}, {address} by {other}, and both are {what}; \
             physicalInterface of the Vrouter decides"
        )),
    }
}

/// What the images ask the kernel for the way to.
#[derive(Default)]
struct Targets {
    addresses: Vec<Ipv4Addr>,
    what: &'static str,
}

fn reached(world: &World, vrouter: &Service<'_>) -> Targets {
    let gateway = setting(vrouter, "vrouterGateway");
    if !gateway.is_empty() {
        let addresses = gateway.parse().into_iter().collect();
        return Targets { addresses, what: "the vrouterGateway" };
    }
    let name = setting(vrouter, "controlInstance");
    let services = world.services();
    let mut controls = services
        .iter()
        .filter(|one| one.facts.kind == "Control" && std::ptr::eq(one.manager, vrouter.manager));
    let control = controls.find(|one| name.is_empty() || one.name == name);
    let mut addresses = control.map(|one| addresses_of(world, one)).unwrap_or_default();
    // The operator gives the images those of its network alone, if there are any.
    if let Some(network) = Network::of(setting(vrouter, "dataSubnet"))
        && addresses.iter().any(|address| network.has((*address).into()))
    {
        addresses.retain(|address| network.has((*address).into()));
    }
    Targets { addresses, what: "a control node" }
}

/// What is to be reached from nodes, as networks of one address: a look at a node shows the routes to these alone.
pub(crate) fn targets(world: &World) -> Vec<String> {
    let services = world.services();
    let vrouters = services.iter().filter(|one| one.facts.kind == VROUTER);
    let all = vrouters.flat_map(|one| reached(world, one).addresses);
    let all: std::collections::BTreeSet<Ipv4Addr> = all.collect();
    all.into_iter().map(|address| format!("{address}/32")).collect()
}

/// The node's own addresses, as far as they are known.
fn own(findings: &NodeFindings) -> Vec<Ipv4Addr> {
    let local = findings.local.iter().filter_map(Seen::known).flatten().copied();
    let of_node = findings.addresses.iter().filter_map(|address| match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    });
    of_node.chain(local).collect()
}

/// The interface that has this address of the node, as routes show it.
pub(super) fn interface_of(findings: &NodeFindings, address: IpAddr) -> Option<&str> {
    match address {
        IpAddr::V4(address) => direct(findings.routes.known()?, &[address]),
        IpAddr::V6(_) => None,
    }
}

/// The interface in whose network one of these addresses is: the most specific.
fn direct<'a>(routes: &'a [Route], own: &[Ipv4Addr]) -> Option<&'a str> {
    let direct = routes.iter().filter(|route| route.gateway.is_none());
    let with_own = direct.filter_map(|route| {
        let network = Network::of(&route.destination)?;
        let has = own.iter().any(|address| network.has((*address).into()));
        (has && network.prefix() > 0).then_some((network.prefix(), route.interface.as_str()))
    });
    with_own.max_by_key(|(prefix, _)| *prefix).map(|(_, name)| name)
}

/// The interface by which another address is reached: the most specific route, else a default one.
fn towards(routes: &[Route], address: Ipv4Addr) -> Option<&str> {
    let leading = routes.iter().filter_map(|route| {
        let network = Network::of(&route.destination)?;
        network.has(address.into()).then_some((network.prefix(), route.interface.as_str()))
    });
    // Of two that are alike the table has the one of the smaller metric first.
    leading.rev().max_by_key(|(prefix, _)| *prefix).map(|(_, name)| name)
}
