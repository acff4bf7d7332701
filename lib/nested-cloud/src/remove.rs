//! Takes away what a cluster has in the cloud: SNAT becomes what it was, pools go that nothing else needs, then the rows
//! that no other cluster has in its record, and the record last. What stays is said, with the reason. Each step leaves
//! alone what is done, so the same again continues a removal that was interrupted. Deliberately not here: the workloads,
//! which have to be stopped before, and what kube-manager has made.

use std::fmt;
use std::time::Duration;

use opensdn_config_api::ConfigApi;
use opensdn_config_api::apply::{self as rows, Outcome, Request, Timing};
use opensdn_config_api::client::Error;
use opensdn_config_api::edit::Foreign;
use opensdn_config_api::ownership::{self, ClusterId, How, Pools, Records};
use opensdn_config_api::virtual_network::Snat;
use opensdn_config_api::vrouter_config::{self, ReadError, RemovedPools};
use serde_json::Value;

use crate::apply::{CONFIRM, NoteError, note, read};
use crate::snat::{self, SnatError};

/// Why it was not taken away to the end.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// The Config API does not answer, or refuses.
    #[error(transparent)]
    Api(#[from] Error),
    /// The object with the rows cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A record cannot be read.
    #[error(transparent)]
    Ownership(#[from] ownership::Error),
    /// The rows were not removed.
    #[error(transparent)]
    Rows(#[from] rows::Error),
    /// SNAT is not what it was.
    #[error(transparent)]
    Snat(#[from] SnatError),
}

/// What would be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// Uuids of networks whose SNAT is switched off.
    pub snat_off: Vec<String>,
    /// Whether the port pools may go.
    pub pools: Pools,
    /// Rows that go, by address and port, with their names.
    pub rows: Vec<String>,
    /// What stays.
    pub left: Vec<Leftover>,
}

/// What stays in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// SNAT of a network, on which another cluster depends.
    SharedSnat(String),
    /// SNAT of a network, which was on before.
    FormerSnat(String),
    /// The port pools: another network has SNAT, or another cluster a record.
    SharedPools,
    /// The port pools are not as they were added.
    ChangedPools,
    /// A row that another cluster has in its record.
    SharedRow(String),
    /// A row that was there before.
    AdoptedRow(String),
}

impl fmt::Display for Leftover {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SharedSnat(network) => {
                write!(
                    to,
                    "fabric SNAT of the network {network}: another nested cluster depends on it"
                )
            }
            Self::FormerSnat(network) => {
                write!(to, "fabric SNAT of the network {network}: it was on before")
            }
            Self::SharedPools => {
                to.write_str("the port translation pools: another network or cluster may need them")
            }
            Self::ChangedPools => {
                to.write_str("the port translation pools: they are not as they were added")
            }
            Self::SharedRow(row) => {
                write!(to, "the link-local service {row}: another nested cluster uses it")
            }
            Self::AdoptedRow(row) => {
                write!(to, "the link-local service {row}: it was there before")
            }
        }
    }
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Removed {
    /// Uuids of networks whose SNAT was switched off.
    pub snat_off: Vec<String>,
    /// What became of the port pools, if they were ours.
    pub pools: Option<RemovedPools>,
    /// The rows.
    pub rows: Outcome,
    /// What stays.
    pub left: Vec<Leftover>,
    /// How many requests were sent.
    pub calls: u64,
}

/// What there is to take away.
///
/// # Errors
/// It cannot be read.
pub async fn removal(api: &ConfigApi, cluster: &ClusterId) -> Result<Removal, RemoveError> {
    removal_confirmed(api, cluster, CONFIRM).await
}

async fn removal_confirmed(
    api: &ConfigApi,
    cluster: &ClusterId,
    confirm: Duration,
) -> Result<Removal, RemoveError> {
    let config = read(api, confirm).await?;
    let records = Records::read(&config.annotations, cluster)?;
    let mut removal = Removal::default();
    for (network, before) in &records.ours.snat {
        match before {
            Snat::On => removal.left.push(Leftover::FormerSnat(network.clone())),
            Snat::Off if records.other_networks.contains_key(network) => {
                removal.left.push(Leftover::SharedSnat(network.clone()));
            }
            Snat::Off => removal.snat_off.push(network.clone()),
        }
    }
    if records.ours.pools == Pools::Ours {
        match needs_pools(api, &removal.snat_off, &records).await? {
            true => removal.left.push(Leftover::SharedPools),
            false => removal.pools = Pools::Ours,
        }
    }
    for (key, held) in &records.ours.rows {
        let row = format!("{} ({key})", held.name);
        match held.how {
            How::Adopted => removal.left.push(Leftover::AdoptedRow(row)),
            How::Written if records.other_keys.contains(key) => {
                removal.left.push(Leftover::SharedRow(row));
            }
            How::Written => removal.rows.push(row),
        }
    }
    Ok(removal)
}

/// Whether SNAT of others needs the pools.
async fn needs_pools(
    api: &ConfigApi,
    off: &[String],
    records: &Records,
) -> Result<bool, RemoveError> {
    if !records.other_networks.is_empty() {
        return Ok(true);
    }
    let all = api.list("virtual-network", &["fabric_snat"], &[]).await?;
    Ok(all.iter().any(|network| {
        let uuid = network.get("uuid").and_then(Value::as_str).unwrap_or_default();
        network.get("fabric_snat") == Some(&Value::Bool(true)) && !off.iter().any(|one| one == uuid)
    }))
}

/// Takes it away. `save` gets the rows before the first write and says where they are then.
///
/// # Errors
/// A step fails; those before it are done, and the same call continues.
pub async fn remove<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    api: &ConfigApi,
    cluster: &ClusterId,
    timing: &Timing,
    save: impl AsyncFnOnce(Value) -> Result<String, E>,
) -> Result<Removed, RemoveError> {
    let calls = api.calls();
    let Removal { snat_off, pools, rows: _, mut left } =
        removal_confirmed(api, cluster, timing.confirm).await?;
    for network in &snat_off {
        match snat::set(api, network, Snat::Off).await {
            // With the network its SNAT is gone.
            Ok(_) | Err(SnatError::Gone(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let pools = match pools {
        Pools::Ours => Some(vrouter_config::remove_pools(api, timing.confirm).await?),
        Pools::Theirs => None,
    };
    if pools == Some(RemovedPools::Kept) {
        left.push(Leftover::ChangedPools);
    }
    let request = Request { cluster, rows: &[], foreign: Foreign::Respect };
    let rows = rows::apply(api, &request, timing, save).await?;
    note(api, cluster, timing.confirm, |record, _| {
        record.snat.clear();
        record.pools = Pools::Theirs;
    })
    .await?;
    Ok(Removed { snat_off, pools, rows, left, calls: api.calls() - calls })
}

impl From<NoteError> for RemoveError {
    fn from(error: NoteError) -> Self {
        match error {
            NoteError::Api(error) => Self::Api(error),
            NoteError::Read(error) => Self::Read(error),
            NoteError::Ownership(error) => Self::Ownership(error),
        }
    }
}
