//! Networks and the addresses in them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use opensdn_config_api::client::Error;
use opensdn_config_api::{ConfigApi, virtual_network};
use opensdn_error_chain::error_chain;
use opensdn_nested::input::NetworkName;
use opensdn_nested::live::{NodeNetwork, UsedSubnet};
use opensdn_nested::{Fact, Subnet};
use serde_json::Value;

use super::{Fields, full_name, items, own_name, reference_names, references, text};

const KIND: &str = "virtual-network";

/// The subnets of all networks and IPAMs; those of IPv6 are of no interest here.
pub(super) async fn subnets(api: &ConfigApi) -> Result<Vec<UsedSubnet>, Error> {
    let used = |one: virtual_network::Subnet| {
        let subnet = Subnet::new(one.prefix.parse().ok()?, one.length)?;
        Some(UsedSubnet { subnet, owner: one.owner })
    };
    Ok(virtual_network::subnets(api).await?.into_iter().filter_map(used).collect())
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
    ips: &Fact<Vec<Fields>>,
) -> Fact<BTreeMap<Ipv4Addr, String>> {
    let ips = match ips {
        Fact::Known(ips) => ips,
        Fact::Unknown(why) => return Fact::Unknown(why.clone()),
    };
    let of_ip = |ip: &Fields| {
        let networks = reference_names(ip, "virtual_network_refs").join(", ");
        Some((address_of(ip)?, format!("an interface in {networks}")))
    };
    let mut found: BTreeMap<Ipv4Addr, String> = ips.iter().filter_map(of_ip).collect();
    for (kind, field) in [("floating-ip", "floating_ip_address"), ("alias-ip", "alias_ip_address")]
    {
        let all = match api.list(kind, &[field], &[]).await {
            Ok(all) => all,
            Err(error) => return Fact::Unknown(error_chain(&error)),
        };
        let of_kind = |one: &Fields| {
            Some((text(one, field).parse().ok()?, format!("the {kind} {}", own_name(one))))
        };
        found.extend(all.iter().filter_map(of_kind));
    }
    Fact::Known(found)
}

/// The network of the nodes; nothing where there is none of its name.
pub(super) async fn of_nodes(
    api: &ConfigApi,
    name: &NetworkName,
    nodes: &BTreeSet<Ipv4Addr>,
    ips: &Fact<Vec<Fields>>,
) -> Result<Option<NodeNetwork>, Error> {
    let Some(uuid) = virtual_network::id_of(api, &name.domain, &name.project, &name.name).await?
    else {
        return Ok(None);
    };
    let fields = ["fabric_snat", "network_ipam_refs", "route_target_list", "network_policy_refs"];
    let Some(object) = api.object(KIND, &uuid, &fields).await? else { return Ok(None) };
    let network = object.fields;
    let own: BTreeSet<&str> = ips
        .known()
        .into_iter()
        .flatten()
        .filter(|ip| is_in(ip, &uuid))
        .flat_map(|ip| references(ip, "virtual_machine_interface_refs"))
        .collect();
    let of_nodes: BTreeSet<&str> = ips
        .known()
        .into_iter()
        .flatten()
        .filter(|ip| is_in(ip, &uuid) && address_of(ip).is_some_and(|one| nodes.contains(&one)))
        .flat_map(|ip| references(ip, "virtual_machine_interface_refs"))
        .collect();
    Ok(Some(NodeNetwork {
        fabric_snat: network.get("fabric_snat").and_then(Value::as_bool),
        subnets: subnets_of(&network),
        logical_routers: routers(api, &own).await?,
        route_targets: route_targets(&network),
        policies: reference_names(&network, "network_policy_refs"),
        other_interfaces: own.difference(&of_nodes).count(),
    }))
}

fn is_in(ip: &Fields, network: &str) -> bool {
    references(ip, "virtual_network_refs").any(|one| one == network)
}

fn subnets_of(network: &Fields) -> Vec<Subnet> {
    let all = items(network, "network_ipam_refs");
    let all = all.filter_map(|one| one.pointer("/attr/ipam_subnets")?.as_array()).flatten();
    let subnet = |one: &Value| {
        let prefix = one.pointer("/subnet/ip_prefix")?.as_str()?.parse().ok()?;
        let length = one.pointer("/subnet/ip_prefix_len")?.as_u64()?;
        Subnet::new(prefix, length.try_into().ok()?)
    };
    all.filter_map(subnet).collect()
}

fn route_targets(network: &Fields) -> Vec<String> {
    let list = network.get("route_target_list").and_then(|list| list.get("route_target"));
    let all = list.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Logical routers with an interface in the network.
async fn routers(api: &ConfigApi, interfaces: &BTreeSet<&str>) -> Result<Vec<String>, Error> {
    let field = "virtual_machine_interface_refs";
    let all = api.list("logical-router", &[field], &[]).await?;
    let is_there = |router: &&Fields| references(router, field).any(|one| interfaces.contains(one));
    Ok(all.iter().filter(is_there).map(full_name).collect())
}
