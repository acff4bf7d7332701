//! The nodes of the cloud's services as the Config API knows them, for who does not name them.

use opensdn_config_api::ConfigApi;
use opensdn_config_api::discovery::{Role, nodes};
use opensdn_crds::nested_cluster::NestedClusterSpec;

use super::world::unreachable;
use crate::exit::{Exit, Failure};

/// Fills in the addresses of services that the spec has none of. Gives what it has found as flags.
///
/// # Errors
/// The Config API cannot be asked, knows no node of its own, or has no IPv4 address of one.
pub(crate) async fn fill(
    api: &ConfigApi,
    spec: &mut NestedClusterSpec,
) -> Result<Vec<String>, Failure> {
    let services = &mut spec.services;
    let mut found = Vec::new();
    for (role, flag, service) in [
        (Role::Config, "--config-nodes", &mut services.config),
        (Role::Analytics, "--analytics-nodes", services.analytics.get_or_insert_default()),
        (
            Role::ConfigDatabase,
            "--config-database-nodes",
            services.config_database.get_or_insert_default(),
        ),
    ] {
        if !service.addresses.is_empty() {
            continue;
        }
        let undiscovered = |message: String| {
            Failure::new(Exit::Usage, "not-discovered", message, format!("name them: {flag}"))
        };
        let nodes = nodes(api, role).await.map_err(|error| unreachable(&error.into()))?;
        for node in nodes {
            let Some(address) = node.address else {
                let (kind, name) = (role.kind(), node.name);
                return Err(undiscovered(format!(
                    "the Config API has no IPv4 address of the {kind} {name}"
                )));
            };
            service.addresses.push(address.to_string());
        }
        if !service.addresses.is_empty() {
            found.push(format!("{flag} {}", service.addresses.join(",")));
        } else if role == Role::Config {
            return Err(undiscovered("the Config API knows no config-node".to_owned()));
        }
    }
    Ok(found)
}
