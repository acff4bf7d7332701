//! One pass over a NestedCluster: its plan is made of its spec and the cloud, and carried out where the cloud is
//! otherwise. A cloud that cannot be asked, or a plan with errors, leaves everything as it is.

mod input;
mod removal;
mod status;

use std::sync::Arc;

use futures::FutureExt as _;
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::controller::Action;
use opensdn_config_api::ConfigApi;
use opensdn_config_api::limits;
use opensdn_config_api::ownership::{ClusterId, Record};
use opensdn_config_api::virtual_network;
use opensdn_crds::nested_cluster::NestedClusterSpec;
use opensdn_crds::status::READY;
use opensdn_nested::drift::State;
use opensdn_nested::plan::SnatAction;
use opensdn_nested::{Drift, Fact, Input, Plan, drift, plan};
use opensdn_nested_cloud::{Asked, apply, survey};
use opensdn_runtime::error_chain;
use serde_json::Value;

use super::condition::{NO_CONNECTION, Said};
use super::connection::{self, of_spec};
use super::pass::{Earlier, Pass, record};
use super::settled::Found;
use super::share::{Attempt, busy};
use super::{Clouds, failure, timing};
use crate::kind::Kind;
use crate::object::text;
use crate::reconcile::{Context, Error};
use input::{Facts, input};
use status::Report;

/// Makes one pass.
///
/// # Errors
/// A call of the cluster fails. What fails in the cloud is in the status of the object.
pub(crate) async fn reconcile(
    ctx: &Context,
    clouds: &Clouds,
    resource: &ApiResource,
    object: Arc<DynamicObject>,
) -> Result<Action, Error> {
    let pass = Pass { ctx, clouds, resource, object: ctx.reporter.newest(object) };
    let spec = pass.object.data.get("spec").cloned().unwrap_or(Value::Null);
    let spec = serde_json::from_value::<NestedClusterSpec>(spec);
    let is_going = pass.object.metadata.deletion_timestamp.is_some();
    let wanted = (!is_going).then(|| pass.wanted());
    let (found, _room) = match pass.turn(wanted.as_deref()) {
        Ok(turn) => turn,
        Err(later) => return Ok(later),
    };
    if is_going {
        return pass.remove(spec.ok().as_ref()).await;
    }
    let report = match spec {
        Ok(spec) => {
            let look = |attempt| pass.look(&spec, found.clone(), attempt).boxed();
            clouds.limited(look).await?.unwrap_or_else(|said| Some(Report::of(said)))
        }
        Err(error) => Some(Report::of(Said::stalled("Unreadable", error.to_string()))),
    };
    match report {
        Some(report) => pass.say(report).await,
        None => Ok(Action::requeue(clouds.interval)),
    }
}

/// What was read of a cloud, and is to be done there.
struct Seen {
    api: Arc<ConfigApi>,
    input: Input,
    plan: Plan,
    drift: Vec<Drift>,
}

impl Seen {
    fn drifted(&self) -> impl Iterator<Item = &Drift> {
        self.drift.iter().filter(|one| !one.state.is_served())
    }

    /// The first few, in words.
    fn drifted_in_words(&self) -> String {
        in_words(self.drifted().collect())
    }

    /// The same without what the spec or its annotations want to go.
    fn drifted_by_others_in_words(&self) -> String {
        in_words(self.drifted().filter(|one| one.state != State::Orphan).collect())
    }
}

fn in_words(drifted: Vec<&Drift>) -> String {
    const MOST: usize = 3;
    let mut texts: Vec<String> = drifted
        .iter()
        .take(MOST)
        .map(|one| match one.state.code() {
            Some(code) => format!("{code} {one}"),
            None => one.to_string(),
        })
        .collect();
    let more = drifted.len().saturating_sub(MOST);
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    texts.join("; ")
}

