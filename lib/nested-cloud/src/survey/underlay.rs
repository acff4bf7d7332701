//! The machines of the underlay: addresses that no link-local service may have, and the names of compute nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use opensdn_config_api::ConfigApi;
use opensdn_config_api::client::Error;
use opensdn_config_api::discovery::{Node, Role, nodes};
use opensdn_config_api::fields::{Fields, own_name};

const ROUTER: &str = "bgp-router";

/// The compute nodes.
pub(super) async fn computes(api: &ConfigApi) -> Result<Vec<Node>, Error> {
    nodes(api, Role::VirtualRouter).await
}

/// The names of the compute nodes.
pub(super) fn names(computes: &[Node]) -> BTreeSet<String> {
    computes.iter().map(|node| node.name.clone()).collect()
}

/// The addresses of all machines, with what has them.
pub(super) async fn addresses(
    api: &ConfigApi,
    computes: &[Node],
) -> Result<BTreeMap<Ipv4Addr, String>, Error> {
    let mut found = BTreeMap::new();
    for role in Role::ALL {
        let of_role = match role {
            Role::VirtualRouter => computes.to_vec(),
            _ => nodes(api, role).await?,
        };
        let named = of_role.iter().filter_map(|node| Some((node.address?, &node.name)));
        found.extend(named.map(|(address, name)| (address, format!("{} {name}", role.kind()))));
    }
    let parameters = "bgp_router_parameters";
    let router = |router: Fields| {
        let address = router.get(parameters)?.get("address")?.as_str()?;
        Some((address.parse().ok()?, format!("{ROUTER} {}", own_name(&router))))
    };
    found.extend(api.list(ROUTER, &[parameters], &[], router).await?);
    Ok(found)
}
