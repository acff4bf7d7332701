//! NestedCluster and LinkLocalService: what these objects want of a cloud is written into its Config API, looked at
//! again and again, and put right where others have changed it, but not without an end. How the Config API is read and
//! written is not known here: `opensdn-config-api` and `opensdn-nested-cloud` do it.
//!
//! ```text
//! connection           the way to a Config API by what an object and its Secrets say
//! connections          the clients, and the watch of each
//! network              one pass over a Config, for what its Config API has to know
//! own_config           the way to the Config API of a Config
//! nested_cluster       one pass over a NestedCluster
//! link_local_service   one pass over a LinkLocalService
//! pass                 what they have in common
//! finalizer            what keeps an object until its rows are taken away, and no longer than a while
//! fights               how often what others change is put right
//! settled              what need not be read again yet
//! since                since when something is so
//! share                how much of the operator the clouds of one namespace may take
//! backup               the rows as they were before the first write
//! condition            what is said of an object; failure: what, where something was not done
//! ```

mod backup;
mod condition;
mod connection;
mod connections;
mod failure;
mod fights;
mod finalizer;
mod link_local_service;
mod nested_cluster;
mod network;
mod own_config;
mod pass;
mod settled;
mod share;
mod since;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Stream, StreamExt as _};
use kube::Client;
use kube::api::DynamicObject;
use opensdn_config_api::apply::Timing;
use opensdn_config_api::lock;
use opensdn_runtime::apply::Context as Writer;
use opensdn_runtime::leader::Leadership;

pub use connections::User;

use condition::Said;
use connections::Connections;
use fights::Fights;
use settled::Settled;
use share::{Attempt, Share, busy};
use since::Since;

use crate::names;
use crate::reconcile::Error;

pub(crate) use link_local_service::reconcile as reconcile_service;
pub(crate) use nested_cluster::reconcile as reconcile_cluster;
pub(crate) use network::reconcile as reconcile_network;

/// So many writes at most in one pass: what another writer overwrites at once, it overwrites later, too.
const ATTEMPTS: u32 = 3;

/// How long the lock is waited for.
const LOCK: Duration = Duration::from_secs(10);
/// How long a pass may be at work in a cloud.
const LONGEST: Duration = Duration::from_secs(180);

/// What passes over these objects remember.
pub struct Clouds {
    connections: Connections,
    fights: Fights,
    settled: Settled,
    since: Since,
    share: Share,
    /// Writes conditions beside those of components.
    writer: Writer,
    /// How often a cloud is looked at.
    interval: Duration,
    /// After that a node that is gone is registered no more.
    forget_after: Duration,
}

impl Clouds {
    /// Nothing is known of any cloud yet; each is looked at after `interval` at the latest, and a node that has
    /// been gone for `forget_after` is registered no more.
    #[must_use]
    pub fn new(
        client: Client,
        leadership: Leadership,
        interval: Duration,
        forget_after: Duration,
    ) -> Self {
        Self {
            connections: Connections::new(Arc::new(move || leadership.may_write())),
            fights: Fights::default(),
            settled: Settled::default(),
            since: Since::default(),
            share: Share::default(),
            writer: Writer::new(client, names::NETWORK_OPERATOR),
            interval,
            forget_after,
        }
    }

    /// The objects whose clouds have changed. Each is to be looked at, though nothing of it has changed.
    pub(crate) fn changes(&self) -> Option<impl Stream<Item = User> + use<'_>> {
        let changes = self.connections.changes()?;
        Some(changes.inspect(|user| self.settled.ask(&user.uid)))
    }

    /// Does the work of a pass within the limits of memory and time; else what is said of the object.
    async fn limited<'w, T>(
        &self,
        work: impl Fn(Attempt) -> BoxFuture<'w, Result<T, Error>>,
    ) -> Result<Result<T, Said>, Error> {
        let done = async { self.share.limited(work).await.transpose() };
        Ok(bounded(done).await?.map_or_else(|| Err(too_slow()), |done| done.ok_or_else(busy)))
    }

    /// Knows nothing any more of an object that is not there.
    pub(crate) fn forget(&self, object: &DynamicObject) {
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        self.connections.forget(uid);
        self.fights.forget(uid);
        self.settled.forget(uid);
        self.since.forget_all_of(uid);
    }
}

/// How rows are written. Who finds the lock taken comes again, and holds up no other object.
fn timing() -> Timing {
    let lock = lock::Timing { wait: LOCK, ..lock::Timing::default() };
    Timing { attempts: ATTEMPTS, lock, ..Timing::default() }
}

/// What a pass does in a cloud, unless that takes too long: what it has begun the next one continues.
async fn bounded<T>(work: impl Future<Output = Result<T, Error>>) -> Result<Option<T>, Error> {
    match tokio::time::timeout(LONGEST, Box::pin(work)).await {
        Ok(done) => done.map(Some),
        Err(_) => Ok(None),
    }
}

/// What is said where it took too long.
fn too_slow() -> Said {
    let message = format!(
        "OSDN3098: the Config API took longer than {} s for all that was asked of it; it is tried again",
        LONGEST.as_secs()
    );
    Said::waits("TooSlow", message)
}
