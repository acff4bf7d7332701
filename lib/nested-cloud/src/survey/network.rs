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
    networks: &[Fields],
) -> Result<Vec<UsedSubnet>, Error> {
    let used =
        |one: virtual_network::Subnet| Some(UsedSubnet { subnet: parsed(&one)?, owner: one.owner });
    Ok(virtual_network::subnets(api, networks).await?.into_iter().filter_map(used).collect())
}

fn parsed(subnet: &virtual_network::Subnet) -> Option<Subnet> {
    Subnet::new(subnet.prefix.parse().ok()?, subnet.length)
}

/// All addresses of interfaces, with the interface and the network of each.
pub(super) async fn instance_ips(api: &ConfigApi) -> Result<Vec<Fields>, Error> {
    let fields = ["instance_ip_address", "virtual_machine_interface_refs", "virtual_network_refs"];
    api.list("instance-ip", &fields, &[]).await
}

pub(super) fn address_of(ip: &Fields) -> Option<Ipv4Addr> {
    text(ip, "instance_ip_address").parse().ok()
}

/// Addresses that are in use somewhere, with what has them.
pub(super) async fn addresses(
    api: &ConfigApi,
    ips: &[Fields],
) -> Result<BTreeMap<Ipv4Addr, String>, Error> {
    let of_ip = |ip: &Fields| {
        let networks = reference_names(ip, "virtual_network_refs").join(", ");
        Some((address_of(ip)?, format!("an interface in {networks}")))
    };
    let mut found: BTreeMap<Ipv4Addr, String> = ips.iter().filter_map(of_ip).collect();
    for (kind, field) in [("floating-ip", "floating_ip_address"), ("alias-ip", "alias_ip_address")]
    {
        let all = api.list(kind, &[field], &[]).await?;
        let of_kind = |one: &Fields| {
            Some((text(one, field).parse().ok()?, format!("the {kind} {}", own_name(one))))
        };
        found.extend(all.iter().filter_map(of_kind));
    }
    Ok(found)
}

/// The network of the nodes; nothing where there is none of its name.
pub(super) async fn of_nodes(
    api: &ConfigApi,
    name: &NetworkName,
    nodes: Option<&BTreeSet<Ipv4Addr>>,
    ips: &Fact<Vec<Fields>>,
) -> Result<Option<NodeNetwork>, Error> {
    let Some(uuid) = virtual_network::id_of(api, &name.domain, &name.project, &name.name).await?
    else {
        return Ok(None);
    };
    let fields = ["fabric_snat", "network_ipam_refs", "route_target_list", "network_policy_refs"];
    let Some(object) = api.object(KIND, &uuid, &fields).await? else { return Ok(None) };
    let network = object.fields;
    let own: Vec<&Fields> =
        ips.known().into_iter().flatten().filter(|ip| is_in(ip, &uuid)).collect();
    let interfaces = |ips: &[&'_ Fields]| -> BTreeSet<String> {
        let all = ips.iter().flat_map(|ip| references(ip, "virtual_machine_interface_refs"));
        all.map(str::to_owned).collect()
    };
    let all = interfaces(&own);
    let others = |nodes: &BTreeSet<Ipv4Addr>| {
        let is_of_node = |ip: &&&Fields| address_of(ip).is_some_and(|one| nodes.contains(&one));
        let of_nodes: Vec<&Fields> = own.iter().filter(is_of_node).copied().collect();
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

fn is_in(ip: &Fields, network: &str) -> bool {
    references(ip, "virtual_network_refs").any(|one| one == network)
}

fn route_targets(network: &Fields) -> Vec<String> {
    let list = network.get("route_target_list").and_then(|list| list.get("route_target"));
    let all = list.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Logical routers with an interface in the network.
async fn routers(api: &ConfigApi, interfaces: &BTreeSet<String>) -> Result<Vec<String>, Error> {
    let field = "virtual_machine_interface_refs";
    let all = api.list("logical-router", &[field], &[]).await?;
    let is_there = |router: &&Fields| references(router, field).any(|one| interfaces.contains(one));
    Ok(all.iter().filter(is_there).map(full_name).collect())
}
