//! Fabric SNAT of the network of the nodes, and the pools without which agents drop its flows.

use super::World;
use crate::catalogue::Code;
use crate::finding::{Report, Subject};
use crate::live::NodeNetwork;
use crate::plan::missing_pools;

pub(super) fn check(world: &World, report: &mut Report) {
    let is_asked = !world.input.is_link_local();
    let codes: &[Code] = match is_asked {
        true => &[Code::SnatWillBeOn, Code::SnatIsolates],
        false => &[Code::SnatUnasked],
    };
    // A network that is missing is an error of its own.
    if let Some(Some(network)) = report.known(&world.live.network, codes) {
        match (is_asked, network.fabric_snat.unwrap_or_default()) {
            (true, false) => turned_on(world, network, report),
            (false, true) => unasked(world, report),
            (true, true) | (false, false) => {}
        }
    }
    if is_asked {
        pools(world, report);
    }
    pools_of_others(world, report);
}

fn about(world: &World) -> Subject {
    Subject::Network(world.input.network.joined())
}

fn turned_on(world: &World, network: &NodeNetwork, report: &mut Report) {
    report.find(
        Code::SnatWillBeOn,
        about(world),
        "fabric_snat is off and will be turned on".to_owned(),
        "nothing has to be done; removing the cluster restores it",
    );
    let parts =
        [("logical routers", &network.logical_routers), ("route targets", &network.route_targets)];
    let at_risk: Vec<String> = parts
        .iter()
        .filter(|(_, all)| !all.is_empty())
        .map(|(what, all)| format!("{what} {}", all.join(", ")))
        .collect();
    if network.other_interfaces.is_none() {
        report.known(&world.input.choices.kubernetes.nodes, &[Code::SnatIsolates]);
    }
    let others = network.other_interfaces.unwrap_or_default();
    if at_risk.is_empty() && others == 0 {
        return;
    }
    let mut message =
        "with fabric_snat the network talks to the fabric, and to other networks only where a policy allows it"
            .to_owned();
    if !at_risk.is_empty() {
        message.push_str(&format!("; at risk are {}", at_risk.join("; ")));
    }
    if others > 0 {
        message.push_str(&format!("; {others} other interfaces are in the network"));
    }
    if !network.policies.is_empty() {
        message.push_str(&format!(
            "; what these policies allow stays: {}",
            network.policies.join(", ")
        ));
    }
    report.find(
        Code::SnatIsolates,
        about(world),
        message,
        "attach a policy that allows the traffic that is needed before, or move the nodes to a network of their own",
    );
}

fn unasked(world: &World, report: &mut Report) {
    report.find(
        Code::SnatUnasked,
        about(world),
        "fabric_snat is on, although connectivity is LinkLocal".to_owned(),
        "use connectivity FabricSNAT, which needs one link-local service only, or turn it off if no workload needs it",
    );
}

/// It writes its own at each start, in both options.
fn pools_of_others(world: &World, report: &mut Report) {
    let Some(true) = report.known(&world.live.pools_of_others, &[Code::PoolsOverwritten]) else {
        return;
    };
    report.find(
        Code::PoolsOverwritten,
        Subject::Cloud,
        "port_translation_pools are not those of kube-manager, which replaces them by TCP 56000-57023 and UDP \
         57024-58047 at each start"
            .to_owned(),
        "who needs other ports has to know it: the pools are of the whole cloud",
    );
}

fn pools(world: &World, report: &mut Report) {
    let Some(there) = report.known(&world.live.pools, &[Code::PoolsWillBeMade]) else { return };
    let missing = missing_pools(there);
    if missing.is_empty() {
        return;
    }
    let pool = |pool: &crate::plan::PortPool| {
        format!("{:?} {}-{}", pool.protocol, pool.first, pool.last).to_uppercase()
    };
    let missing: Vec<String> = missing.iter().map(pool).collect();
    report.find(
        Code::PoolsWillBeMade,
        Subject::Cloud,
        format!("port_translation_pools lack {}, which are added before SNAT", missing.join(" and ")),
        "nothing has to be done; every compute node opens these ports, and kube-manager sets the same at each start",
    );
}
