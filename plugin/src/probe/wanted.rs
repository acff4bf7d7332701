//! What nodes are to look for: the ports, folders and networks that the Managers have, or the defaults.

use opensdn_node_probe::{FORMAT, Transport, Wanted, WantedPort};

use crate::checks::nested::{MODULES, MOST_NAMES};
use crate::checks::probed_node::SYSCTLS;
use crate::checks::probed_storage::DATA;
use crate::checks::world::World;
use crate::checks::{
    fabric, ports, probed_control, probed_dpdk, probed_members, subnets, surroundings,
};
use crate::snapshot::name;

pub(super) const MODULE: &str = "vrouter";

/// By what was read of the cluster.
pub(crate) fn wanted(world: &World) -> Wanted {
    let ports = ports::ours(world).into_keys().filter_map(|(number, protocol)| {
        let transport =
            if protocol == Transport::Udp.word() { Transport::Udp } else { Transport::Tcp };
        Some(WantedPort { number: number.try_into().ok()?, transport })
    });
    let is_nested = world.nested.is_some();
    let data = DATA.iter().map(|(_, path)| (*path).to_owned());
    let networks = subnets::networks(world).into_iter().map(|(_, text)| text);
    let networks =
        networks.chain(probed_control::data_subnets(world)).chain(fabric::targets(world));
    Wanted {
        format: FORMAT,
        ports: ports.collect(),
        directories: data.chain(probed_members::folders(world)).collect(),
        networks: networks.collect(),
        sysctls: SYSCTLS.iter().map(|name| (*name).to_owned()).collect(),
        module: MODULE.to_owned(),
        modules: if is_nested {
            MODULES.map(str::to_owned).into()
        } else {
            probed_dpdk::modules(world)
        },
        names: if is_nested {
            names_of_nodes(world)
        } else {
            probed_members::names_of_members(world)
        },
        targets: if is_nested { Vec::new() } else { surroundings::targets(world) },
        ..Wanted::default()
    }
}

fn names_of_nodes(world: &World) -> Vec<String> {
    world.nodes.items().iter().take(MOST_NAMES).map(|node| name(node).to_owned()).collect()
}
