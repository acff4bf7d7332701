//! The object with the rows and the records: read, saved before the first write, and the cluster's record changed.
//! Deliberately not here: what is noted, and when.

use std::time::Duration;

use opensdn_config_api::ConfigApi;
use opensdn_config_api::apply as rows;
use opensdn_config_api::ownership::{ClusterId, Record, Records};
use opensdn_config_api::vrouter_config::{self, ReadError, VrouterConfig};
use serde_json::Value;

use crate::error::Error;

/// Until a list or map that reads empty is believed to be so.
pub(crate) const CONFIRM: Duration = Duration::from_secs(1);

/// Saves the rows as they are.
pub(crate) async fn saved<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    api: &ConfigApi,
    save: impl AsyncFnOnce(Value) -> Result<String, E>,
) -> Result<String, Error> {
    let read = vrouter_config::read(api).await?;
    save(read.rows.json()).await.map_err(|error| rows::Error::Backup(error.into()).into())
}

/// Reads the object with the records. A record that was taken for missing would be written without its rows.
pub(crate) async fn read(api: &ConfigApi, confirm: Duration) -> Result<VrouterConfig, ReadError> {
    vrouter_config::read_confirmed(api, confirm, |config| !config.annotations.is_empty()).await
}

/// Changes the record of the cluster, where that changes it.
pub(crate) async fn note(
    api: &ConfigApi,
    cluster: &ClusterId,
    confirm: Duration,
    change: impl FnOnce(&mut Record, &Records),
) -> Result<(), Error> {
    let config = read(api, confirm).await?;
    let records = Records::read(&config.annotations, cluster)?;
    let mut record = records.ours.clone();
    change(&mut record, &records);
    if record != records.ours {
        record.write(api, &config.uuid, cluster).await?;
    }
    Ok(())
}
