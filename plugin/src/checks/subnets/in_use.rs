//! Addresses that something has already: pods, Services, docker0, and those by which workloads reach what is outside of
//! their network. Which of them have to be within a planned network, and which apart from all.

use std::net::IpAddr;

use opensdn_node_probe::Seen;
use serde_json::Value;

use super::{Network, Plan, Planned, Wrong, apart, planned, uses_fabric};
use crate::checks::cni;
use crate::checks::world::World;
use crate::snapshot::{list, name, namespace, text, title};

/// The bridge of Docker, which is there where Docker runs.
const DOCKER: &str = "docker0";
/// By which kube-manager gives a pod, or all of a namespace, a network of its own
/// (`kube_manager/common/kube_config_db.py:33`).
pub(in crate::checks) const OWN_NETWORK: &str = "opencontrail.org/network";
/// The address that leads a nested cluster to the vrouters below it, as the CNI agent is given it (upstream's spelling).
const VIP: &str = "KUBERNESTES_NESTED_VROUTER_VIP";

/// A pod with its address, where it has one of the network of pods.
struct Addressed<'a> {
    pod: &'a Value,
    address: IpAddr,
}

fn address(text: &str) -> Option<IpAddr> {
    // Of OpenSDN only IPv4 is served.
    text.parse().ok().filter(IpAddr::is_ipv4)
}

/// Pods that have an address of a network of pods.
fn addressed(world: &World) -> Vec<Addressed<'_>> {
    let own: Vec<&str> = world
        .namespaces
        .items()
        .iter()
        .filter(|one| {
            one.pointer("/metadata/annotations").is_some_and(|all| all.get(OWN_NETWORK).is_some())
        })
        .map(name)
        .collect();
    let is_of_network = |pod: &&Value| {
        let is = |pointer: &str| pod.pointer(pointer).and_then(Value::as_bool) == Some(true);
        let is_over = ["Succeeded", "Failed"].contains(&text(pod, "/status/phase"));
        !is("/spec/hostNetwork")
            && !is("/hasOwnNetwork")
            && !is_over
            && !own.contains(&namespace(pod))
    };
    let pods = world.pods.items().iter().filter(is_of_network);
    pods.filter_map(|pod| Some(Addressed { pod, address: address(text(pod, "/status/podIP"))? }))
        .collect()
}

fn has(networks: &[Planned], address: IpAddr) -> bool {
    networks.iter().any(|one| one.network.has(address))
}

fn shown(networks: &[Planned]) -> String {
    let all: Vec<&str> = networks.iter().map(|one| one.text.as_str()).collect();
    all.join(", ")
}

/// `pod a/b has 10.1.2.3`, and how many more there are.
fn first<'a>(mut all: impl Iterator<Item = String> + 'a) -> Option<String> {
    let first = all.next()?;
    let more = all.count();
    Some(if more == 0 { first } else { format!("{first}, and {more} more") })
}

/// Pods in the network of Services: the same address leads to two.
pub(super) fn pods_among_services(world: &World, plan: &Plan, wrong: &mut Vec<Wrong>) {
    for one in &plan.services {
        let within = addressed(world).into_iter().filter(|pod| one.network.has(pod.address));
        if let Some(hit) =
            first(within.map(|one| format!("pod {} has {}", title(one.pod), one.address)))
        {
            wrong.push(
                one.wrong(format!(
                    "the network {} of {} has a pod in it: {hit}",
                    one.text, one.what
                )),
            );
        }
    }
}

/// Pods with addresses of another network than the planned: none of OpenSDN's has them.
pub(super) fn pods_elsewhere(world: &World, plan: &Plan) -> Option<Wrong> {
    if cni::is_intended(world) || world.daemon_sets.known().is_none() {
        return None;
    }
    let is_elsewhere = |pod: &Addressed<'_>| {
        let is_of_fabric = uses_fabric(world) && has(&plan.fabric, pod.address);
        !has(&plan.pods, pod.address) && !has(&plan.services, pod.address) && !is_of_fabric
    };
    let elsewhere = addressed(world).into_iter().filter(is_elsewhere);
    let hit = first(elsewhere.map(|one| format!("pod {} has {}", title(one.pod), one.address)))?;
    let text = format!("not in the network {} of pods: {hit}", shown(&plan.pods));
    plan.pods.first().map(|one| one.wrong(text))
}

