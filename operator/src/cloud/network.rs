//! One pass over a Config, for what its Config API has to know besides what its own pods provision: link-local services
//! of its settings, the order of encapsulations that the vrouters want, and which nodes are gone for good. Its condition
//! `NetworkWritten` says what came of it.

mod gone;
mod status;

use std::sync::Arc;

use futures::FutureExt as _;
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::controller::Action;
use opensdn_config_api::ConfigApi;
use opensdn_config_api::encapsulation::{self, Others, Priorities};
use opensdn_config_api::link_local::Row;
use opensdn_config_api::ownership::ClusterId;
use opensdn_crds::status::CommonStatus;
use opensdn_runtime::error_chain;

use super::condition::Said;
use super::own_config::{self, Reached};
use super::pass::{Pass, record};
use super::{Clouds, timing};
use crate::components::config_api::{self, encapsulations, members};
use crate::reconcile::{Context, Error};

use gone::Gone;

/// Makes one pass.
///
/// # Errors
/// A call of the cluster fails. What fails in the Config API is in the status of the object.
pub(crate) async fn reconcile(
    ctx: &Context,
    clouds: &Clouds,
    resource: &ApiResource,
    object: Arc<DynamicObject>,
) -> Result<Action, Error> {
    let pass = Pass { ctx, clouds, resource, object };
    // With it its Config API goes, and all that it knows.
    if pass.object.metadata.deletion_timestamp.is_some() {
        return Ok(pass.forget());
    }
    let interval = clouds.interval;
    if pass.paused().is_some() || !is_active(&pass.object) {
        return Ok(Action::requeue(interval));
    }
    let wanted = match Wanted::of(ctx, &pass.object) {
        Ok(wanted) => wanted,
        Err(said) => return status::say(&pass, &said).await.map(|()| Action::requeue(interval)),
    };
    let (found, _room) = match pass.turn(Some(&wanted.version())) {
        Ok(turn) => turn,
        Err(later) => return Ok(later),
    };
    let api = match own_config::connect(&pass, &wanted.reached).await? {
        Ok(api) => api,
        Err(said) => {
            status::say(&pass, &said).await?;
            return Ok(pass.look_again(&said, &wanted.version()));
        }
    };
    if pass.is_as_found(&api, found).await {
        return Ok(Action::requeue(interval));
    }
    let make_so = |_| make_so(&pass, &api, &wanted).boxed();
    let said = clouds.limited(make_so).await?.unwrap_or_else(|said| said);
    status::say(&pass, &said).await?;
    Ok(pass.look_again(&said, &wanted.version()))
}

/// Nothing is asked of an API that is not there yet.
fn is_active(object: &DynamicObject) -> bool {
    let status = object.data.get("status").cloned().unwrap_or_default();
    let status: CommonStatus = serde_json::from_value(status).unwrap_or_default();
    status.active.unwrap_or_default()
}

/// What the Config API is to know.
struct Wanted {
    reached: Reached,
    rows: Vec<Row>,
    /// Or why they cannot be.
    encapsulations: Result<Option<Priorities>, String>,
    gone: Gone,
}

impl Wanted {
    fn of(ctx: &Context, object: &Arc<DynamicObject>) -> Result<Self, Said> {
        let reached = Reached::of(ctx, object.clone());
        let unreadable = |why: String| Said::stalled("Unreadable", why);
        Ok(Self {
            rows: config_api::rows(object).map_err(unreadable)?,
            encapsulations: encapsulations(&reached.peers),
            gone: Gone::new(members(&reached.peers), &reached.nodes),
            reached,
        })
    }

    /// Another text for each other wish.
    fn version(&self) -> String {
        let rows: Vec<String> = self.rows.iter().map(ToString::to_string).collect();
        format!("{rows:?} {:?} {:?}", self.encapsulations, self.gone)
    }
}

/// Of the Config API, whose database outlives its object: one that is made again continues where the one before has ended.
fn id(pass: &Pass<'_>) -> Result<ClusterId, Said> {
    let namespace = pass.object.namespace().unwrap_or_default();
    record(&format!("config.{namespace}.{}", pass.object.name_any()))
}

/// Each of the three by itself: what is wrong with one holds none of the others up.
async fn make_so(pass: &Pass<'_>, api: &ConfigApi, wanted: &Wanted) -> Result<Said, Error> {
    let id = match id(pass) {
        Ok(id) => id,
        Err(said) => return Ok(said),
    };
    let earlier = pass.earlier(status::NETWORK_WRITTEN);
    let before = pass.version_of_rows(api).await;
    let rows = pass.write_rows(api, &id, &wanted.rows, earlier).await?;
    let order = match &wanted.encapsulations {
        Ok(wanted) => order(api, &id, wanted.as_ref()).await,
        Err(why) => Err(Said::stalled("Conflict", why.clone())),
    };
    let waits = match wanted.gone.forget(pass, api, &id).await {
        Ok(waits) => waits,
        Err(error) => return Ok(pass.failed(&error.into())),
    };
    if let Err(said) = rows.and(order) {
        return Ok(said);
    }
    // Until the last of them is gone nothing is settled.
    if !waits {
        pass.settle(before, &wanted.version(), None);
    }
    let order = wanted.encapsulations.as_ref().ok().and_then(Option::as_ref);
    let order = order.map(|order| format!(", encapsulations {order}")).unwrap_or_default();
    Ok(Said::in_place(format!("{} link-local services{order}", wanted.rows.len())))
}

/// The value that is the network's stays when no vrouter wants one any more.
async fn order(api: &ConfigApi, id: &ClusterId, wanted: Option<&Priorities>) -> Result<(), Said> {
    let failed = |error: encapsulation::Error| match error {
        encapsulation::Error::Api(error) => super::failure::said(&error.into()),
        error => Said::waits("Failed", error_chain(&error)),
    };
    let Some(wanted) = wanted else {
        return encapsulation::release(api, id, &timing()).await.map_err(failed);
    };
    // The provisioner of the Config's own pod sets an order once, with other defaults, and takes an API that has one for
    // one that has them all.
    let current = encapsulation::read(api, &timing()).await.map_err(failed)?;
    if current.stored.seen().is_empty() && current.record.is_none() {
        let message = "waiting for the provisioner of the Config to give the API its defaults";
        return Err(Said::waits("NotProvisioned", message.to_owned()));
    }
    let request = encapsulation::Request { owner: id, wanted, others: Others::Respect };
    match encapsulation::ensure(api, &request, &timing()).await.map_err(failed)? {
        encapsulation::Outcome::Conflict(conflict) => Err(Said::stalled(
            "Conflict",
            format!(
                "{conflict}: set encapsulationPriorities of the vrouters to that, or change it back in the Config API"
            ),
        )),
        _ => Ok(()),
    }
}
