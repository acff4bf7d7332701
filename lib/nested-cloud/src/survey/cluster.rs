//! What the cloud has of the cluster: the interfaces of its nodes, and objects of its name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use opensdn_config_api::client::{Error, Refusal};
use opensdn_config_api::fields::{Fields, full_name, own_name, reference_names, references, text};
use opensdn_config_api::{ConfigApi, pairs};
use opensdn_nested::Fact;
use opensdn_nested::live::{Interface, Trace, TraceOwner};
use serde_json::Value;

use super::Asked;
use super::network::address_of;

const INTERFACE: &str = "virtual-machine-interface";
const BINDINGS: &str = "virtual_machine_interface_bindings";
const REFERENCES: &str = "virtual_machine_interface_refs";
/// So many uuids fit into the address of a request.
const AT_ONCE: usize = 64;

/// The interfaces that have the address of a node, in all networks.
pub(super) async fn interfaces(
    api: &ConfigApi,
    ips: &[Fields],
    nodes: &BTreeSet<Ipv4Addr>,
) -> Result<BTreeMap<Ipv4Addr, Vec<Interface>>, Error> {
    let of_nodes = ips.iter().filter_map(|ip| Some((address_of(ip)?, ip)));
    let of_nodes: Vec<(Ipv4Addr, &Fields)> =
        of_nodes.filter(|(address, _)| nodes.contains(address)).collect();
    let uuids: BTreeSet<&str> =
        of_nodes.iter().flat_map(|(_, ip)| references(ip, REFERENCES)).collect();
    let hosts = hosts(api, &uuids).await?;
    let mut found: BTreeMap<Ipv4Addr, Vec<Interface>> = BTreeMap::new();
    for (address, ip) in of_nodes {
        let network = reference_names(ip, "virtual_network_refs").join(", ");
        found.entry(address).or_default().extend(references(ip, REFERENCES).map(|id| Interface {
            id: id.to_owned(),
            network: network.clone(),
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
        for interface in api.list(INTERFACE, &[BINDINGS], &[("obj_uuids", &some)]).await? {
            let id = interface.get("uuid").and_then(Value::as_str);
            if let Some((id, host)) = id.zip(host_of(&interface)) {
                found.insert(id.to_owned(), host);
            }
        }
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
    networks: &[Fields],
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
    networks: &[Fields],
    ours: Option<&BTreeSet<&str>>,
) -> Result<Vec<Trace>, Error> {
    let name = format!("{cluster}-default-pod-network");
    let mut traces = Vec::new();
    for network in networks.iter().filter(|network| own_name(network) == name) {
        let owner = owner(api, text(network, "uuid"), ours).await?;
        traces.push(Trace { object: format!("virtual-network {}", full_name(network)), owner });
    }
    Ok(traces)
}

/// Virtual machines and load balancers that a kube-manager of the name has annotated as its own. They are on no node, and
/// so do not say of which cluster of that name: this one's Services are there before its first pod, and after its last.
async fn annotated(api: &ConfigApi, cluster: &str) -> Result<Vec<Trace>, Error> {
    let mut traces = Vec::new();
    for kind in ["virtual-machine", "loadbalancer"] {
        let all = present(api.list(kind, &["annotations"], &[]).await)?;
        let is_of_name = |object: &&Fields| {
            let of = pairs::read(object.get("annotations"));
            let is = |name: &str, value: &str| of.get(name).is_some_and(|one| one == value);
            is("owner", "k8s") && is("cluster", cluster)
        };
        // One of each kind says it.
        if let Some(object) = all.iter().find(is_of_name) {
            traces.push(Trace {
                object: format!("{kind} {}", full_name(object)),
                owner: TraceOwner::Undecided,
            });
        }
    }
    Ok(traces)
}

/// Of a kind that the cloud does not know there are none.
fn present(all: Result<Vec<Fields>, Error>) -> Result<Vec<Fields>, Error> {
    match all {
        Err(error) if matches!(error.refusal(), Some(Refusal::NotFound(_))) => Ok(Vec::new()),
        all => all,
    }
}

/// The application policy sets of the name. They are of the whole cloud, and nothing on them says whose they are.
async fn sets(api: &ConfigApi, cluster: &str) -> Result<Vec<Trace>, Error> {
    let kind = "application-policy-set";
    let all = present(api.list(kind, &["annotations"], &[]).await)?;
    let of_name = all.iter().filter(|set| own_name(set) == cluster);
    let trace = |set: &Fields| Trace {
        object: format!("{kind} {}", full_name(set)),
        owner: TraceOwner::Undecided,
    };
    Ok(of_name.map(trace).collect())
}

/// Whose a network of pods is: its interfaces lie on those of its cluster's nodes.
async fn owner(
    api: &ConfigApi,
    network: &str,
    ours: Option<&BTreeSet<&str>>,
) -> Result<TraceOwner, Error> {
    let Some(ours) = ours else { return Ok(TraceOwner::Undecided) };
    let pods = api.list(INTERFACE, &[REFERENCES], &[("back_ref_id", network)]).await?;
    let mut parents = pods.iter().flat_map(|pod| references(pod, REFERENCES)).peekable();
    if pods.is_empty() {
        return Ok(TraceOwner::Undecided);
    }
    if parents.peek().is_none() {
        return Ok(TraceOwner::Other("its pods are on no virtual machine".to_owned()));
    }
    Ok(match parents.any(|parent| ours.contains(parent)) {
        true => TraceOwner::Ours,
        false => TraceOwner::Other("its pods are on other virtual machines".to_owned()),
    })
}
