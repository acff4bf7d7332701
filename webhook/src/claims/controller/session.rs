//! Reconciling claims by one set of policies and over one set of kinds: what is watched, what it
//! claims, and what is reported. How a claim is given up is in `session/release.rs`. Deliberately not
//! here: what follows for a claim (`ledger.rs`, `decide.rs`).

mod release;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use opensdn_policy_host::Claim;
use opensdn_runtime::discovery::Resource;
use opensdn_runtime::watch::{Event, WatchSpec, watch};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::conflicts::ConflictTracker;
use super::{ClaimController, Plan};
use crate::claims::decide::claim_name;
use crate::claims::error::ClaimError;
use crate::claims::ledger::{Action, Claimant, KnownObject, Ledger, ObjectRef};
use crate::claims::owner::Owner;
use crate::claims::report::{self, Conflicts};
use crate::claims::store::{self, Lock};
use crate::claims::{Inner, cache::CachedClaim};
use crate::evaluate::{EvaluateAs, StoredObject};

/// After a call failed, or a reason was not confirmed.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// How often objects that could not be evaluated are evaluated again.
const REEVALUATE_INTERVAL: Duration = Duration::from_secs(30);
/// How often a quiet watch has to be answered.
const HEARTBEAT: Duration = Duration::from_secs(60);

pub(super) struct Session<'k> {
    controller: &'k ClaimController,
    plan: Plan,
    ledger: Ledger,
    /// What a kind's watch has listed since it was started again.
    listing: HashMap<usize, HashSet<ObjectRef>>,
    synced: HashSet<usize>,
    /// Kinds of which the API server does not answer.
    disconnected: HashSet<usize>,
    due: BTreeMap<Instant, Vec<String>>,
    conflicts: ConflictTracker,
    /// Objects on which conflicts could not be reported, as while the API server, or a webhook that it
    /// asks about their status, does not answer.
    unreported: BTreeSet<ObjectRef>,
    /// Objects of which it is not known what they claim: a policy could not be evaluated.
    not_evaluated: BTreeSet<ObjectRef>,
    /// Claims that could not be made or released as they should be.
    failed: HashSet<String>,
    reevaluate: Instant,
}

/// The journal ends with the session, however it ends.
struct Journal<'i>(&'i Inner);

impl Drop for Journal<'_> {
    fn drop(&mut self) {
        self.0.cache.end_journal();
    }
}

impl<'k> Session<'k> {
    pub(super) fn new(controller: &'k ClaimController, plan: Plan) -> Self {
        Self {
            controller,
            plan,
            ledger: Ledger::default(),
            listing: HashMap::new(),
            synced: HashSet::new(),
            disconnected: HashSet::new(),
            due: BTreeMap::new(),
            conflicts: ConflictTracker::new(controller.metrics.clone()),
            unreported: BTreeSet::new(),
            not_evaluated: BTreeSet::new(),
            failed: HashSet::new(),
            reevaluate: Instant::now() + REEVALUATE_INTERVAL,
        }
    }

