//! Takes away what a cluster has in the cloud: SNAT becomes what it was, pools go that nothing else needs, then the rows
//! that no other cluster has in its record, and the record last. What stays is said, with the reason. Each step leaves
//! alone what is done, so the same again continues a removal that was interrupted. Deliberately not here: the workloads,
//! which have to be stopped before, and what kube-manager has made.

use std::fmt;
use std::time::Duration;

use opensdn_config_api::ConfigApi;
use opensdn_config_api::apply::{self as rows, Outcome, Request, Timing};
use opensdn_config_api::edit::{Foreign, Unwanted};
use opensdn_config_api::fields::{Fields, full_name, text};
use opensdn_config_api::lock::{self, Lock};
use opensdn_config_api::ownership::{ClusterId, How, Pools, Records};
use opensdn_config_api::virtual_network::Snat;
use opensdn_config_api::vrouter_config::{self, RemovedPools};
use serde_json::Value;

use crate::error::Error;
use crate::record::{CONFIRM, note, read, saved};
use crate::snat::{self, SnatError};

/// What would be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// The name of the cluster, where its record has it.
    pub cluster: Option<String>,
    /// Networks whose SNAT is switched off.
    pub snat_off: Vec<Network>,
    /// Whether the port pools may go.
    pub pools: Pools,
    /// Rows that go, by address and port, with their names.
    pub rows: Vec<String>,
    /// What stays.
    pub left: Vec<Leftover>,
}

impl Removal {
    /// Whether the cluster has nothing in the cloud.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        let Self { cluster: _, snat_off, pools, rows, left } = self;
        snat_off.is_empty() && *pools == Pools::Theirs && rows.is_empty() && left.is_empty()
    }
}

/// A network of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// By which the record knows it.
    pub uuid: String,
    /// Its fully qualified name; the uuid where it is gone.
    pub name: String,
}

impl Network {
    pub(crate) async fn read(api: &ConfigApi, uuid: &str) -> Result<Self, Error> {
        let object = api.object("virtual-network", uuid, &["fabric_snat"]).await?;
        let name = object.map(|object| full_name(&object.fields)).filter(|name| !name.is_empty());
        Ok(Self { uuid: uuid.to_owned(), name: name.unwrap_or_else(|| uuid.to_owned()) })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.escape_debug().fmt(to)
    }
}

/// What stays in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// SNAT of a network, on which another cluster depends.
    SharedSnat(Network),
    /// SNAT of a network, which was on before.
    FormerSnat(Network),
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
    /// Networks whose SNAT was switched off.
    pub snat_off: Vec<Network>,
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
pub async fn removal(api: &ConfigApi, cluster: &ClusterId) -> Result<Removal, Error> {
    removal_confirmed(api, cluster, CONFIRM).await
}

async fn removal_confirmed(
    api: &ConfigApi,
    cluster: &ClusterId,
    confirm: Duration,
) -> Result<Removal, Error> {
    let config = read(api, confirm).await?;
    let records = Records::read(&config.annotations, cluster)?;
    let mut removal = Removal { cluster: records.ours.cluster.clone(), ..Removal::default() };
    for (uuid, before) in &records.ours.snat {
        let network = Network::read(api, uuid).await?;
        match before {
            Snat::On => removal.left.push(Leftover::FormerSnat(network)),
            Snat::Off if records.other_networks.contains_key(uuid) => {
                removal.left.push(Leftover::SharedSnat(network));
            }
            Snat::Off => removal.snat_off.push(network),
        }
    }
    if records.ours.pools == Pools::Ours {
        match needs_pools(api, &removal.snat_off, &records).await? {
            true => removal.left.push(Leftover::SharedPools),
            false => removal.pools = Pools::Ours,
        }
    }
    for (key, held) in &records.ours.rows {
        let row = format!("{} ({key})", held.name.escape_debug());
        match held.how {
            How::Adopted => removal.left.push(Leftover::AdoptedRow(row)),
            How::Written | How::Leaving if records.other_keys.contains(key) => {
                removal.left.push(Leftover::SharedRow(row));
            }
            How::Written | How::Leaving => removal.rows.push(row),
        }
    }
    Ok(removal)
}

/// Whether SNAT of others needs the pools.
async fn needs_pools(api: &ConfigApi, off: &[Network], records: &Records) -> Result<bool, Error> {
    if !records.other_networks.is_empty() {
        return Ok(true);
    }
    let needs = |network: Fields| {
        let is_off = off.iter().any(|one| one.uuid == text(&network, "uuid"));
        (network.get("fabric_snat") == Some(&Value::Bool(true)) && !is_off).then_some(())
    };
    Ok(!api.list("virtual-network", &["fabric_snat"], &[], needs).await?.is_empty())
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
) -> Result<Removed, Error> {
    let calls = api.calls();
    if removal_confirmed(api, cluster, timing.confirm).await?.is_nothing() {
        return Ok(Removed { calls: api.calls() - calls, ..Removed::default() });
    }
    // Over all steps: who else needs what is taken away must not change until the record is gone.
    let lock = lock::acquire(api, &cluster.to_string(), timing.lock).await?;
    let done = under(api, cluster, timing, &lock, save).await;
    lock.release().await;
    Ok(Removed { calls: api.calls() - calls, ..done? })
}

async fn under<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    api: &ConfigApi,
    cluster: &ClusterId,
    timing: &Timing,
    lock: &Lock<'_>,
    save: impl AsyncFnOnce(Value) -> Result<String, E>,
) -> Result<Removed, Error> {
    // Before the first write, also where it is not one of the rows.
    let backup = saved(api, save).await?;
    let Removal { cluster: _, snat_off, pools, rows: _, mut left } =
        removal_confirmed(api, cluster, timing.confirm).await?;
    for network in &snat_off {
        match snat::set(api, &network.uuid, Snat::Off).await {
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
    let request =
        Request { cluster, rows: &[], foreign: Foreign::Respect, unwanted: Unwanted::Remove };
    let kept = async |_| Ok::<_, std::convert::Infallible>(backup.clone());
    let mut rows = rows::apply_under(api, &request, timing, lock, kept).await?;
    rows.backup = Some(backup.clone());
    note(api, cluster, timing.confirm, |record, _| {
        record.snat.clear();
        record.pools = Pools::Theirs;
    })
    .await?;
    Ok(Removed { snat_off, pools, rows, left, calls: 0 })
}
