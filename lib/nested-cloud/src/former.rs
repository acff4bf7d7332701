//! Networks on which the cluster had SNAT, and wants it no more: its nodes are in another one now, or reach the cloud by
//! link-local services.

use std::time::Duration;

use opensdn_config_api::ConfigApi;
use opensdn_config_api::ownership::{ClusterId, Records};
use opensdn_config_api::virtual_network::Snat;

use crate::error::Error;
use crate::record::{note, read};
use crate::remove::Network;
use crate::snat::{self, SnatError};

/// Has SNAT there become what it was, unless another cluster depends on it. `wanted` is the network that has it now. The
/// networks on which it was switched off.
pub(crate) async fn restore(
    api: &ConfigApi,
    cluster: &ClusterId,
    wanted: Option<&str>,
    confirm: Duration,
) -> Result<Vec<Network>, Error> {
    let config = read(api, confirm).await?;
    let records = Records::read(&config.annotations, cluster)?;
    let mut off = Vec::new();
    for (uuid, before) in &records.ours.snat {
        let is_needed = Some(uuid.as_str()) == wanted || records.other_networks.contains_key(uuid);
        if is_needed || *before == Snat::On {
            continue;
        }
        let network = Network::read(api, uuid).await?;
        match snat::set(api, uuid, Snat::Off).await {
            Ok(_) => off.push(network),
            // With the network its SNAT is gone.
            Err(SnatError::Gone(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    note(api, cluster, confirm, |record, _| {
        record.snat.retain(|uuid, _| Some(uuid.as_str()) == wanted);
    })
    .await?;
    Ok(off)
}
