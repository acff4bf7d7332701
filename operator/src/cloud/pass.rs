//! What passes over both kinds have in common: who the object is, its Events, how it goes, and whether what others have
//! changed is put right.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType};
use opensdn_config_api::ConfigApi;
use opensdn_config_api::apply::{Request, apply, preview};
use opensdn_config_api::edit::{Foreign, Unwanted};
use opensdn_config_api::link_local::Row;
use opensdn_config_api::ownership::ClusterId;
use opensdn_config_api::vrouter_config;
use opensdn_crds::status::Condition;
use serde_json::Value;

use super::condition::Said;
use super::settled::{Found, Next};
use super::share::{NO_ROOM, Room};
use super::{Clouds, backup, failure, fights, finalizer, timing};
use crate::names;
use crate::reconcile::{Context, Error};

/// One pass.
pub(super) struct Pass<'a> {
    pub(super) ctx: &'a Context,
    pub(super) clouds: &'a Clouds,
    pub(super) resource: &'a ApiResource,
    pub(super) object: Arc<DynamicObject>,
}

/// What was said of the object before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Earlier {
    /// What it wants now is in place: what differs, another has changed.
    InPlace,
    /// Anything else.
    Other,
}

impl Pass<'_> {
    pub(super) fn uid(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(super) fn generation(&self) -> Option<i64> {
        self.object.metadata.generation
    }

    /// By what its own record in the cloud is known.
    pub(super) fn id(&self) -> Result<ClusterId, Said> {
        record(self.uid())
    }

    /// The conditions that it has.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let all = self.object.data.pointer("/status/conditions").cloned().unwrap_or_default();
        serde_json::from_value(all).unwrap_or_default()
    }

    /// What its condition of that type said of this generation.
    pub(super) fn earlier(&self, type_: &str) -> Earlier {
        let is = self.conditions().iter().any(|one| {
            one.type_ == type_
                && one.status == "True"
                && one.observed_generation == self.generation()
        });
        if is { Earlier::InPlace } else { Earlier::Other }
    }

    /// Its turn: what the cloud was found to be, where only that is to be asked, and room for the pass. Else when it is tried
    /// again. One that goes wants nothing, and never rests.
    pub(super) fn turn(&self, wanted: Option<&str>) -> Result<(Option<Found>, Room<'_>), Action> {
        let Clouds { settled, share, interval, .. } = self.clouds;
        let next = wanted.map(|wanted| settled.next(self.uid(), wanted, *interval, Instant::now()));
        let found = match next {
            Some(Next::Rest(rest)) => return Err(Action::requeue(rest)),
            Some(Next::Ask(found)) => Some(found),
            Some(Next::Read) | None => None,
        };
        let Some(room) = share.take(&self.object.namespace().unwrap_or_default()) else {
            settled.ask(self.uid());
            return Err(Action::requeue(NO_ROOM));
        };
        Ok((found, room))
    }

    /// Whether the cloud is as it was found, so that there is nothing to do; else all is to be read.
    pub(super) async fn is_as_found(&self, api: &ConfigApi, found: Option<Found>) -> bool {
        let settled = &self.clouds.settled;
        match found {
            Some(found) if found.is_so(api).await => {
                settled.asked(self.uid(), found, Instant::now());
                true
            }
            _ => {
                settled.forget(self.uid());
                false
            }
        }
    }

    /// The UUID and the version of the object with the rows, before it is looked at whole. Where they are not known, all is
    /// read the next time.
    pub(super) async fn version_of_rows(&self, api: &ConfigApi) -> Option<(String, String)> {
        let config = vrouter_config::read(api).await.ok()?;
        Some((config.uuid, config.etag))
    }

    /// Notes that this wish is in place, so that it need not be read whole while the version is that from before. After a
    /// write it is another, and all is read once more. `network` is one on which SNAT is on.
    pub(super) fn settle(
        &self,
        rows: Option<(String, String)>,
        wanted: &str,
        network: Option<String>,
    ) {
        if let Some(rows) = rows {
            self.clouds.settled.read(self.uid(), wanted, rows, network, Instant::now());
        }
    }

    /// After that was said of it: what was asked of a cloud in vain is not asked again at each event.
    pub(super) fn look_again(&self, said: &Said, wanted: &str) -> Action {
        let rest = said.look_again_after(self.clouds.interval);
        if !said.is_in_place() && !said.is_of_the_way() {
            self.clouds.settled.failed(self.uid(), wanted, rest, Instant::now());
        }
        Action::requeue(rest)
    }

    /// Saves the rows of the cloud before the first write.
    pub(super) async fn save(&self, rows: &Value) -> Result<String, backup::Error> {
        backup::save(self.ctx, &self.resource.kind, &self.object, rows).await
    }

    /// The same before a removal: in a namespace that is deleted nothing can be made, and only what is ours is taken away.
    pub(super) async fn save_if_possible(&self, rows: &Value) -> Result<String, Infallible> {
        Ok(self.save(rows).await.unwrap_or_else(|error| format!("nowhere: {error}")))
    }

    /// All of the object that says what it wants.
    pub(super) fn wanted(&self) -> String {
        let metadata = &self.object.metadata;
        format!("{:?} {:?}", metadata.generation, metadata.annotations)
    }

    /// Why nothing is written, as a user wants it.
    pub(super) fn paused(&self) -> Option<String> {
        names::paused(&self.object, None)
    }

    pub(super) async fn publish(&self, event: Event) {
        self.ctx.reporter.publish(self.resource, &self.object, event).await;
    }

    /// The finalizer comes before the first write.
    pub(super) async fn keep(&self) -> Result<(), Error> {
        if !finalizer::is_set(&self.object) {
            finalizer::set(self.ctx, self.resource, &self.object).await?;
        }
        Ok(())
    }

    /// Why what has drifted is left so: it was put right too often.
    pub(super) fn given_up(&self, drifted: &str) -> Option<Said> {
        let fights = &self.clouds.fights;
        let left = fights.given_up_for(self.uid(), &self.wanted(), Instant::now())?;
        let message = format!(
            "OSDN3099: another writer has changed it {} times, and it is left so for {} minutes: find that writer (an open \
             page of the Web UI, provision_linklocal.py, another program), then annotate this object, or change it, to have it \
             tried at once; {drifted}",
            fights::MOST,
            left.as_secs().div_ceil(60),
        );
        Some(Said::stalled("GivenUp", message))
    }

    /// What had drifted is put right.
    pub(super) async fn repaired(&self, drifted: String) {
        let (namespace, name) = (&self.object.metadata.namespace, &self.object.metadata.name);
        tracing::info!(kind = self.resource.kind, namespace, name, drifted, "repaired a drift");
        self.clouds.fights.count(self.uid(), &self.wanted(), Instant::now());
        self.publish(Event {
            type_: EventType::Warning,
            reason: "DriftRepaired".to_owned(),
            note: Some(drifted),
            action: "Repair".to_owned(),
            secondary: None,
        })
        .await;
    }

    /// Writes the rows, unless they are there or were put right too often.
    pub(super) async fn write_rows(
        &self,
        api: &ConfigApi,
        id: &ClusterId,
        rows: &[Row],
        earlier: Earlier,
    ) -> Result<Result<(), Said>, Error> {
        let timing = timing();
        let (foreign, unwanted) = (Foreign::Respect, Unwanted::Remove);
        let request = Request { cluster: id, rows, foreign, unwanted };
        let changes = match preview(api, &request, &timing).await {
            Ok(edit) => edit.changes,
            Err(error) => return Ok(Err(self.failed(&error.into()))),
        };
        let drifted: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let drifted = drifted.join("; ");
        if let Some(why) = self.paused() {
            return Ok(Err(Said::paused(&why, &drifted)));
        }
        if let Some(said) = self.given_up(&drifted).filter(|_| !drifted.is_empty()) {
            return Ok(Err(said));
        }
        let save = async |rows: Value| self.save(&rows).await;
        if let Err(error) = apply(api, &request, &timing, save).await {
            return Ok(Err(self.failed(&error.into())));
        }
        if !drifted.is_empty() && earlier == Earlier::InPlace {
            self.repaired(drifted).await;
        }
        Ok(Ok(()))
    }

    /// It could not be done.
    pub(super) fn failed(&self, error: &opensdn_nested_cloud::Error) -> Said {
        if failure::is_fight(error) {
            self.clouds.fights.count(self.uid(), &self.wanted(), Instant::now());
        }
        failure::said(error)
    }

    /// Why what it has in the cloud is not taken away yet, as a user wants it.
    pub(super) fn stays(&self) -> Option<Said> {
        let why = self.paused().filter(|_| !finalizer::is_left(&self.object))?;
        Some(Said::paused(&why, "it is deleted after that"))
    }

    /// Lets the object go when what it has in the cloud is taken away, or cannot be for too long; else what is to be said
    /// of it.
    pub(super) async fn go<'t>(
        &self,
        id: &ClusterId,
        take_away: impl Fn() -> BoxFuture<'t, Result<Event, Said>>,
    ) -> Result<Option<Said>, Error> {
        // Before anything is asked that may not answer.
        let taken = if finalizer::is_left(&self.object) {
            Err(Said::waits("Left", "it was not tried".to_owned()))
        } else {
            let take_away = |_| take_away().map(Ok).boxed();
            self.clouds.limited(take_away).await?.and_then(|taken| taken)
        };
        let event = match taken {
            Ok(event) => event,
            Err(said) => {
                let failing = self.clouds.since.time(self.uid(), "removal", Instant::now());
                let why = finalizer::left_behind(&self.object, failing);
                let Some(why) = why else { return Ok(Some(said)) };
                let remedy = format!(
                    "take it away: kubectl opensdn nested remove --cluster-id {id} --config-api URL"
                );
                tracing::warn!(
                    kind = self.resource.kind,
                    namespace = self.object.metadata.namespace,
                    name = self.object.metadata.name,
                    why,
                    remedy,
                    "left behind in the cloud"
                );
                finalizer::event(why, said.message(), &remedy)
            }
        };
        self.publish(event).await;
        finalizer::release(self.ctx, self.resource, &self.object).await?;
        self.forget();
        Ok(None)
    }

    /// The object is gone, or has nothing in a cloud.
    pub(super) fn forget(&self) -> Action {
        self.ctx.reporter.forget(&self.object);
        self.clouds.forget(&self.object);
        Action::await_change()
    }
}

/// By what a record in the cloud is known.
pub(super) fn record(id: &str) -> Result<ClusterId, Said> {
    ClusterId::new(id).map_err(|error| Said::stalled("RecordUnusable", error.to_string()))
}
