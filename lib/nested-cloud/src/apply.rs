//! Carries out a plan: the port pools that SNAT needs, the link-local services, then SNAT itself, so that nothing is
//! cut off that the next step needs. Each step leaves alone what is as it should be, so the same plan again continues
//! one that was interrupted. Whether the world is still that of the plan is for the caller to look at.

use std::time::Duration;

use opensdn_config_api::ConfigApi;
use opensdn_config_api::apply::{self as rows, Outcome, Request, Timing};
use opensdn_config_api::edit::Foreign;
use opensdn_config_api::link_local::Row;
use opensdn_config_api::lock::{self, Lock};
use opensdn_config_api::ownership::{ClusterId, Pools, Records};
use opensdn_config_api::virtual_network::{self, Snat};
use opensdn_config_api::vrouter_config::{self, EnsuredPools};
use opensdn_nested::Plan;
use opensdn_nested::plan::{PoolsAction, SnatAction};
use serde_json::Value;

use crate::error::Error;
use crate::former;
use crate::record::{note, read, saved};
use crate::remove::Network;
use crate::snat::{self, SnatDone, SnatError};

/// What was done.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The port pools, where SNAT needs them.
    pub pools: Option<EnsuredPools>,
    /// The rows.
    pub rows: Outcome,
    /// SNAT.
    pub snat: SnatDone,
    /// Networks on which it was switched off, as they are not those of the nodes any more.
    pub snat_off: Vec<Network>,
    /// How many requests were sent.
    pub calls: u64,
}

/// Carries out the plan. `save` gets the rows before the first write and says where they are then.
///
/// # Errors
/// A step fails; those before it are done, and the same call continues.
pub async fn apply<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    api: &ConfigApi,
    plan: &Plan,
    foreign: Foreign,
    timing: &Timing,
    save: impl AsyncFnOnce(Value) -> Result<String, E>,
) -> Result<Applied, Error> {
    let calls = api.calls();
    let cluster = ClusterId::new(&plan.record)?;
    let all: Vec<Row> = plan.rows.iter().map(|row| row.row()).collect();
    let work = Work {
        api,
        plan,
        cluster: &cluster,
        network: network(api, plan).await?,
        request: Request { cluster: &cluster, rows: &all, foreign, unwanted: plan.unwanted() },
        timing,
    };
    if work.is_done().await? {
        let pools = work.network.as_ref().map(|_| EnsuredPools::Present);
        let snat = work.network.as_ref().map_or(SnatDone::Left, |_| SnatDone::AsWanted);
        let (rows, snat_off) = (Outcome::default(), Vec::new());
        return Ok(Applied { pools, rows, snat, snat_off, calls: api.calls() - calls });
    }
    // Over all steps: what one of them finds, such as who needs SNAT, must be so until the last one is done.
    let lock = lock::acquire(api, &cluster.to_string(), timing.lock).await?;
    let done = work.carry_out(&lock, save).await;
    lock.release().await;
    Ok(Applied { calls: api.calls() - calls, ..done? })
}

/// What there is to do, and for whom.
struct Work<'a> {
    api: &'a ConfigApi,
    plan: &'a Plan,
    cluster: &'a ClusterId,
    /// On which SNAT is to be.
    network: Option<String>,
    request: Request<'a>,
    timing: &'a Timing,
}

