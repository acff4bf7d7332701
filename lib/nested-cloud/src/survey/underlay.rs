//! The machines of the underlay: addresses that no link-local service may have, and the names of compute nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use opensdn_config_api::ConfigApi;
use opensdn_config_api::client::Error;

use super::{own_name, text};

/// Kinds of machines, and which of their properties are their addresses.
const KINDS: [(&str, &str); 6] = [
    ("config-node", "config_node_ip_address"),
    ("analytics-node", "analytics_node_ip_address"),
    ("config-database-node", "config_database_node_ip_address"),
    ("database-node", "database_node_ip_address"),
    ("virtual-router", "virtual_router_ip_address"),
    ("bgp-router", "bgp_router_parameters"),
];

/// The addresses, with what has them.
pub(super) async fn addresses(api: &ConfigApi) -> Result<BTreeMap<Ipv4Addr, String>, Error> {
    let mut found = BTreeMap::new();
    for (kind, field) in KINDS {
        for object in api.list(kind, &[field], &[]).await? {
            let address = match kind {
                "bgp-router" => object.get(field).and_then(|one| one.get("address")?.as_str()),
                _ => Some(text(&object, field)),
            };
            if let Some(address) = address.and_then(|text| text.parse().ok()) {
                found.insert(address, format!("{kind} {}", own_name(&object)));
            }
        }
    }
    Ok(found)
}

/// The names of all compute nodes.
pub(super) async fn virtual_routers(api: &ConfigApi) -> Result<BTreeSet<String>, Error> {
    let all = api.list("virtual-router", &["virtual_router_ip_address"], &[]).await?;
    Ok(all.iter().map(own_name).collect())
}
