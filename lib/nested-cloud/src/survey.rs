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
use opensdn_config_api::{AaaMode as Mode, ConfigApi, virtual_network};
use opensdn_error_chain::error_chain;
use opensdn_nested::input::NetworkName;
use opensdn_nested::live::{AaaMode, MayWrite, NodeNetwork, Protocol};
use opensdn_nested::{Fact, Live};

use crate::record::CONFIRM;

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
    let uuid = match &config {
        Ok(config) => Fact::Known(config.uuid.clone()),
        Err(why) => Fact::Unknown(why.clone()),
    };
    // Without the nodes it is not known which interfaces are theirs: that is not that none is.
    let nodes: Fact<BTreeSet<Ipv4Addr>> = match asked.nodes {
        Fact::Known(nodes) => Fact::Known(nodes.values().copied().collect()),
        Fact::Unknown(why) => Fact::Unknown(why.clone()),
    };
    let ips = fact(network::instance_ips(api).await);
    let interfaces = of(&ips, async |all| {
        Ok(match &nodes {
            Fact::Known(nodes) => Fact::Known(cluster::interfaces(api, all, nodes).await?),
            Fact::Unknown(why) => Fact::Unknown(why.clone()),
        })
    })
    .await
    .flatten();
    let networks = fact(virtual_network::all(api).await);
    let network = fact(network::of_nodes(api, asked.network, nodes.known(), &ips).await);
    let aaa_mode = mode(api).await;
    let computes = fact(underlay::computes(api).await);
    Ok(Live {
        rows: config
            .clone()
            .map_or_else(Fact::Unknown, |config| Fact::Known(config.rows.rows().to_vec())),
        records: records(&config, asked.id),
        pools_of_others: config.clone().map_or_else(Fact::Unknown, |config| {
            Fact::Known(vrouter_config::are_of_others(&config.pools))
        }),
        pools: config.map_or_else(Fact::Unknown, |config| Fact::Known(protocols(&config))),
        underlay: of(&computes, async |all| underlay::addresses(api, all).await).await,
        addresses: of(&ips, async |all| network::addresses(api, all).await).await,
        may_write: may_write(api, &aaa_mode, uuid, &network).await,
        network,
        traces: of(&networks, async |all| cluster::traces(api, asked, all, &interfaces).await)
            .await,
        virtual_routers: of(&computes, async |all| Ok(underlay::names(all))).await,
        aaa_mode,
        subnets: of(&networks, async |all| network::subnets(api, all).await).await,
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
    let names = config.pools.iter().filter_map(vrouter_config::protocol_of);
    names.map(|name| if name == "tcp" { Protocol::Tcp } else { Protocol::Udp }).collect()
}

async fn mode(api: &ConfigApi) -> Fact<AaaMode> {
    match api.aaa_mode().await {
        Ok(Mode::NoAuth) => Fact::Known(AaaMode::NoAuth),
        Ok(Mode::CloudAdmin) => Fact::Known(AaaMode::CloudAdmin),
        Ok(Mode::Rbac) => Fact::Known(AaaMode::Rbac),
        // Its own word may be anything, also the token that was sent.
        Ok(Mode::Other(_)) => {
            Fact::Unknown("the Config API says a mode that is not known".to_owned())
        }
        Err(error) => Fact::Unknown(error_chain(&error)),
    }
}

async fn may_write(
    api: &ConfigApi,
    mode: &Fact<AaaMode>,
    vrouter_config: Fact<String>,
    network: &Fact<Option<NodeNetwork>>,
) -> MayWrite {
    if mode.known() == Some(&AaaMode::NoAuth) {
        return MayWrite { vrouter_config: Fact::Known(true), network: Fact::Known(true) };
    }
    MayWrite {
        vrouter_config: of(&vrouter_config, async |uuid| api.may_write(uuid).await).await,
        network: of(network, async |network| match network {
            Some(network) => api.may_write(&network.uuid).await,
            None => Ok(true),
        })
        .await,
    }
}

/// What follows of what was read; where that is not known, neither is this.
async fn of<F, T>(fact: &Fact<F>, read: impl AsyncFnOnce(&F) -> Result<T, Error>) -> Fact<T> {
    match fact {
        Fact::Known(known) => self::fact(read(known).await),
        Fact::Unknown(why) => Fact::Unknown(why.clone()),
    }
}

/// What was read, or why not.
fn fact<T>(read: Result<T, Error>) -> Fact<T> {
    match read {
        Ok(value) => Fact::Known(value),
        Err(error) => Fact::Unknown(error_chain(&error)),
    }
}