impl Work<'_> {
    /// Whether nothing is left to do.
    async fn is_done(&self) -> Result<bool, Error> {
        let edit = rows::preview(self.api, &self.request, self.timing).await?;
        let config = read(self.api, self.timing.confirm).await?;
        let ours = Records::read(&config.annotations, self.cluster)?.ours;
        let is_noted = ours.rows == edit.held && ours.cluster.as_ref() == Some(&self.plan.cluster);
        if !edit.changes.is_empty() || !is_noted {
            return Ok(false);
        }
        if self.plan.prune && ours.snat.keys().any(|uuid| self.is_former(uuid)) {
            return Ok(false);
        }
        let Some(network) = &self.network else { return Ok(true) };
        let snat = virtual_network::fabric_snat(self.api, network).await?;
        Ok(snat == Some(Snat::On) && ours.snat.contains_key(network) && has_pools(&config.pools))
    }

    /// Whether a network of the record is not that of the nodes any more.
    fn is_former(&self, uuid: &String) -> bool {
        Some(uuid) != self.network.as_ref()
    }

    async fn carry_out<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        &self,
        lock: &Lock<'_>,
        save: impl AsyncFnOnce(Value) -> Result<String, E>,
    ) -> Result<Applied, Error> {
        let (api, confirm) = (self.api, self.timing.confirm);
        // Before the first write, also where it is not one of the rows.
        let backup = saved(api, save).await?;
        let pools = match self.network {
            Some(_) => Some(pools(api, self.plan, self.cluster, confirm).await?),
            None => None,
        };
        let kept = async |_| Ok::<_, std::convert::Infallible>(backup.clone());
        let mut rows = rows::apply_under(api, &self.request, self.timing, lock, kept).await?;
        rows.backup = Some(backup.clone());
        let name = Some(self.plan.cluster.clone());
        let mut has_former = false;
        note(api, self.cluster, confirm, |record, _| {
            record.cluster = name;
            has_former = record.snat.keys().any(|uuid| self.is_former(uuid));
        })
        .await?;
        let snat = match &self.network {
            Some(network) => switch_on(api, network, self.cluster, confirm).await?,
            None => SnatDone::Left,
        };
        // Last, so that nodes are never without a way.
        let snat_off = match has_former && self.plan.prune {
            true => former::restore(api, self.cluster, self.network.as_deref(), confirm).await?,
            false => Vec::new(),
        };
        Ok(Applied { pools, rows, snat, snat_off, calls: 0 })
    }
}

/// Whether both protocols have one.
fn has_pools(pools: &[Value]) -> bool {
    let there: Vec<&str> = pools.iter().filter_map(vrouter_config::protocol_of).collect();
    ["tcp", "udp"].iter().all(|protocol| there.contains(protocol))
}

/// The network on which SNAT is to be; none where the plan leaves it.
async fn network(api: &ConfigApi, plan: &Plan) -> Result<Option<String>, Error> {
    match plan.snat {
        SnatAction::Leave => return Ok(None),
        SnatAction::Unknown => return Err(Error::Unread("fabric SNAT of the network")),
        SnatAction::AlreadyOn | SnatAction::Enable { .. } => {}
    }
    if plan.pools == PoolsAction::Unknown {
        return Err(Error::Unread("the port translation pools"));
    }
    let name = &plan.network;
    let found = virtual_network::id_of(api, &name.domain, &name.project, &name.name).await?;
    found.map(Some).ok_or_else(|| Error::NoNetwork(name.joined()))
}

/// That they are ours is noted first: a run that is killed in between leaves pools that the next one knows.
async fn pools(
    api: &ConfigApi,
    plan: &Plan,
    cluster: &ClusterId,
    confirm: Duration,
) -> Result<EnsuredPools, Error> {
    // Others may have added some since it was planned, and then they are theirs.
    let adds =
        matches!(plan.pools, PoolsAction::Add(_)) && read(api, confirm).await?.pools.is_empty();
    note(api, cluster, confirm, |record, others| {
        // The last cluster that needs them takes them away.
        if adds || others.other_pools == Pools::Ours {
            record.pools = Pools::Ours;
        }
    })
    .await?;
    Ok(vrouter_config::ensure_pools(api, confirm).await?)
}

/// Notes what it was before the first of our runs, and that this cluster depends on it, then switches it on.
async fn switch_on(
    api: &ConfigApi,
    network: &str,
    cluster: &ClusterId,
    confirm: Duration,
) -> Result<SnatDone, Error> {
    let before = virtual_network::fabric_snat(api, network).await?;
    let before = before.ok_or_else(|| SnatError::Gone(network.to_owned()))?;
    note(api, cluster, confirm, |record, others| {
        // Where another cluster has switched it on, the last of them switches it off.
        let before = match before {
            Snat::Off => Snat::Off,
            Snat::On => others.other_networks.get(network).copied().unwrap_or(Snat::On),
        };
        record.snat.entry(network.to_owned()).or_insert(before);
    })
    .await?;
    Ok(snat::set(api, network, Snat::On).await?)
}
