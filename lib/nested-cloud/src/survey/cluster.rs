//! What the cloud has of the cluster: the interfaces of its nodes, and objects of its name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use opensdn_config_api::ConfigApi;
use opensdn_config_api::client::Error;
use opensdn_error_chain::error_chain;
use opensdn_nested::Fact;
use opensdn_nested::live::{Interface, Trace, TraceOwner, UsedSubnet};
use serde_json::Value;

use super::network::address_of;
use super::{Fields, fact, full_name, own_name, reference_names, references};

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

/// Objects that kube-manager makes for a cluster of this name.
pub(super) async fn traces(
    api: &ConfigApi,
    cluster: &str,
    subnets: &Fact<Vec<UsedSubnet>>,
    interfaces: &Fact<BTreeMap<Ipv4Addr, Vec<Interface>>>,
) -> Fact<Vec<Trace>> {
    let subnets = match subnets {
        Fact::Known(subnets) => subnets,
        Fact::Unknown(why) => return Fact::Unknown(why.clone()),
    };
    let network = format!("{cluster}-default-pod-network");
    let networks: BTreeSet<&str> = subnets
        .iter()
        .filter_map(|one| one.owner.strip_prefix("virtual-network "))
        .filter(|name| name.rsplit(':').next() == Some(network.as_str()))
        .collect();
    let mut traces = Vec::new();
    for name in networks {
        match owner(api, name, interfaces).await {
            Ok(owner) => traces.push(Trace { object: format!("virtual-network {name}"), owner }),
            Err(error) => return Fact::Unknown(error_chain(&error)),
        }
    }
    match fact(sets(api, cluster).await) {
        Fact::Known(sets) => traces.extend(sets),
        Fact::Unknown(why) => return Fact::Unknown(why),
    }
    Fact::Known(traces)
}

/// The application policy sets of the name. They are of the whole cloud, and nothing on them says whose they are.
async fn sets(api: &ConfigApi, cluster: &str) -> Result<Vec<Trace>, Error> {
    let kind = "application-policy-set";
    let all = api.list(kind, &["annotations"], &[]).await?;
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
    interfaces: &Fact<BTreeMap<Ipv4Addr, Vec<Interface>>>,
) -> Result<TraceOwner, Error> {
    let parts: Vec<&str> = network.split(':').collect();
    let Some(uuid) = api.id_of("virtual-network", &parts).await? else {
        return Ok(TraceOwner::Undecided);
    };
    let Some(of_nodes) = interfaces.known() else { return Ok(TraceOwner::Undecided) };
    let ours: BTreeSet<&str> = of_nodes.values().flatten().map(|one| one.id.as_str()).collect();
    let pods = api.list(INTERFACE, &[REFERENCES], &[("back_ref_id", &uuid)]).await?;
    let mut parents = pods.iter().flat_map(|pod| references(pod, REFERENCES)).peekable();
    if parents.peek().is_none() {
        return Ok(TraceOwner::Undecided);
    }
    Ok(match parents.any(|parent| ours.contains(parent)) {
        true => TraceOwner::Ours,
        false => TraceOwner::Other("its pods are on other virtual machines".to_owned()),
    })
}