/// Services whose addresses are not in the network of Services. That of kubernetes is said by itself.
pub(super) fn services_elsewhere(world: &World, plan: &Plan, wrong: &mut Vec<Wrong>) {
    let Some(of) = plan.services.first() else { return };
    let others = world.cluster_addresses.items().iter();
    let others = others.filter(|one| (namespace(one), name(one)) != ("default", "kubernetes"));
    let elsewhere = others.filter_map(|service| {
        let all = list(service, "/spec/clusterIPs").filter_map(Value::as_str);
        let mut all = all.chain([text(service, "/spec/clusterIP")]).filter_map(address);
        let found = all.find(|address| !has(&plan.services, *address))?;
        Some(format!("Service {} has {found}", title(service)))
    });
    if let Some(hit) = first(elsewhere) {
        let text = format!("not in the network {} of Services: {hit}", shown(&plan.services));
        wrong.push(of.wrong(text));
    }
}

/// Networks of docker0 on nodes that were looked at; each node answers with routes that overlap ours.
pub(super) fn docker(world: &World, plan: &Plan, wrong: &mut Vec<Wrong>) {
    for (node, answer) in world.probed.iter().flatten() {
        let Some(routes) = answer.as_ref().ok().and_then(|one| one.findings.routes.known()) else {
            continue;
        };
        for route in routes.iter().filter(|one| one.interface == DOCKER && one.gateway.is_none()) {
            let Some(network) = Network::of(&route.destination) else { continue };
            let bad = plan.used().find(|one| one.network.overlaps(network));
            wrong.extend(bad.map(|one| {
                one.wrong(format!(
                    "the network {} of {} overlaps {} of {DOCKER} on node {node}",
                    one.text, one.what, route.destination
                ))
            }));
        }
    }
    wrong.dedup();
}

/// Why it is not known of a node that was asked.
pub(super) fn docker_unseen(world: &World) -> Option<String> {
    let mut asked = world.probed.iter().flatten();
    asked.find_map(|(node, answer)| {
        let why = match answer {
            Ok(answer) => match &answer.findings.routes {
                Seen::Is(_) => return None,
                Seen::Unknown(why) => why,
            },
            Err(why) => why,
        };
        Some(format!("the routes of node {node} are not known: {why}"))
    })
}

/// The addresses by which workloads reach services of the fabric, and nested clusters the vrouters below them: they are
/// to be of no use to anything else.
pub(super) fn of_the_fabric(world: &World, plan: &Plan, wrong: &mut Vec<Wrong>) {
    for Given { what, of, text, fix } in given(world) {
        let networks = networks_of(&text).unwrap_or_default();
        let bad = plan.used().find(|ours| networks.iter().any(|one| ours.network.overlaps(*one)));
        wrong.extend(bad.map(|ours| Wrong {
            fix: fix.clone(),
            ..ours.wrong(format!(
                "the network {} of {} has {text} of {of} in it",
                ours.text, ours.what
            ))
        }));
        let hit = world.nodes.items().iter().filter_map(|node| {
            let mut own = super::addresses_of(node).into_iter();
            let own = own.find(|own| networks.iter().any(|one| one.has(*own)))?;
            Some(format!("node {} has {own}", name(node)))
        });
        wrong.extend(first(hit).map(|hit| Wrong {
            what,
            text: format!("{hit}, which is {text} of {of}"),
            fix,
        }));
    }
    let link_local = planned("link-local addresses", super::LINK_LOCAL, true);
    for one in [&plan.pods, &plan.services, &plan.fabric] {
        apart(one, &link_local, wrong);
    }
}

