//! Reads what a plan needs of a cloud. Each part is read by itself, so that one that is not given leaves the others: it
//! is unknown, with the reason. The number of calls does not depend on that of networks, addresses or clusters.

mod cluster;
mod network;
mod underlay;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use opensdn_config_api::client::Error;
use opensdn_config_api::ownership::{ClusterId, Records};
use opensdn_config_api::vrouter_config::{self, ReadError, VrouterConfig};
use opensdn_config_api::{AaaMode as Mode, ConfigApi};
use opensdn_error_chain::error_chain;
use opensdn_nested::input::NetworkName;
use opensdn_nested::live::{AaaMode, Protocol};
use opensdn_nested::{Fact, Live};
use serde_json::{Map, Value};

use crate::record::CONFIRM;

/// An object of the Config API.
pub(crate) type Fields = Map<String, Value>;

/// About which cluster the cloud is asked.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// By what its record is known.
    pub id: &'a ClusterId,
    /// Its name in OpenSDN.
    pub cluster: &'a str,
    /// The network of its nodes.
    pub network: &'a NetworkName,
    /// The addresses of its nodes, as far as they are known.
    pub nodes: &'a Fact<BTreeMap<String, Ipv4Addr>>,
}

/// Reads the cloud.
///
/// # Errors
/// The Config API does not give the object with the rows.
pub async fn survey(api: &ConfigApi, asked: &Asked<'_>) -> Result<Live, Error> {
    let is_whole =
        |config: &VrouterConfig| !config.annotations.is_empty() && !config.pools.is_empty();
    let config = match vrouter_config::read_confirmed(api, CONFIRM, is_whole).await {
        Ok(config) => Ok(config),
        // Without the rows there is nothing to plan, and what follows would mostly say the same again.
        Err(ReadError::Api(error)) => return Err(error),
        Err(error) => Err(error_chain(&error)),
    };
    let nodes: BTreeSet<Ipv4Addr> =
        asked.nodes.known().into_iter().flat_map(BTreeMap::values).copied().collect();
    let ips = fact(network::instance_ips(api).await);
    let interfaces = cluster::interfaces(api, &ips, &nodes).await;
    let subnets = fact(network::subnets(api).await);
    Ok(Live {
        rows: config
            .clone()
            .map_or_else(Fact::Unknown, |config| Fact::Known(config.rows.rows().to_vec())),
        records: records(&config, asked.id),
        pools: config.map_or_else(Fact::Unknown, |config| Fact::Known(protocols(&config))),
        underlay: fact(underlay::addresses(api).await),
        addresses: network::addresses(api, &ips).await,
        network: fact(network::of_nodes(api, asked.network, &nodes, &ips).await),
        traces: cluster::traces(api, asked, &interfaces).await,
        virtual_routers: fact(underlay::virtual_routers(api).await),
        aaa_mode: mode(api).await,
        subnets,
        interfaces,
    })
}

fn records(config: &Result<VrouterConfig, String>, id: &ClusterId) -> Fact<Records> {
    match config {
        Ok(config) => match Records::read(&config.annotations, id) {
            Ok(records) => Fact::Known(records),
            Err(error) => Fact::Unknown(error_chain(&error)),
        },
        Err(why) => Fact::Unknown(why.clone()),
    }
}

fn protocols(config: &VrouterConfig) -> BTreeSet<Protocol> {
    let names = config.pools.iter().filter_map(|pool| pool.get("protocol")?.as_str());
    names
        .filter_map(|name| match name.to_ascii_lowercase().as_str() {
            "tcp" | "6" => Some(Protocol::Tcp),
            "udp" | "17" => Some(Protocol::Udp),
            _ => None,
        })
        .collect()
}

async fn mode(api: &ConfigApi) -> Fact<AaaMode> {
    match api.aaa_mode().await {
        Ok(Mode::NoAuth) => Fact::Known(AaaMode::NoAuth),
        Ok(Mode::CloudAdmin) => Fact::Known(AaaMode::CloudAdmin),
        Ok(Mode::Rbac) => Fact::Known(AaaMode::Rbac),
        Ok(Mode::Other(mode)) => Fact::Unknown(format!("the Config API says {mode:?}")),
        Err(error) => Fact::Unknown(error_chain(&error)),
    }
}

/// What was read, or why not.
pub(crate) fn fact<T>(read: Result<T, Error>) -> Fact<T> {
    match read {
        Ok(value) => Fact::Known(value),
        Err(error) => Fact::Unknown(error_chain(&error)),
    }
}

/// The fully qualified name of an object, with colons.
pub(crate) fn full_name(object: &Fields) -> String {
    let parts = items(object, "fq_name").filter_map(Value::as_str);
    parts.collect::<Vec<&str>>().join(":")
}

/// The last part of its name.
pub(crate) fn own_name(object: &Fields) -> String {
    let name = items(object, "fq_name").filter_map(Value::as_str).next_back();
    name.unwrap_or_default().to_owned()
}

pub(crate) fn text<'a>(object: &'a Fields, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn items<'a>(
    object: &'a Fields,
    field: &str,
) -> impl DoubleEndedIterator<Item = &'a Value> + use<'a> {
    object.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter()
}

/// The uuids of what an object refers to.
pub(crate) fn references<'a>(
    object: &'a Fields,
    field: &str,
) -> impl Iterator<Item = &'a str> + use<'a> {
    items(object, field).filter_map(|one| one.get("uuid")?.as_str())
}

/// The names of what an object refers to.
pub(crate) fn reference_names(object: &Fields, field: &str) -> Vec<String> {
    let names = items(object, field).filter_map(|one| one.get("to")?.as_array());
    let joined = |parts: &Vec<Value>| {
        parts.iter().filter_map(Value::as_str).collect::<Vec<&str>>().join(":")
    };
    names.map(joined).collect()
}
