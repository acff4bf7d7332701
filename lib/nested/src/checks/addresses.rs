//! Whether service addresses are free. Every vrouter of the cloud takes all traffic to a service address, on all ports
//! and from every network, so what has the address otherwise is not reached any more.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::World;
use crate::allocate::{Source, VROUTERS};
use crate::catalogue::Code;
use crate::finding::{Report, Severity, Subject};
use crate::input::{Permission, is_host};

const CHOOSE: &str = "choose service addresses that nothing else in the cloud has";

pub(super) fn check(world: &World, report: &mut Report) {
    enough(world, report);
    unusable(world, report);
    of_the_underlay(world, report);
    in_subnets(world, report);
    of_the_cluster(world, report);
    in_use(world, report);
}

fn addresses(world: &World) -> BTreeSet<Ipv4Addr> {
    world.rows.iter().map(|row| row.service.address).collect()
}

fn enough(world: &World, report: &mut Report) {
    let missing = &world.allocation.missing;
    if missing.is_empty() {
        return;
    }
    let available = world.allocation.addresses.len();
    let needed = available + missing.len();
    let name = |target: &Ipv4Addr| match *target {
        VROUTERS => "the vrouters".to_owned(),
        node => node.to_string(),
    };
    let without: Vec<String> = missing.iter().map(name).collect();
    report.find(
        Code::PoolTooSmall,
        Subject::Field("serviceAddresses".to_owned()),
        format!(
            "need {needed} service addresses and have {available}; without one: {}",
            without.join(", ")
        ),
        "add addresses to serviceAddresses: one for each node of the control plane, and one for the vrouters",
    );
}

fn unusable(world: &World, report: &mut Report) {
    for assigned in world.allocation.addresses.values() {
        let address = assigned.address;
        if !is_host(address) {
            report.find(
                Code::AddressUnusable,
                Subject::Address(address),
                format!("the service address {address} is no address that a host can have"),
                "choose one outside of 0.0.0.0/8 and 127.0.0.0/8, and below 224.0.0.0",
            );
        } else if assigned.from == Source::Given
            && let Some(network) = world.input.pool.edge_of(address)
        {
            report.find(
                Code::AddressUnusable,
                Subject::Address(address),
                format!("the service address {address} is the first or last one of {network}"),
                "choose one between them",
            );
        }
    }
}

fn of_the_underlay(world: &World, report: &mut Report) {
    let allowed = world.input.choices.permissions.own_fabric_address;
    let control_plane = world.input.control_plane();
    let known = report.known(&world.live.underlay, &[Code::AddressOfUnderlay]);
    for address in addresses(world) {
        let of_cloud = known.and_then(|all| all.get(&address).map(String::as_str));
        let holder = match control_plane.contains(&address) {
            true => Some("a node of the control plane"),
            false => of_cloud,
        };
        let Some(holder) = holder else { continue };
        let mut rows = world.rows.iter().filter(|row| row.service.address == address);
        let is_own = rows.all(|row| row.target.address == address);
        let about = Subject::Address(address);
        if is_own && allowed == Permission::Granted {
            report.find_as(
                Severity::Warning,
                Code::AddressOfUnderlay,
                about,
                format!(
                    "the service address {address} is the node's own, as was asked for: virtual machines reach no \
                     other port of the node"
                ),
                "make sure that no virtual machine needs another port of it",
            );
        } else {
            let message = format!(
                "the service address {address} is that of {holder}: virtual machines would not reach it any more"
            );
            report.find(Code::AddressOfUnderlay, about, message, CHOOSE);
        }
    }
}

fn in_subnets(world: &World, report: &mut Report) {
    let Some(subnets) = report.known(&world.live.subnets, &[Code::AddressInSubnet]) else { return };
    let (severity, hint) = match world.input.choices.permissions.subnet_overlap {
        Permission::Refused => (
            Severity::Error,
            "choose addresses outside of all virtual networks, or allow the overlap if the address is unused there",
        ),
        Permission::Granted => (
            Severity::Warning,
            "reserve the address in that network, so that no interface ever gets it",
        ),
    };
    for address in addresses(world) {
        let within = subnets.iter().filter(|used| used.is_of_tenants());
        let within: BTreeSet<String> = within
            .filter(|used| used.subnet.contains(address))
            .map(|used| format!("{} ({})", used.owner, used.subnet))
            .collect();
        if within.is_empty() {
            continue;
        }
        let within: Vec<String> = within.into_iter().collect();
        report.find_as(
            severity,
            Code::AddressInSubnet,
            Subject::Address(address),
            format!("the service address {address} is in the subnet of {}", within.join(", ")),
            hint,
        );
    }
}

fn of_the_cluster(world: &World, report: &mut Report) {
    let kubernetes = &world.input.choices.kubernetes;
    let nodes = report.known(&kubernetes.nodes, &[Code::AddressOfCluster]);
    for address in addresses(world) {
        let subnets = kubernetes.subnets();
        let of_subnet = subnets.iter().find(|(_, subnet)| subnet.contains(address));
        let of_subnet = of_subnet.map(|(what, subnet)| format!("in {subnet}, which is for {what}"));
        let node = nodes.into_iter().flatten().find(|(_, node)| **node == address);
        let what = node.map(|(name, _)| format!("that of node {name}")).or(of_subnet);
        if let Some(what) = what {
            report.find(
                Code::AddressOfCluster,
                Subject::Address(address),
                format!("the service address {address} is {what} of this cluster"),
                CHOOSE,
            );
        }
    }
}

fn in_use(world: &World, report: &mut Report) {
    // What is only routed to the cloud, such as a network of an office, is in no list of it.
    if !world.rows.is_empty() {
        report.unknown(
            Code::AddressInUse,
            "networks that are only routed to the cloud cannot be seen in it: make sure that none of them has a \
             service address"
                .to_owned(),
        );
    }
    let Some(used) = report.known(&world.live.addresses, &[Code::AddressInUse]) else { return };
    for address in addresses(world) {
        if let Some(holder) = used.get(&address) {
            let message = format!("the service address {address} is that of {holder}");
            report.find(Code::AddressInUse, Subject::Address(address), message, CHOOSE);
        }
    }
}