impl Pass<'_> {
    /// By what the record in the cloud is known: one that it continues, or its own.
    fn record(&self, given: Option<&str>) -> Result<ClusterId, Said> {
        given.map_or_else(|| self.id(), record)
    }

    /// The client, and the record that the login has it continue.
    async fn connect(
        &self,
        spec: &NestedClusterSpec,
    ) -> Result<(Arc<ConfigApi>, Option<String>), connection::Error> {
        let way = of_spec(self.ctx, &self.object, &spec.config_api).await?;
        let record = way.record.clone();
        let api = self.clouds.connections.client(&self.resource.kind, &self.object, way)?;
        Ok((api, record))
    }

    /// Another NestedCluster that had the name of the cluster before: what both have in the cloud could not be told apart.
    fn holder_of_name(&self, spec: &NestedClusterSpec) -> Option<String> {
        let age = |one: &DynamicObject| {
            (one.metadata.creation_timestamp.clone(), one.metadata.uid.clone())
        };
        let namespace = self.object.metadata.namespace.clone().unwrap_or_default();
        let all = self.ctx.cache.list(Kind::NestedCluster, &namespace);
        let mut others = all.iter().filter(|one| one.metadata.uid != self.object.metadata.uid);
        let holder = others.find(|one| {
            text(&one.data, "/spec/clusterName") == spec.cluster_name
                && age(one) < age(&self.object)
        });
        holder.map(|holder| holder.name_any())
    }

    /// What is to be said of it, unless all is as it was found before.
    async fn look(
        &self,
        spec: &NestedClusterSpec,
        found: Option<Found>,
        attempt: Attempt,
    ) -> Result<Option<Report>, Error> {
        if let Some(holder) = self.holder_of_name(spec) {
            let message = format!(
                "OSDN3033: the NestedCluster {holder} has the clusterName {} already: give this one another, or delete one",
                spec.cluster_name
            );
            return Ok(Some(Report::of(Said::stalled("ClusterNameTaken", message))));
        }
        let (api, record) = match self.connect(spec).await {
            Ok(connected) => connected,
            Err(connection::Error::Call(error)) => return Err(Error::Call(error)),
            Err(error) => {
                let said = Said::stalled(NO_CONNECTION, error_chain(&error));
                return Ok(Some(Report::of(said)));
            }
        };
        if self.is_as_found(&api, found).await {
            return Ok(None);
        }
        let seen = match self.read(api, record.as_deref(), spec, attempt).await {
            Ok(seen) => seen,
            Err(said) => return Ok(Some(Report::of(said))),
        };
        let said = match self.paused() {
            Some(why) => Said::paused(&why, &seen.drifted_in_words()),
            None if !seen.plan.is_applicable() => status::refused(&seen.plan),
            None => match &seen.plan.whose_name {
                Some(why) => status::whose_name(why),
                None => self.make_so(&seen).await?,
            },
        };
        Ok(Some(Report::with(said, &seen.plan, seen.drift)))
    }

    /// Reads the cloud and makes the plan.
    async fn read(
        &self,
        api: Arc<ConfigApi>,
        record: Option<&str>,
        spec: &NestedClusterSpec,
        attempt: Attempt,
    ) -> Result<Seen, Said> {
        let id = self.record(record)?;
        let input = input(&id, spec, Facts::of(&self.ctx.cache, &self.object, spec), &self.object)?;
        let asked = Asked {
            id: &id,
            cluster: &input.cluster,
            network: &input.network,
            nodes: &input.choices.kubernetes.nodes,
        };
        let live = survey(&api, &asked).await.map_err(|error| failure::said(&error.into()))?;
        // Nothing is written by what a look with larger limits knows better.
        if attempt == Attempt::Small && limits::are_exceeded() {
            return Err(busy());
        }
        // Its own has no name until its first run is done.
        if let (Fact::Known(records), Some(_)) = (&live.records, record) {
            is_of_cluster(&records.ours, &id, &input.cluster)?;
        }
        let plan = plan(&input, &live);
        let drift = drift(&plan);
        Ok(Seen { api, input, plan, drift })
    }

    /// Carries the plan out, unless that was done too often.
    async fn make_so(&self, seen: &Seen) -> Result<Said, Error> {
        let drifted = seen.drifted_in_words();
        if let Some(said) = self.given_up(&drifted).filter(|_| !drifted.is_empty()) {
            return Ok(said);
        }
        self.keep().await?;
        let save = async |rows: Value| self.save(&rows).await;
        let foreign = input::foreign(&seen.input);
        let before = self.version_of_rows(&seen.api).await;
        match apply(&seen.api, &seen.plan, foreign, &timing(), save).await {
            Ok(_) => {
                let by_others = seen.drifted_by_others_in_words();
                if !by_others.is_empty() && self.earlier(READY) == Earlier::InPlace {
                    self.repaired(by_others).await;
                }
                // After a write all is read once more: what was said before it is not so any more.
                if drifted.is_empty() {
                    self.settle_all(seen, before).await;
                }
                Ok(status::in_place(&seen.plan))
            }
            Err(error) => Ok(self.failed(&error)),
        }
    }

    /// The same with the network on which SNAT is on.
    async fn settle_all(&self, seen: &Seen, before: Option<(String, String)>) {
        let name = &seen.plan.network;
        let network = match seen.plan.snat {
            SnatAction::Leave => None,
            _ => match virtual_network::id_of(&seen.api, &name.domain, &name.project, &name.name)
                .await
            {
                Ok(Some(network)) => Some(network),
                // All is read again the next time.
                _ => return,
            },
        };
        self.settle(before, &self.wanted(), network);
    }

    async fn say(&self, report: Report) -> Result<Action, Error> {
        let again = self.look_again(&report.said, &self.wanted());
        let stored = status::before(&self.object).unwrap_or_default();
        let status = report.status(&stored, self.generation(), &crate::reconcile::now());
        let (stored, status) = (serde_json::json!(stored), serde_json::json!(status));
        self.ctx.reporter.report(self.resource, &self.object, &stored, status).await?;
        Ok(again)
    }
}

/// What another cluster has is not given away.
fn is_of_cluster(record: &Record, id: &ClusterId, cluster: &str) -> Result<(), Said> {
    match &record.cluster {
        Some(other) if other == cluster => Ok(()),
        None if record.is_empty() => Ok(()),
        other => Err(Said::stalled(
            "RecordOfAnother",
            format!(
                "the record {id} in the cloud is that of {}: OPENSDN_RECORD of the login's Secret has to be the uid of this \
                 cluster's namespace kube-system",
                other.as_ref().map_or_else(
                    || "something else than a cluster".to_owned(),
                    |other| format!("the cluster {other:?}")
                )
            ),
        )),
    }
}
