//! What the cloud has of the cluster: the interfaces of its nodes, and objects of its name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use opensdn_config_api::ConfigApi;
use opensdn_config_api::client::{Error, Refusal};
use opensdn_error_chain::error_chain;
use opensdn_nested::Fact;
use opensdn_nested::live::{Interface, Trace, TraceOwner};
use serde_json::Value;

use super::network::address_of;
use super::{Asked, Fields, fact, full_name, own_name, reference_names, references, text};

const INTERFACE: &str = "virtual-machine-interface";
const BINDINGS: &str = "virtual_machine_interface_bindings";
const REFERENCES: &str = "virtual_machine_interface_refs";
/// So many uuids fit into the address of a request.
const AT_ONCE: usize = 64;

/// The interfaces that have the address of a node, in all networks.
pub(super) async fn interfaces(
    api: &ConfigApi,
    ips: &Fact<Vec<Fields>>,
    nodes: &BTreeSet<Ipv4Addr>,
) -> Fact<BTreeMap<Ipv4Addr, Vec<Interface>>> {
    let ips = match ips {
        Fact::Known(ips) => ips,
        Fact::Unknown(why) => return Fact::Unknown(why.clone()),
    };
    let of_nodes = ips.iter().filter_map(|ip| Some((address_of(ip)?, ip)));
    let of_nodes: Vec<(Ipv4Addr, &Fields)> =
        of_nodes.filter(|(address, _)| nodes.contains(address)).collect();
    let uuids: BTreeSet<&str> =
        of_nodes.iter().flat_map(|(_, ip)| references(ip, REFERENCES)).collect();
    let hosts = match hosts(api, &uuids).await {
        Ok(hosts) => hosts,
        Err(error) => return Fact::Unknown(error_chain(&error)),
    };
    let mut found: BTreeMap<Ipv4Addr, Vec<Interface>> = BTreeMap::new();
    for (address, ip) in of_nodes {
        let network = reference_names(ip, "virtual_network_refs").join(", ");
        found.entry(address).or_default().extend(references(ip, REFERENCES).map(|id| Interface {
            id: id.to_owned(),
            network: network.clone(),
            host_id: hosts.get(id).cloned(),
        }));
    }
    Fact::Known(found)
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
    let all = interface.get(BINDINGS)?.get("key_value_pair")?.as_array()?;
    let host = all.iter().find(|one| one.get("key").is_some_and(|key| key == "host_id"))?;
    let host = host.get("value")?.as_str()?;
    (!host.is_empty() && host != "null").then(|| host.to_owned())
}

/// Objects that kube-manager makes for a cluster of this name. It deletes those of its own name that it does not know.
pub(super) async fn traces(
    api: &ConfigApi,
    asked: &Asked<'_>,
    interfaces: &Fact<BTreeMap<Ipv4Addr, Vec<Interface>>>,
) -> Fact<Vec<Trace>> {
    let (cluster, network) = (asked.cluster, asked.network.joined());
    // Tenants have equal addresses: an interface in another network is another's.
    let in_network = |one: &&Interface| one.network == network;
    let ours: Option<BTreeSet<&str>> = interfaces
        .known()
        .map(|all| all.values().flatten().filter(in_network).map(|one| one.id.as_str()).collect());
    let all = async {
        let mut traces = networks(api, cluster, ours.as_ref()).await?;
        // By the interfaces of its pods it is known whose a network is, and with it what else has the name.
        let is_ours = traces.iter().any(|trace| trace.owner == TraceOwner::Ours);
        if !is_ours {
            traces.extend(annotated(api, cluster).await?);
        }
        traces.extend(sets(api, cluster).await?);
        Ok(traces)
    };
    fact(all.await)
}

/// The networks of pods of the name, in every project. They have no subnets of their own.
async fn networks(
    api: &ConfigApi,
    cluster: &str,
    ours: Option<&BTreeSet<&str>>,
) -> Result<Vec<Trace>, Error> {
    let name = format!("{cluster}-default-pod-network");
    let mut traces = Vec::new();
    for network in present(api.list("virtual-network", &["fabric_snat"], &[]).await)? {
        if own_name(&network) == name {
            let owner = owner(api, text(&network, "uuid"), ours).await?;
            traces
                .push(Trace { object: format!("virtual-network {}", full_name(&network)), owner });
        }
    }
    Ok(traces)
}

/// Virtual machines and load balancers that a kube-manager of the name has annotated as its own.
async fn annotated(api: &ConfigApi, cluster: &str) -> Result<Vec<Trace>, Error> {
    let mut traces = Vec::new();
    for kind in ["virtual-machine", "loadbalancer"] {
        let all = present(api.list(kind, &["annotations"], &[]).await)?;
        let is_of_name = |object: &&Fields| {
            annotation(object, "owner") == Some("k8s")
                && annotation(object, "cluster") == Some(cluster)
        };
        // One of each kind says it.
        if let Some(object) = all.iter().find(is_of_name) {
            traces.push(Trace {
                object: format!("{kind} {}", full_name(object)),
                owner: TraceOwner::Other(
                    "a kube-manager of that name has pods or Services".to_owned(),
                ),
            });
        }
    }
    Ok(traces)
}

fn annotation<'a>(object: &'a Fields, name: &str) -> Option<&'a str> {
    let all = object.get("annotations")?.get("key_value_pair")?.as_array()?;
    all.iter().find(|one| one.get("key").is_some_and(|key| key == name))?.get("value")?.as_str()
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