    fn inner(&self) -> &'k Inner {
        &self.controller.claims.inner
    }

    /// Works for as long as it is polled.
    pub(super) async fn run(mut self) {
        let cache = &self.inner().cache;
        let _journal = Journal(self.inner());
        cache.start_journal();
        let mut cache_synced = cache.synced();
        // While one sender is left, the channel stays open also when there is nothing to watch.
        let (_open, mut objects) = mpsc::channel(256);
        let _watches = self.watch_all(&_open);
        loop {
            if *cache_synced.borrow() && self.synced.len() == self.plan.resources.len() {
                self.reconcile_all().await;
                self.say_claimed();
            }
            let due = self.due.keys().next().copied();
            let in_time = due.unwrap_or(self.reevaluate).min(self.reevaluate);
            tokio::select! {
                change = objects.recv() => {
                    if let Some((kind, change)) = change {
                        self.apply(kind, change).await;
                    }
                }
                names = cache.changed() => self.ledger.touch(names),
                _ = cache_synced.changed() => {}
                () = sleep_until(in_time) => self.wake().await,
            }
        }
    }

    fn watch_all(&self, sender: &mpsc::Sender<(usize, Event)>) -> Vec<AbortOnDropHandle<()>> {
        let follow = |(kind, resource): (usize, &Resource)| {
            let target = WatchSpec {
                path: resource.path(),
                name: None,
                metadata_only: false,
                heartbeat: HEARTBEAT,
            };
            let mut changes = watch(self.controller.client.clone(), target);
            let sender = sender.clone();
            AbortOnDropHandle::new(tokio::spawn(async move {
                while let Some(change) = changes.recv().await {
                    if sender.send((kind, change)).await.is_err() {
                        return;
                    }
                }
            }))
        };
        self.plan.resources.iter().enumerate().map(follow).collect()
    }

    async fn wake(&mut self) {
        let now = Instant::now();
        let later = self.due.split_off(&now);
        let names = std::mem::replace(&mut self.due, later);
        self.ledger.touch(names.into_values().flatten());
        for object_ref in std::mem::take(&mut self.unreported) {
            self.conflicts.recheck(object_ref);
        }
        if self.reevaluate <= now {
            self.reevaluate = now + REEVALUATE_INTERVAL;
            let mut again = std::mem::take(&mut self.not_evaluated);
            again.append(&mut self.ledger.take_outdated());
            for object_ref in again {
                self.reevaluate(object_ref).await;
            }
        }
    }

    async fn reevaluate(&mut self, object_ref: ObjectRef) {
        let Some(known) = self.ledger.known(&object_ref) else { return };
        let held = object_ref.held(known, None);
        match self.inner().holders.get(&held).await {
            Ok(Some((_, object))) => {
                self.put(&object).await;
            }
            // The watch will report that it is gone.
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(%error, kind = object_ref.kind, "failed to read an object to evaluate it again");
                self.not_evaluated.insert(object_ref);
            }
        }
    }

    async fn apply(&mut self, kind: usize, change: Event) {
        match change {
            // Everything that is given up is confirmed by live reads, but not which objects there are
            // that could take it.
            Event::Disconnected { .. } => self.disconnected.insert(kind),
            _ => self.disconnected.remove(&kind),
        };
        match change {
            Event::Init => {
                self.listing.insert(kind, HashSet::new());
            }
            Event::InitApply(object) => {
                if let Some(object_ref) = self.put_changed(&object).await {
                    self.listing.entry(kind).or_default().insert(object_ref);
                }
            }
            Event::InitDone => {
                let object_refs = self.listing.remove(&kind).unwrap_or_default();
                if let Some(resource) = self.plan.resources.get(kind) {
                    self.ledger.listed(&resource.group, &resource.kind, &object_refs);
                    self.synced.insert(kind);
                }
            }
            Event::Apply(object) => {
                self.put_changed(&object).await;
            }
            Event::Delete(object) => {
                if let Some(stored) = StoredObject::read(&object) {
                    let object_ref = object_ref_of(&stored);
                    self.ledger.mark_outdated(&object_ref);
                    self.ledger.remove(&object_ref);
                }
            }
            Event::Heartbeat | Event::Disconnected { .. } => {}
        }
    }

    /// Takes in what a watch has shown.
    async fn put_changed(&mut self, object: &Value) -> Option<ObjectRef> {
        let object_ref = self.put(object).await?;
        self.ledger.mark_outdated(&object_ref);
        Some(object_ref)
    }

    async fn put(&mut self, object: &Value) -> Option<ObjectRef> {
        let stored = StoredObject::read(object)?;
        let object_ref = object_ref_of(&stored);
        let known = KnownObject {
            claims: self.claims_of(&stored).await,
            condition: report::reported(object),
            owner: Owner::of(object),
            uid: stored.uid,
            version: stored.version,
            created: stored.created,
        };
        if known.condition.is_some() {
            self.conflicts.recheck(object_ref.clone());
        }
        if known.claims.is_none() {
            self.not_evaluated.insert(object_ref.clone());
        }
        self.ledger.put(object_ref.clone(), known);
        Some(object_ref)
    }

    /// What the object claims, as created or as updated; `None` if that could not be evaluated.
    async fn claims_of(&self, stored: &StoredObject) -> Option<BTreeMap<String, Claim>> {
        let mut claims = BTreeMap::new();
        for evaluate_as in [EvaluateAs::Updated, EvaluateAs::Created] {
            let evaluator = &self.controller.evaluator;
            let verdict = match evaluator.evaluate(&self.plan.set, stored, evaluate_as).await {
                Ok(verdict) => verdict,
                Err(error) => {
                    let (kind, name) = (&stored.kind, &stored.name);
                    tracing::warn!(kind, name, %error, "failed to read a stored object");
                    return None;
                }
            };
            if verdict.failures.iter().any(|failure| self.plan.policies.is_active(&failure.policy))
            {
                return None;
            }
            let named = |claim: Claim| (claim_name(&claim.scope, &claim.key), claim);
            claims.extend(verdict.claims.into_iter().map(named));
        }
        Some(claims)
    }

    async fn reconcile_all(&mut self) {
        while let Some(name) = self.ledger.pop() {
            self.failed.remove(&name);
            if let Err(error) = self.reconcile(&name).await {
                let error = opensdn_runtime::error_chain(&error);
                tracing::warn!(claim = name, error, "failed to reconcile a claim; will retry");
                self.requeue(&name, RETRY_DELAY);
                self.failed.insert(name.clone());
            }
            let holder = self.inner().cache.get(&name).map(|seen| ObjectRef::of(&seen.spec.holder));
            self.conflicts.note(&self.ledger, &name, holder.as_ref());
        }
        for (object_ref, conflicts) in self.conflicts.unreported() {
            self.report(&object_ref, &conflicts).await;
        }
    }

    /// From now on no new object can take a key that an older one has, by these policies.
    fn say_claimed(&self) {
        if self.failed.is_empty() && self.not_evaluated.is_empty() {
            self.controller.claimed.send_replace(Some(self.plan.number));
        }
    }

    fn requeue(&mut self, name: &str, after: Duration) {
        self.due.entry(Instant::now() + after).or_default().push(name.to_owned());
    }

    async fn reconcile(&mut self, name: &str) -> Result<(), ClaimError> {
        let inner = self.inner();
        let seen = inner.cache.get(name);
        let unchanged = seen.as_ref().map(|seen| seen.since.elapsed()).unwrap_or_default();
        let policies = &self.plan.policies;
        match (self.ledger.action(name, seen.as_ref(), unchanged, inner.grace, policies), seen) {
            (Action::Keep, _) => {}
            (Action::Wait(left), _) => self.requeue(name, left),
            (Action::Take(claimant), _) => self.write(name, &claimant, None).await?,
            (Action::Adopt(claimant), seen) => self.write(name, &claimant, seen).await?,
            (Action::Release(reason), Some(seen)) => self.release(name, &seen, reason).await?,
            // There is none to release.
            (Action::Release(_), None) => {}
        }
        Ok(())
    }

    /// Makes the claim the stored object's; `seen` is the claim if there is one.
    async fn write(
        &self,
        name: &str,
        claimant: &Claimant,
        seen: Option<CachedClaim>,
    ) -> Result<(), ClaimError> {
        let Some(known) = self.ledger.known(&claimant.object_ref) else { return Ok(()) };
        let Some(claim) = self.ledger.claim(&claimant.object_ref, name) else { return Ok(()) };
        let holder = claimant.holder(&known.version);
        let api = &self.inner().api;
        let written = match seen {
            Some(seen) => store::update(api, &lock(name, &seen), &holder, claim).await?,
            None => store::create(api, name, &holder, claim).await?,
        };
        // Else another writer was faster, and the watch will show it.
        if written.is_some() {
            let (kind, holder) = (&holder.kind, &holder.name);
            tracing::info!(claim = name, kind, holder, "took a claim for a stored object");
        }
        Ok(())
    }

    async fn report(&mut self, object_ref: &ObjectRef, conflicts: &Conflicts) {
        let Some(known) = self.ledger.known(object_ref) else { return };
        let held = object_ref.held(known, None);
        let reported = async {
            let Some(resource) = self.inner().holders.served(&held).await? else { return Ok(()) };
            self.controller.reporter.report(&resource, &held, known, conflicts).await
        };
        if let Err(error) = reported.await {
            let error = opensdn_runtime::error_chain(&error);
            let (kind, name) = (&object_ref.kind, &object_ref.name);
            tracing::warn!(kind, name, error, "failed to report conflict; will retry");
            self.unreported.insert(object_ref.clone());
            self.due.entry(Instant::now() + RETRY_DELAY).or_default();
        }
    }
}

fn lock(name: &str, seen: &CachedClaim) -> Lock {
    Lock { name: name.to_owned(), uid: seen.uid.clone(), version: seen.version.clone() }
}

fn object_ref_of(stored: &StoredObject) -> ObjectRef {
    ObjectRef {
        group: stored.group.clone(),
        kind: stored.kind.clone(),
        namespace: stored.namespace.clone(),
        name: stored.name.clone(),
    }
}
