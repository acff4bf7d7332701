//! What a NestedCluster has in its cloud is taken away before it goes, by the record there: what was there before, or
//! what another cluster uses, stays.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::ready;
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType};
use opensdn_config_api::ownership::{ClusterId, Records};
use opensdn_config_api::{ConfigApi, vrouter_config};
use opensdn_crds::nested_cluster::NestedClusterSpec;
use opensdn_nested_cloud::{Removed, remove};
use opensdn_runtime::error_chain;
use serde_json::Value;

use super::is_of_cluster;
use super::status::Report;
use crate::cloud::condition::{NO_CONNECTION, Said};
use crate::cloud::pass::Pass;
use crate::cloud::{failure, finalizer, timing};
use crate::reconcile::Error;

/// So much of what stays is said in one Event.
const MOST: usize = 6;

impl Pass<'_> {
    /// Takes it away, and lets the object go.
    pub(super) async fn remove(&self, spec: Option<&NestedClusterSpec>) -> Result<Action, Error> {
        if !finalizer::is_set(&self.object) {
            return Ok(self.forget());
        }
        if let Some(said) = self.stays() {
            self.say(Report::of(said)).await?;
            return Ok(Action::await_change());
        }
        let connected = match spec {
            Some(spec) => self.connected(spec).await.map(|(api, record)| (api, record, spec)),
            None => Err(Said::stalled("Unreadable", "its spec cannot be read".to_owned())),
        };
        let record = connected.as_ref().ok().and_then(|(_, record, _)| record.as_deref());
        let id = match self.record(record) {
            Ok(id) => id,
            // Of its own it has nothing, for it has never written anything.
            Err(_) => return self.let_go().await,
        };
        if let Some(said) = spec.and_then(|spec| self.shares_record(&id, spec)) {
            tracing::info!(
                namespace = self.object.metadata.namespace,
                name = self.object.metadata.name,
                "{}",
                said
            );
            return self.let_go().await;
        }
        let take_away = || match &connected {
            Ok((api, _, spec)) => self.take_away(api, &id, spec).boxed(),
            Err(said) => ready(Err(said.clone())).boxed(),
        };
        if let Some(said) = self.go(&id, take_away).await? {
            return self.say(Report::of(said)).await;
        }
        Ok(Action::await_change())
    }

    /// What another has in the cloud by the same record is not taken away: that it has the name, too, is why this one has
    /// written nothing.
    fn shares_record(&self, id: &ClusterId, spec: &NestedClusterSpec) -> Option<String> {
        let holder = self.holder_of_name(spec)?;
        let is_own = id.to_string() == self.uid();
        (!is_own).then(|| format!("what the record {id} has in the cloud stays: it is that of the NestedCluster {holder}"))
    }

    async fn let_go(&self) -> Result<Action, Error> {
        finalizer::release(self.ctx, self.resource, &self.object).await?;
        Ok(self.forget())
    }

    /// The client, also where its Secret is gone already, as it may be in a namespace that is deleted.
    async fn connected(
        &self,
        spec: &NestedClusterSpec,
    ) -> Result<(Arc<ConfigApi>, Option<String>), Said> {
        match self.connect(spec).await {
            Ok(connected) => Ok(connected),
            Err(error) => {
                let last = self.clouds.connections.last(self.uid());
                last.ok_or_else(|| Said::stalled(NO_CONNECTION, error_chain(&error)))
            }
        }
    }

    /// What was done, or why it could not be.
    async fn take_away(
        &self,
        api: &ConfigApi,
        id: &ClusterId,
        spec: &NestedClusterSpec,
    ) -> Result<Event, Said> {
        if id.to_string() != self.uid() {
            is_still_of_cluster(api, id, &spec.cluster_name).await?;
        }
        let save = async |rows: Value| self.save_if_possible(&rows).await;
        let removed = remove(api, id, &timing(), save).await;
        removed.map(|removed| event(&removed)).map_err(|error| failure::said(&error))
    }
}

async fn is_still_of_cluster(api: &ConfigApi, id: &ClusterId, cluster: &str) -> Result<(), Said> {
    let config = vrouter_config::read(api).await.map_err(|error| failure::said(&error.into()))?;
    let records = Records::read(&config.annotations, id);
    let records = records.map_err(|error| failure::said(&error.into()))?;
    is_of_cluster(&records.ours, id, cluster)
}

fn event(removed: &Removed) -> Event {
    let mut note = format!("took away {} link-local services", removed.rows.changes.len());
    let networks: Vec<String> = removed.snat_off.iter().map(ToString::to_string).collect();
    if !networks.is_empty() {
        note = format!("{note}, and fabric SNAT of {}", networks.join(", "));
    }
    let left: Vec<String> = removed.left.iter().take(MOST).map(ToString::to_string).collect();
    if !left.is_empty() {
        let more = removed.left.len().saturating_sub(MOST);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        note = format!("{note}; left: {}{more}", left.join("; "));
    }
    Event {
        type_: EventType::Normal,
        reason: "TakenAway".to_owned(),
        note: Some(note),
        action: "Delete".to_owned(),
        secondary: None,
    }
}