/// What addresses lead out of the networks.
struct Given {
    what: &'static str,
    /// Whose it is, as it is said.
    of: String,
    /// An address, a network, a range, as it is written.
    text: String,
    /// The command that changes it, where it is an object of its own.
    fix: Option<String>,
}

impl Given {
    /// Of an object of its own: it may be a tenant's, and is to be found.
    fn of(what: &'static str, (kind, plural): (&str, &str), object: &Value, text: &str) -> Self {
        let edit =
            format!("kubectl edit {plural}.opensdn.io {} -n {}", name(object), namespace(object));
        Self {
            what,
            of: format!("{kind} {}", title(object)),
            text: text.to_owned(),
            fix: Some(edit),
        }
    }
}

fn given(world: &World) -> Vec<Given> {
    let mut all = Vec::new();
    for one in world.link_local.items() {
        let kind = ("LinkLocalService", "linklocalservices");
        all.push(Given::of("a LinkLocalService", kind, one, text(one, "/spec/ip")));
    }
    for one in world.nested_clusters.items() {
        let kind = ("serviceAddresses of NestedCluster", "nestedclusters");
        let texts = list(one, "/spec/serviceAddresses").filter_map(Value::as_str);
        all.extend(texts.map(|text| Given::of("a NestedCluster", kind, one, text)));
    }
    let of_nested =
        |what, text: &str| Given { what, of: what.to_owned(), text: text.to_owned(), fix: None };
    for service in world.services().iter().filter(|one| one.facts.kind == "Kubemanager") {
        let vip = list(service.spec, "/serviceConfiguration/nested/vrouter/addresses");
        all.extend(vip.filter_map(Value::as_str).map(|text| of_nested("nested.vrouter", text)));
    }
    let of_agent = world.nested.as_ref().and_then(|nested| nested.environment.known());
    all.extend(of_agent.map(|map| of_nested(VIP, text(map, &format!("/data/{VIP}")))));
    all.retain(|one| !one.text.is_empty());
    all
}

/// Most networks of a range: of any range of IPv4 there are fewer.
const MOST: usize = 64;

/// The networks of `10.0.0.1`, `10.0.0.0/24` or `10.0.0.1-10.0.0.9`; nothing where it is none of these.
fn networks_of(text: &str) -> Option<Vec<Network>> {
    if text.contains('/') {
        return Some(vec![Network::of(text)?]);
    }
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (IpAddr::V4(from), IpAddr::V4(to)) = (address(from.trim())?, address(to.trim())?) else {
        return None;
    };
    let (mut from, to) = (u64::from(u32::from(from)), u64::from(u32::from(to)));
    let mut all = Vec::new();
    while from <= to && all.len() < MOST {
        // The largest network that begins there and does not reach beyond the end.
        let bits = from.trailing_zeros().min((to - from + 1).ilog2()).min(32);
        let (address, prefix) = (u128::from(from), 32 - bits);
        all.push(Network { address, prefix, is_v4: true });
        from += 1 << bits;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_addresses_from_its_first_to_its_last() {
        let has = |text: &str, one: &str| {
            let networks = networks_of(text).unwrap();
            networks.iter().any(|network| network.has(one.parse().unwrap()))
        };
        for inside in ["10.0.0.1", "10.0.0.4", "10.0.0.9"] {
            assert!(has("10.0.0.1-10.0.0.9", inside), "{inside}");
        }
        for outside in ["10.0.0.0", "10.0.0.10"] {
            assert!(!has("10.0.0.1-10.0.0.9", outside), "{outside}");
        }
        assert!(has("0.0.0.0-255.255.255.255", "9.9.9.9") && has("10.0.0.0/24", "10.0.0.7"));
        assert!(has("10.0.0.1", "10.0.0.1") && !has("10.0.0.1", "10.0.0.2"));
        assert_eq!((networks_of("a name"), networks_of("10.0.0.1-x")), (None, None));
    }
}
