//! Networks and the addresses in them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use opensdn_config_api::client::Error;
use opensdn_config_api::fields::{Fields, full_name, own_name, reference_names, references, text};
use opensdn_config_api::{ConfigApi, virtual_network};
use opensdn_nested::input::NetworkName;
use opensdn_nested::live::{NodeNetwork, UsedSubnet};
use opensdn_nested::{Fact, Subnet};
use serde_json::Value;

const KIND: &str = "virtual-network";

/// The subnets of all networks and IPAMs; those of IPv6 are of no interest here.
pub(super) async fn subnets(
    api: &ConfigApi,
    networks: &[virtual_network::Network],
) -> Result<Vec<UsedSubnet>, Error> {
    let used =
        |one: virtual_network::Subnet| Some(UsedSubnet { subnet: parsed(&one)?, owner: one.owner });
    Ok(virtual_network::subnets(api, networks).await?.into_iter().filter_map(used).collect())
}

fn parsed(subnet: &virtual_network::Subnet) -> Option<Subnet> {
    Subnet::new(subnet.prefix.parse().ok()?, subnet.length)
}

/// An address that interfaces have.
#[derive(Clone, Debug)]
pub(super) struct InstanceIp {
    /// Nothing where it is none of IPv4.
    pub(super) address: Option<Ipv4Addr>,
    /// The UUIDs of its interfaces.
    pub(super) interfaces: Vec<String>,
    /// The UUIDs of its networks.
    networks: Vec<String>,
    /// Their names, with colons.
    pub(super) network: String,
}

const INTERFACES: &str = "virtual_machine_interface_refs";
const NETWORKS: &str = "virtual_network_refs";

/// All addresses of interfaces.
pub(super) async fn instance_ips(api: &ConfigApi) -> Result<Vec<InstanceIp>, Error> {
    let uuids = |ip: &Fields, field: &str| references(ip, field).map(str::to_owned).collect();
    let of = |ip: Fields| {
        Some(InstanceIp {
            address: text(&ip, "instance_ip_address").parse().ok(),
            interfaces: uuids(&ip, INTERFACES),
            networks: uuids(&ip, NETWORKS),
            network: reference_names(&ip, NETWORKS).join(", "),
        })
    };
    api.list("instance-ip", &["instance_ip_address", INTERFACES, NETWORKS], &[], of).await
}

/// Addresses that are in use somewhere, with what has them.
pub(super) async fn addresses(
    api: &ConfigApi,
    ips: &[InstanceIp],
) -> Result<BTreeMap<Ipv4Addr, String>, Error> {
    let of_ip = |ip: &InstanceIp| Some((ip.address?, format!("an interface in {}", ip.network)));
    let mut found: BTreeMap<Ipv4Addr, String> = ips.iter().filter_map(of_ip).collect();
    for (kind, field) in [("floating-ip", "floating_ip_address"), ("alias-ip", "alias_ip_address")]
    {
        let of_kind = |one: Fields| {
            Some((text(&one, field).parse().ok()?, format!("the {kind} {}", own_name(&one))))
        };
        found.extend(api.list(kind, &[field], &[], of_kind).await?);
    }
    Ok(found)
}

/// The network of the nodes; nothing where there is none of its name.
pub(super) async fn of_nodes(
    api: &ConfigApi,
    name: &NetworkName,
    nodes: Option<&BTreeSet<Ipv4Addr>>,
    ips: &Fact<Vec<InstanceIp>>,
) -> Result<Option<NodeNetwork>, Error> {
    let Some(uuid) = virtual_network::id_of(api, &name.domain, &name.project, &name.name).await?
    else {
        return Ok(None);
    };
    let fields = ["fabric_snat", "network_ipam_refs", "route_target_list", "network_policy_refs"];
    let Some(object) = api.object(KIND, &uuid, &fields).await? else { return Ok(None) };
    let network = object.fields;
    let is_in = |ip: &&InstanceIp| ip.networks.contains(&uuid);
    let own: Vec<&InstanceIp> = ips.known().into_iter().flatten().filter(is_in).collect();
    let interfaces = |ips: &[&InstanceIp]| -> BTreeSet<String> {
        ips.iter().flat_map(|ip| ip.interfaces.iter().cloned()).collect()
    };
    let all = interfaces(&own);
    let others = |nodes: &BTreeSet<Ipv4Addr>| {
        let is_of_node = |ip: &&&InstanceIp| ip.address.is_some_and(|one| nodes.contains(&one));
        let of_nodes: Vec<&InstanceIp> = own.iter().filter(is_of_node).copied().collect();
        all.difference(&interfaces(&of_nodes)).count()
    };
    Ok(Some(NodeNetwork {
        uuid: uuid.clone(),
        fabric_snat: network.get("fabric_snat").and_then(Value::as_bool),
        subnets: virtual_network::subnets_of(&network).filter_map(|one| parsed(&one)).collect(),
        logical_routers: routers(api, &all).await?,
        route_targets: route_targets(&network),
        policies: reference_names(&network, "network_policy_refs"),
        other_interfaces: nodes.map(others),
    }))
}

fn route_targets(network: &Fields) -> Vec<String> {
    let list = network.get("route_target_list").and_then(|list| list.get("route_target"));
    let all = list.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Logical routers with an interface in the network.
async fn routers(api: &ConfigApi, interfaces: &BTreeSet<String>) -> Result<Vec<String>, Error> {
    let of = |router: Fields| {
        let is_there = references(&router, INTERFACES).any(|one| interfaces.contains(one));
        is_there.then(|| full_name(&router))
    };
    api.list("logical-router", &[INTERFACES], &[], of).await
}
