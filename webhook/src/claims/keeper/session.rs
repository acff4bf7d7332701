//! One stretch of keeping claims in order, by one set of policies and over one set of kinds.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use opensdn_policy_host::Claim;
use opensdn_runtime::discovery::Resource;
use opensdn_runtime::watch::{Event, WatchSpec, watch};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::conflicts::Conflicts;
use super::{Keeper, Plan};
use crate::claims::decide::{Aged, Confirmed, Presence, Said, claim_name, confirm};
use crate::claims::error::{ClaimError, Doing};
use crate::claims::ledger::{Known, Ledger, Next, Place, WITHOUT_POLICY, Wanter, Why};
use crate::claims::report::{self, Losses};
use crate::claims::store::{self, Done, Lock, call};
use crate::claims::{Inner, cache::Seen};
use crate::evaluate::{EvaluateAs, StoredObject};

/// After a call failed, or a reason was not confirmed.
const RETRY: Duration = Duration::from_secs(5);
/// How often objects that could not be judged are judged again.
const JUDGE_AGAIN: Duration = Duration::from_secs(30);
/// How often a quiet watch has to show that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(60);

pub(super) struct Session<'k> {
    keeper: &'k Keeper,
    plan: Plan,
    ledger: Ledger,
    /// What a kind's watch has listed since it began anew.
    listing: HashMap<usize, HashSet<Place>>,
    synced: HashSet<usize>,
    due: BTreeMap<Instant, Vec<String>>,
    conflicts: Conflicts,
    /// Objects that could not be told of their conflicts, as while the API server, or a webhook that
    /// it asks about their status, does not answer.
    not_told: BTreeSet<Place>,
    /// Objects of which the policies could not tell what they claim.
    unjudged: BTreeSet<Place>,
    judge_again: Instant,
}

/// The journal ends with the session, however it ends.
struct Journal<'i>(&'i Inner);

impl Drop for Journal<'_> {
    fn drop(&mut self) {
        self.0.cache.end_journal();
    }
}

impl<'k> Session<'k> {
    pub(super) fn new(keeper: &'k Keeper, plan: Plan) -> Self {
        Self {
            keeper,
            plan,
            ledger: Ledger::default(),
            listing: HashMap::new(),
            synced: HashSet::new(),
            due: BTreeMap::new(),
            conflicts: Conflicts::new(keeper.metrics.clone()),
            not_told: BTreeSet::new(),
            unjudged: BTreeSet::new(),
            judge_again: Instant::now() + JUDGE_AGAIN,
        }
    }

