//! Fabric SNAT of the network of the nodes, with what it was before in the record of the cluster. The Config API answers
//! 200 to writes that it does not store, so what was written is read again.

use opensdn_config_api::ConfigApi;
use opensdn_config_api::client::Error;
use opensdn_config_api::virtual_network::{self, Snat};

/// So many writes at most: the client repeats none that may have been done.
const ATTEMPTS: u32 = 3;

/// What became of fabric SNAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnatDone {
    /// Nothing was asked of it.
    Left,
    /// It was as it is to be.
    AsWanted,
    /// It was changed.
    Changed,
}

/// Why it is not as it is to be.
#[derive(Debug, thiserror::Error)]
pub enum SnatError {
    /// The Config API does not answer, or refuses.
    #[error(transparent)]
    Api(#[from] Error),
    /// The network is gone.
    #[error("the network {0} of the nodes is not in the cloud any more")]
    Gone(String),
    /// It was written and is not stored.
    #[error(
        "fabric_snat of the network {network} was written and is not stored: the Config API answers 200 to writes that \
         it leaves out; look at its log"
    )]
    NotStored {
        /// The uuid of the network.
        network: String,
    },
}

/// Makes it what it is to be.
pub(crate) async fn set(
    api: &ConfigApi,
    network: &str,
    wanted: Snat,
) -> Result<SnatDone, SnatError> {
    let read = async || {
        let found = virtual_network::fabric_snat(api, network).await?;
        found.ok_or_else(|| SnatError::Gone(network.to_owned()))
    };
    if read().await? == wanted {
        return Ok(SnatDone::AsWanted);
    }
    let mut failed = None;
    for _ in 0..ATTEMPTS {
        failed = match virtual_network::set_fabric_snat(api, network, wanted).await {
            Ok(()) => None,
            // It may have been done all the same, and done twice it is the same.
            Err(error) if error.is_passing() => Some(error),
            Err(error) => return Err(error.into()),
        };
        if read().await? == wanted {
            return Ok(SnatDone::Changed);
        }
    }
    Err(failed.map_or_else(|| SnatError::NotStored { network: network.to_owned() }, Into::into))
}
