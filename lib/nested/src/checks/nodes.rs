//! The nodes of the cluster as the cloud knows them. kube-manager leaves out the pods of a node whose address it does not
//! find in the one network that it is given, and says so only in its debug log.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::World;
use crate::catalogue::Code;
use crate::finding::{Report, Subject};
use crate::live::Interface;

pub(super) fn check(world: &World, report: &mut Report) {
    let codes = [Code::NodeOutside, Code::VirtualRouterMissing, Code::SeveralNetworks];
    let nodes = report.known(&world.input.choices.kubernetes.nodes, &codes);
    let interfaces = report.known(&world.live.interfaces, &codes);
    let (Some(nodes), Some(interfaces)) = (nodes, interfaces) else { return };
    let routers = report.known(&world.live.virtual_routers, &[Code::VirtualRouterMissing]);
    let network = world.input.network.joined();
    for (name, address) in nodes {
        let all = interfaces.get(address).map(Vec::as_slice).unwrap_or_default();
        match all.iter().find(|interface| interface.network == network) {
            Some(interface) => bound(name, interface, routers, report),
            None => outside(name, *address, all, &network, report),
        }
    }
    several(nodes, interfaces, &network, report);
}

fn outside(name: &str, address: Ipv4Addr, found: &[Interface], network: &str, report: &mut Report) {
    let others: Vec<&str> = found.iter().map(|interface| interface.network.as_str()).collect();
    let others = match others.is_empty() {
        true => "no interface of the cloud has it".to_owned(),
        false => format!("it is one of {}", others.join(", ")),
    };
    report.find(
        Code::NodeOutside,
        Subject::Node(name.to_owned()),
        format!("its InternalIP {address} is no address of {network}: {others}, and its pods get no network"),
        "name the network of the nodes in clusterNetwork, or give kubelet the address in it by --node-ip",
    );
}

fn bound(
    name: &str,
    interface: &Interface,
    routers: Option<&BTreeSet<String>>,
    report: &mut Report,
) {
    let about = || Subject::Node(name.to_owned());
    let Some(host) = interface.host_id.as_deref().filter(|host| !host.is_empty()) else {
        report.find(
            Code::NodeOutside,
            about(),
            format!(
                "its interface {} is bound to no compute node: it has no host_id",
                interface.id
            ),
            "start the virtual machine, and look at the binding of its port in OpenStack",
        );
        return;
    };
    if routers.is_some_and(|routers| !has_router(host, routers)) {
        report.find(
            Code::VirtualRouterMissing,
            about(),
            format!("there is no virtual-router with the name of its compute node {host}: pods get no addresses"),
            "provision the compute node under the name that Nova has for it",
        );
    }
}

/// As kube-manager compares them: equal, or one of them equal to the other up to its first dot.
fn has_router(host: &str, routers: &BTreeSet<String>) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    routers.contains(host)
        || routers.contains(&short(host))
        || routers.iter().any(|router| short(router) == host)
}

/// Where only some nodes are elsewhere, naming another network would lose the rest.
fn several(
    nodes: &BTreeMap<String, Ipv4Addr>,
    interfaces: &BTreeMap<Ipv4Addr, Vec<Interface>>,
    network: &str,
    report: &mut Report,
) {
    let mut by_network: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, address) in nodes {
        let all = interfaces.get(address).map(Vec::as_slice).unwrap_or_default();
        let chosen = all.iter().find(|interface| interface.network == network).or(all.first());
        if let Some(interface) = chosen {
            by_network.entry(&interface.network).or_default().push(name);
        }
    }
    if by_network.len() < 2 {
        return;
    }
    let parts =
        by_network.iter().map(|(network, names)| format!("{network}: {}", names.join(", ")));
    report.find(
        Code::SeveralNetworks,
        Subject::Network(network.to_owned()),
        format!(
            "the nodes are in {} networks, and kube-manager takes one: {}",
            by_network.len(),
            parts.collect::<Vec<_>>().join("; ")
        ),
        "have all nodes, the control plane's too, in one virtual network",
    );
}
