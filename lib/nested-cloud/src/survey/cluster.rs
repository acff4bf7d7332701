//! What the cloud has of the cluster: the interfaces of its nodes, and objects of its name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use opensdn_config_api::client::{Error, Refusal};
use opensdn_config_api::fields::{Fields, full_name, own_name, references};
use opensdn_config_api::virtual_network::Network;
use opensdn_config_api::{ConfigApi, pairs};
use opensdn_nested::Fact;
use opensdn_nested::live::{Interface, Trace, TraceOwner};

use super::Asked;
use super::network::InstanceIp;

const INTERFACE: &str = "virtual-machine-interface";
const BINDINGS: &str = "virtual_machine_interface_bindings";
const REFERENCES: &str = "virtual_machine_interface_refs";
/// So many uuids fit into the address of a request.
const AT_ONCE: usize = 64;

/// The interfaces that have the address of a node, in all networks.
pub(super) async fn interfaces(
    api: &ConfigApi,
    ips: &[InstanceIp],
    nodes: &BTreeSet<Ipv4Addr>,
) -> Result<BTreeMap<Ipv4Addr, Vec<Interface>>, Error> {
    let of_node = |ip| -> Option<(Ipv4Addr, &InstanceIp)> {
        let ip: &InstanceIp = ip;
        Some((ip.address.filter(|address| nodes.contains(address))?, ip))
    };
    let of_nodes: Vec<(Ipv4Addr, &InstanceIp)> = ips.iter().filter_map(of_node).collect();
    let uuids: BTreeSet<&str> =
        of_nodes.iter().flat_map(|(_, ip)| ip.interfaces.iter().map(String::as_str)).collect();
    let hosts = hosts(api, &uuids).await?;
    let mut found: BTreeMap<Ipv4Addr, Vec<Interface>> = BTreeMap::new();
    for (address, ip) in of_nodes {
        found.entry(address).or_default().extend(ip.interfaces.iter().map(|id| Interface {
            id: id.clone(),
            network: ip.network.clone(),
            host_id: hosts.get(id).cloned(),
        }));
    }
    Ok(found)
}

/// The compute nodes on which interfaces are bound.
async fn hosts(api: &ConfigApi, uuids: &BTreeSet<&str>) -> Result<BTreeMap<String, String>, Error> {
    let mut found = BTreeMap::new();
    let uuids: Vec<&str> = uuids.iter().copied().collect();
    for some in uuids.chunks(AT_ONCE) {
        let some = some.join(",");
        let host = |one: Fields| Some((one.get("uuid")?.as_str()?.to_owned(), host_of(&one)?));
        found.extend(api.list(INTERFACE, &[BINDINGS], &[("obj_uuids", &some)], host).await?);
    }
    Ok(found)
}

fn host_of(interface: &Fields) -> Option<String> {
    let host = pairs::read(interface.get(BINDINGS)).remove("host_id")?;
    (!host.is_empty() && host != "null").then_some(host)
}

/// Objects that kube-manager makes for a cluster of this name. It deletes those of its own name that it does not know.
pub(super) async fn traces(
    api: &ConfigApi,
    asked: &Asked<'_>,
    networks: &[Network],
    interfaces: &Fact<BTreeMap<Ipv4Addr, Vec<Interface>>>,
) -> Result<Vec<Trace>, Error> {
    let (cluster, network) = (asked.cluster, asked.network.joined());
    // Tenants have equal addresses: an interface in another network is another's.
    let in_network = |one: &&Interface| one.network == network;
    let ours: Option<BTreeSet<&str>> = interfaces
        .known()
        .map(|all| all.values().flatten().filter(in_network).map(|one| one.id.as_str()).collect());
    let mut traces = of_pods(api, cluster, networks, ours.as_ref()).await?;
    // By the interfaces of its pods it is known whose a network is, and with it what else has the name.
    if traces.iter().all(|trace| trace.owner == TraceOwner::Undecided) {
        traces.extend(annotated(api, cluster).await?);
    }
    traces.extend(sets(api, cluster).await?);
    Ok(traces)
}

/// The networks of pods of the name, in every project. They have no subnets of their own.
async fn of_pods(
    api: &ConfigApi,
    cluster: &str,
    networks: &[Network],
    ours: Option<&BTreeSet<&str>>,
) -> Result<Vec<Trace>, Error> {
    let name = format!("{cluster}-default-pod-network");
    let mut traces = Vec::new();
    for network in networks.iter().filter(|network| network.name == name) {
        let owner = owner(api, &network.uuid, ours).await?;
        traces.push(Trace { object: format!("virtual-network {}", network.full_name), owner });
    }
    Ok(traces)
}

/// Virtual machines and load balancers that a kube-manager of the name has annotated as its own. They are on no node, and
/// so do not say of which cluster of that name: this one's Services are there before its first pod, and after its last.
async fn annotated(api: &ConfigApi, cluster: &str) -> Result<Vec<Trace>, Error> {
    let mut traces = Vec::new();
    for kind in ["virtual-machine", "loadbalancer"] {
        // One of each kind says it.
        let mut is_known = false;
        let of_name = |object: Fields| {
            let of = pairs::read(object.get("annotations"));
            let is = |name: &str, value: &str| of.get(name).is_some_and(|one| one == value);
            let is_of_name = !is_known && is("owner", "k8s") && is("cluster", cluster);
            is_known |= is_of_name;
            is_of_name.then(|| undecided(kind, &object))
        };
        traces.extend(present(api.list(kind, &["annotations"], &[], of_name).await)?);
    }
    Ok(traces)
}

fn undecided(kind: &str, object: &Fields) -> Trace {
    Trace { object: format!("{kind} {}", full_name(object)), owner: TraceOwner::Undecided }
}

/// Of a kind that the cloud does not know there are none.
fn present<T>(all: Result<Vec<T>, Error>) -> Result<Vec<T>, Error> {
    match all {
        Err(error) if matches!(error.refusal(), Some(Refusal::NotFound(_))) => Ok(Vec::new()),
        all => all,
    }
}

/// The application policy sets of the name. They are of the whole cloud, and nothing on them says whose they are.
async fn sets(api: &ConfigApi, cluster: &str) -> Result<Vec<Trace>, Error> {
    let kind = "application-policy-set";
    let of_name = |set: Fields| (own_name(&set) == cluster).then(|| undecided(kind, &set));
    present(api.list(kind, &["annotations"], &[], of_name).await)
}

/// Whose a network of pods is: its interfaces lie on those of its cluster's nodes.
async fn owner(
    api: &ConfigApi,
    network: &str,
    ours: Option<&BTreeSet<&str>>,
) -> Result<TraceOwner, Error> {
    let Some(ours) = ours else { return Ok(TraceOwner::Undecided) };
    // Of each pod whether it is on a virtual machine, and on one of ours.
    let pod = |pod: Fields| {
        let mut parents = references(&pod, REFERENCES).peekable();
        let is_on_one = parents.peek().is_some();
        Some((is_on_one, parents.any(|parent| ours.contains(parent))))
    };
    let query = [("back_ref_id", network)];
    let pods = api.list(INTERFACE, &[REFERENCES], &query, pod).await?;
    if pods.is_empty() {
        return Ok(TraceOwner::Undecided);
    }
    Ok(match (pods.iter().any(|(is_on_one, _)| *is_on_one), pods.iter().any(|(_, ours)| *ours)) {
        (false, _) => TraceOwner::Other("its pods are on no virtual machine".to_owned()),
        (true, true) => TraceOwner::Ours,
        (true, false) => TraceOwner::Other("its pods are on other virtual machines".to_owned()),
    })
}
