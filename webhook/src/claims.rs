//! Uniqueness that holds while requests run at the same time and over several replicas: the object
//! for which the `UniqueClaim` of a scope and key is created has it, because the API server lets
//! only one create of a name succeed.
//!
//! ```text
//! review --take--> ClaimGuard --commit--> the claim stays   (the object is stored, or the claim is
//!                             --drop----> it is rolled back  an orphan that the controller releases)
//! ```
//!
//! Here: taking, for a review that every policy has allowed. In `controller`: release of orphans,
//! claims of objects that were there before, and what is reported where two objects share a key.
//! Deliberately not here: what must be unique, which the policies decide.

pub(crate) mod args;
mod cache;
pub mod controller;
mod decide;
mod error;
mod holder;
mod known_conflicts;
mod ledger;
mod name;
mod owner;
mod policies;
mod report;
mod store;
mod take;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::{Api, Client};
use opensdn_crds::unique_claim::UniqueClaim;
use opensdn_policy_host::Claim;
use opensdn_policy_host::stored::{Found, StoredObject};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::metrics::Metrics;
use cache::Cache;
use holder::Holders;
use known_conflicts::KnownConflicts;
use take::Acquisition;

pub use decide::claim_name;
pub use error::{ClaimError, Conflict, HolderState};
pub use holder::Holder;
pub use name::NoName;
pub use take::ClaimGuard;

/// How long a claim without a holder stays: longer than the longest request of the API server
/// (60 s), so that a create in flight never loses its claim.
pub const GRACE: Duration = Duration::from_secs(90);

/// Takes claims for reviews; cheap to clone.
#[derive(Clone)]
pub struct Claims {
    inner: Arc<Inner>,
    _watch: Arc<AbortOnDropHandle<()>>,
}

struct Inner {
    api: Api<UniqueClaim>,
    holders: Holders,
    cache: Cache,
    conflicts: KnownConflicts,
    grace: Duration,
    metrics: Metrics,
}

impl Claims {
    /// Starts to watch the claims that exist. `grace` is [`GRACE`], in tests less.
    #[must_use]
    pub fn start(client: Client, grace: Duration, metrics: Metrics) -> Self {
        let inner = Arc::new(Inner {
            api: Api::all(client.clone()),
            holders: Holders::new(client.clone()),
            cache: Cache::default(),
            conflicts: KnownConflicts::default(),
            grace,
            metrics,
        });
        let watched = Arc::clone(&inner);
        let watch = tokio::spawn(async move { watched.cache.watch(client).await });
        Self { inner, _watch: Arc::new(AbortOnDropHandle::new(watch)) }
    }

    /// Whether the controller of this replica has found all objects that claim what an older one has.
    #[must_use]
    pub fn conflicts_are_known(&self) -> bool {
        self.inner.conflicts.are_all()
    }

    /// What the object claims although an older one has it, as far as the controller of this replica has found.
    #[must_use]
    pub fn conflicts_of(&self, stored: &StoredObject) -> Vec<Found> {
        self.inner.conflicts.of(stored)
    }

    /// Takes all claims for the holder, or none. Those that the stored object makes already
    /// (`old`, empty on create) and is known to have cost no call.
    ///
    /// A call that is dropped, and a guard that is dropped without [`ClaimGuard::commit`], roll back
    /// what they took.
    ///
    /// # Errors
    /// [`ClaimError::Held`] names every key that another object has; all others mean that it is not
    /// known who has it.
    pub async fn take(
        &self,
        holder: &Holder,
        claims: &[Claim],
        old: &[Claim],
        deadline: Instant,
    ) -> Result<ClaimGuard, ClaimError> {
        name::check(holder)?;
        let wanted = self.inner.not_settled(holder, claims, old);
        if wanted.is_empty() {
            return Ok(ClaimGuard::empty(&self.inner));
        }
        let (sender, receiver) = oneshot::channel();
        let acquisition = Acquisition::new(&self.inner, holder.clone(), wanted);
        // A create that is under way when the caller gives up may succeed all the same. So it is
        // not the caller's future that does it: the task finishes it and rolls it back.
        tokio::spawn(acquisition.run(sender));
        match timeout_at(deadline, receiver).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(ClaimError::Broken),
            Err(_) => Err(ClaimError::Deadline),
        }
    }

    /// Whether another object of the holder's name is stored now, so that a create of it is refused: its
    /// claims would keep their keys from everybody until they are released. Where that cannot be known in
    /// a quarter of the time that is left, the claims are taken, as for a name that is free.
    pub async fn is_name_taken(&self, holder: &Holder, deadline: Instant) -> bool {
        let stored = holder.with_pointer("");
        let until = first_quarter(Instant::now(), deadline);
        match timeout_at(until, self.inner.holders.stored_uid(&stored)).await {
            Ok(Ok(uid)) => uid.is_some_and(|uid| uid != holder.uid),
            Err(_) => false,
            Ok(Err(error)) => {
                tracing::debug!(
                    error = opensdn_runtime::error_chain(&error),
                    "failed to look whether the name of a new object is taken"
                );
                false
            }
        }
    }

    /// Whether all claims could be taken now, for a dry run: nothing is written.
    ///
    /// # Errors
    /// As [`Claims::take`].
    pub async fn check(
        &self,
        holder: &Holder,
        claims: &[Claim],
        deadline: Instant,
    ) -> Result<(), ClaimError> {
        name::check(holder)?;
        let wanted = self.inner.not_settled(holder, claims, claims);
        let acquisition = Acquisition::new(&self.inner, holder.clone(), wanted);
        timeout_at(deadline, acquisition.check()).await.map_err(|_| ClaimError::Deadline)?
    }
}

/// When a quarter of the time until `deadline` is over: the rest is for what comes after.
fn first_quarter(now: Instant, deadline: Instant) -> Instant {
    now + deadline.saturating_duration_since(now) / 4
}

impl Inner {
    /// The claims by the names of their objects, which is the order in which every request takes
    /// them, without those that the stored object makes too and is known to have.
    fn not_settled(
        &self,
        holder: &Holder,
        claims: &[Claim],
        old: &[Claim],
    ) -> BTreeMap<String, Claim> {
        let is_old = |claim: &Claim| {
            let is_same = |old: &Claim| {
                (&old.scope, &old.key, &old.value) == (&claim.scope, &claim.key, &claim.value)
            };
            old.iter().any(is_same)
        };
        let mut wanted = BTreeMap::new();
        for claim in claims {
            let name = decide::claim_name(&claim.scope, &claim.key);
            // Only knowing that it is ours counts. If the watch is behind, the claim of a stored
            // object that makes it still cannot have been released: see `controller`.
            if !(is_old(claim) && self.cache.is_of(&name, holder, claim)) {
                wanted.insert(name, claim.clone());
            }
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, first_quarter};

    #[test]
    fn a_look_for_the_name_leaves_the_claims_three_quarters_of_the_time() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        assert_eq!(first_quarter(now, now + second * 4), now + second);
        assert_eq!(first_quarter(now + second, now), now + second, "it is over");
    }
}