    fn inner(&self) -> &'k Inner {
        &self.keeper.claims.inner
    }

    /// Works for as long as it is polled.
    pub(super) async fn run(mut self) {
        let cache = &self.inner().cache;
        let _journal = Journal(self.inner());
        cache.begin_journal();
        let mut cache_synced = cache.synced();
        // While one sender is left, the channel stays open also when there is nothing to watch.
        let (_open, mut objects) = mpsc::channel(256);
        let _watches = self.watch_all(&_open);
        loop {
            if *cache_synced.borrow() && self.synced.len() == self.plan.resources.len() {
                self.attend_to_all().await;
            }
            let due = self.due.keys().next().copied();
            let in_time = due.unwrap_or(self.judge_again).min(self.judge_again);
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
                heartbeat: SIGN_OF_LIFE,
            };
            let mut changes = watch(self.keeper.client.clone(), target);
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
        for place in std::mem::take(&mut self.not_told) {
            self.conflicts.doubt(place);
        }
        if self.judge_again <= now {
            self.judge_again = now + JUDGE_AGAIN;
            for place in std::mem::take(&mut self.unjudged) {
                self.judge_again(place).await;
            }
        }
    }

    async fn judge_again(&mut self, place: Place) {
        let Some(known) = self.ledger.known(&place) else { return };
        let held = place.held(known, None);
        match call(Doing::ReadHolder, &held.name, self.inner().holders.get(&held)).await {
            Ok(Some((_, object))) => {
                self.put(&object).await;
            }
            // Its end is the watch's to tell.
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(%error, kind = place.kind, "an object is not judged again");
                self.unjudged.insert(place);
            }
        }
    }

    async fn apply(&mut self, kind: usize, change: Event) {
        match change {
            Event::Init => {
                self.listing.insert(kind, HashSet::new());
            }
            Event::InitApply(object) => {
                if let Some(place) = self.put(&object).await {
                    self.listing.entry(kind).or_default().insert(place);
                }
            }
            Event::InitDone => {
                let places = self.listing.remove(&kind).unwrap_or_default();
                if let Some(resource) = self.plan.resources.get(kind) {
                    self.ledger.listed(&resource.group, &resource.kind, &places);
                    self.synced.insert(kind);
                }
            }
            Event::Apply(object) => {
                self.put(&object).await;
            }
            Event::Delete(object) => {
                if let Some(stored) = StoredObject::read(&object) {
                    self.ledger.remove(&place_of(&stored));
                }
            }
            // What is known stays right enough: everything is confirmed by live reads.
            Event::Heartbeat | Event::Disconnected { .. } => {}
        }
    }

    async fn put(&mut self, object: &Value) -> Option<Place> {
        let stored = StoredObject::read(object)?;
        let place = place_of(&stored);
        let known = Known {
            wants: self.claims_of(&stored).await,
            told: report::told(object),
            uid: stored.uid,
            version: stored.version,
            created: stored.created,
        };
        if known.told.is_some() {
            self.conflicts.doubt(place.clone());
        }
        if known.wants.is_none() {
            self.unjudged.insert(place.clone());
        }
        self.ledger.put(place.clone(), known);
        Some(place)
    }

    /// What the object claims, as created or as updated; `None` if that cannot be told.
    async fn claims_of(&self, stored: &StoredObject) -> Option<BTreeMap<String, Claim>> {
        let mut claims = BTreeMap::new();
        for way in [EvaluateAs::Updated, EvaluateAs::Created] {
            let verdict = match self.keeper.evaluator.evaluate(&self.plan.set, stored, way).await {
                Ok(verdict) => verdict,
                Err(error) => {
                    let (kind, name) = (&stored.kind, &stored.name);
                    tracing::warn!(kind, name, %error, "a stored object cannot be read");
                    return None;
                }
            };
            if verdict.failures.iter().any(|failure| self.plan.policies.contains(&failure.policy)) {
                return None;
            }
            let named = |claim: Claim| (claim_name(&claim.scope, &claim.key), claim);
            claims.extend(verdict.claims.into_iter().map(named));
        }
        Some(claims)
    }

    async fn attend_to_all(&mut self) {
        while let Some(name) = self.ledger.pop() {
            if let Err(error) = self.attend(&name).await {
                let error = opensdn_runtime::error_chain(&error);
                tracing::warn!(claim = name, error, "a claim is not kept in order; tried again");
                self.later(&name, RETRY);
            }
            let holder = self.inner().cache.get(&name).map(|seen| Place::of(&seen.spec.holder));
            self.conflicts.note(&self.ledger, &name, holder.as_ref());
        }
        for (place, losses) in self.conflicts.untold() {
            self.tell(&place, &losses).await;
        }
    }

    fn later(&mut self, name: &str, after: Duration) {
        self.due.entry(Instant::now() + after).or_default().push(name.to_owned());
    }

    async fn attend(&mut self, name: &str) -> Result<(), ClaimError> {
        let inner = self.inner();
        let seen = inner.cache.get(name);
        let unchanged = seen.as_ref().map(|seen| seen.since.elapsed()).unwrap_or_default();
        let policies = &self.plan.policies;
        match (self.ledger.next(name, seen.as_ref(), unchanged, inner.grace, policies), seen) {
            (Next::Keep, _) => {}
            (Next::Wait(left), _) => self.later(name, left),
            (Next::Take(wanter), _) => self.write(name, &wanter, None).await?,
            (Next::Adopt(wanter), seen) => self.write(name, &wanter, seen).await?,
            (Next::Release(why), Some(seen)) => self.release(name, &seen, why).await?,
            // There is none to release.
            (Next::Release(_), None) => {}
        }
        Ok(())
    }

    /// Makes the claim the stored object's; `seen` is the claim if there is one.
    async fn write(
        &self,
        name: &str,
        wanter: &Wanter,
        seen: Option<Seen>,
    ) -> Result<(), ClaimError> {
        let Some(known) = self.ledger.known(&wanter.place) else { return Ok(()) };
        let Some(claim) = self.ledger.wants(&wanter.place, name) else { return Ok(()) };
        let holder = wanter.holder(&known.version);
        let api = &self.inner().api;
        let written = match seen {
            Some(seen) => store::change(api, &lock(name, &seen), &holder, claim).await?,
            None => store::create(api, name, &holder, claim).await?,
        };
        // Else somebody was faster, and the watch will show it.
        if written.is_some() {
            let (kind, holder) = (&holder.kind, &holder.name);
            tracing::info!(claim = name, kind, holder, "claimed for an object that is stored");
        }
        Ok(())
    }

    async fn release(&mut self, name: &str, seen: &Seen, why: Why) -> Result<(), ClaimError> {
        let inner = self.inner();
        let held = &seen.spec.holder;
        let presence = call(Doing::ReadHolder, &held.name, inner.holders.presence(held)).await?;
        let said = self.say_live(name, seen).await?;
        if confirm(&presence, said, self.aged(seen, &presence, why)) == Confirmed::Later {
            self.later(name, inner.grace);
            return Ok(());
        }
        if store::delete(&inner.api, &lock(name, seen)).await? == Done::Yes {
            self.keeper.metrics.released(reason(why)).inc();
            let (kind, holder) = (&held.kind, &held.name);
            tracing::info!(claim = name, kind, holder, reason = reason(why), "released");
        }
        Ok(())
    }

    /// Whether a claim may go by its age although its holder may exist: longer if its policy is
    /// not in force or its kind not served, since both may come back.
    fn aged(&self, seen: &Seen, presence: &Presence, why: Why) -> Aged {
        let in_force =
            seen.spec.policy.as_ref().is_some_and(|policy| self.plan.policies.contains(policy));
        let grace = self.inner().grace;
        let patience = match why {
            _ if !in_force || *presence == Presence::NotServed => grace * WITHOUT_POLICY,
            Why::Deleted => Duration::ZERO,
            Why::Orphan | Why::NotClaimed => grace,
        };
        if seen.since.elapsed() >= patience { Aged::Enough } else { Aged::TooYoung }
    }

    async fn say_live(&self, name: &str, seen: &Seen) -> Result<Said, ClaimError> {
        let held = &seen.spec.holder;
        let found = call(Doing::ReadHolder, &held.name, self.inner().holders.get(held)).await?;
        let Some(stored) = found.as_ref().and_then(|(_, object)| StoredObject::read(object)) else {
            return Ok(Said::Unknown);
        };
        Ok(match self.claims_of(&stored).await {
            Some(claims) if claims.contains_key(name) => Said::Claims,
            Some(_) => Said::Silent,
            None => Said::Unknown,
        })
    }

    async fn tell(&mut self, place: &Place, losses: &Losses) {
        let Some(known) = self.ledger.known(place) else { return };
        let held = place.held(known, None);
        let told = async {
            match self.inner().holders.api(&held).await? {
                Some(api) => self.keeper.reporter.tell(&api, &held, known, losses).await,
                None => Ok(()),
            }
        };
        if let Err(error) = call(Doing::Tell, &held.name, told).await {
            let error = opensdn_runtime::error_chain(&error);
            let (kind, name) = (&place.kind, &place.name);
            tracing::warn!(kind, name, error, "a conflict is not told; tried again");
            self.not_told.insert(place.clone());
            self.due.entry(Instant::now() + RETRY).or_default();
        }
    }
}

fn lock(name: &str, seen: &Seen) -> Lock {
    Lock { name: name.to_owned(), uid: seen.uid.clone(), version: seen.version.clone() }
}

fn place_of(stored: &StoredObject) -> Place {
    Place {
        group: stored.group.clone(),
        kind: stored.kind.clone(),
        namespace: stored.namespace.clone(),
        name: stored.name.clone(),
    }
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::Deleted => "deleted",
        Why::Orphan => "orphan",
        Why::NotClaimed => "not_claimed",
    }
}
