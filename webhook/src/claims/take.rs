//! Taking claims, a wave of them at a time in the order of their names, and rolling back those of a
//! request that is not allowed.
//!
//! Where two requests want some of the same keys, one of them gets through: what a request has taken
//! beyond the first key that another has, it gives back before it waits for that key. So it waits
//! only while it holds what comes before, as if it took one after the other, and the two cannot wait
//! for each other. Deliberately not here: release of claims that are left behind (`controller.rs`).

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use opensdn_crds::unique_claim::{UniqueClaim, UniqueClaimSpec};
use opensdn_policy_host::Claim;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::cache::CachedClaim;
use super::decide::{Contest, Ownership, contest, ownership, shared};
use super::error::{ClaimError, Conflict, HolderState};
use super::store::{self, Lock, Sharing};
use super::{Holder, Inner};

/// How often a claim that others change at the same time is tried.
const ATTEMPTS: u32 = 8;
/// So many claims are taken at once. The order holds between waves and, by what is given back, in them.
const WAVE: usize = 16;
/// How often a key is tried again that a request has which may be about to give it back; about a
/// third of a second in all.
const ROUNDS: u32 = 5;
const ROUND_DELAY: Duration = Duration::from_millis(10);

/// Claims that were taken. Dropped without [`ClaimGuard::commit`], those that are new are rolled
/// back.
#[must_use = "claims that are not committed are rolled back"]
pub struct ClaimGuard {
    inner: Arc<Inner>,
    new: Vec<Taken>,
}

/// A claim that a request has taken, and what it was before.
struct Taken {
    lock: Lock,
    /// What it was, where it was that of an object which is stored.
    before: Option<Box<UniqueClaimSpec>>,
}

impl ClaimGuard {
    pub(super) fn empty(inner: &Arc<Inner>) -> Self {
        Self { inner: Arc::clone(inner), new: Vec::new() }
    }

    /// The request is allowed: the claims stay. How many are new.
    pub fn commit(mut self) -> usize {
        std::mem::take(&mut self.new).len()
    }

    /// Only as they were taken: if another request for the same object relies on one, it stays.
    async fn roll_back(&mut self) {
        let new = std::mem::take(&mut self.new);
        give_back(&self.inner, new).await;
    }
}

async fn give_back(inner: &Inner, taken: Vec<Taken>) {
    let give_back = async |Taken { lock, before }: Taken| {
        let written = match before {
            Some(before) => store::restore(&inner.api, &lock, *before).await,
            None => store::delete(&inner.api, &lock).await,
        };
        // What is left is an orphan now, and the controller releases those or hands them over.
        if let Err(error) = written {
            tracing::warn!(
                error = opensdn_runtime::error_chain(&error),
                "failed to roll back a claim; the claim controller will release it"
            );
        }
    };
    stream::iter(taken).for_each_concurrent(WAVE, give_back).await;
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        // Without a runtime the process is ending; the controller releases what is left.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let new = std::mem::take(&mut self.new);
        if !new.is_empty() {
            let inner = Arc::clone(&self.inner);
            // Not a guard: a runtime that ends drops the task at once, and would come here again.
            runtime.spawn(async move { give_back(&inner, new).await });
        }
    }
}

impl std::fmt::Debug for ClaimGuard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.new.iter().map(|taken| &taken.lock.name)).finish()
    }
}

/// One request's claims while they are taken.
pub(super) struct Acquisition {
    holder: Holder,
    wanted: BTreeMap<String, Claim>,
    guard: ClaimGuard,
}

/// What came of one claim.
enum Acquired {
    /// It is new.
    New(Taken),
    /// The object had it before.
    Ours,
    /// Another object has it.
    Others(Box<Conflict>),
}

impl Acquisition {
    pub(super) fn new(inner: &Arc<Inner>, holder: Holder, wanted: BTreeMap<String, Claim>) -> Self {
        Self { holder, wanted, guard: ClaimGuard::empty(inner) }
    }

    /// Takes all or none and answers; if the receiver is gone, none.
    pub(super) async fn run(mut self, answer: oneshot::Sender<Result<ClaimGuard, ClaimError>>) {
        let result = match self.acquire(&answer).await {
            Ok(()) => Ok(self.guard),
            Err(error) => {
                self.guard.roll_back().await;
                Err(error)
            }
        };
        // If the receiver is gone, the guard is dropped here, which rolls back.
        drop(answer.send(result));
    }

    async fn acquire(
        &mut self,
        answer: &oneshot::Sender<Result<ClaimGuard, ClaimError>>,
    ) -> Result<(), ClaimError> {
        let wanted: Vec<(String, Claim)> = self.wanted.clone().into_iter().collect();
        for wave in wanted.chunks(WAVE) {
            self.take_wave(wave, answer).await?;
        }
        Ok(())
    }

    async fn take_wave(
        &mut self,
        wave: &[(String, Claim)],
        answer: &oneshot::Sender<Result<ClaimGuard, ClaimError>>,
    ) -> Result<(), ClaimError> {
        // With one key there is no other that could wait for this request in turn.
        let rounds = if self.wanted.len() > 1 { ROUNDS } else { 0 };
        let mut rest = wave;
        let mut round = 0;
        loop {
            if answer.is_closed() {
                return Err(ClaimError::Deadline);
            }
            let Some((place, conflict)) = self.take_at_once(rest).await? else { return Ok(()) };
            if round == rounds || !matches!(conflict.state, HolderState::Pending { .. }) {
                self.inner().metrics.claim_conflicts(&conflict.claim.scope).inc();
                // The request is denied; what follows names everything in the way at once.
                return Err(ClaimError::Held(self.others_too(conflict).await));
            }
            rest = rest.get(place..).unwrap_or_default();
            sleep(ROUND_DELAY * 2_u32.pow(round)).await;
            round += 1;
        }
    }

    /// Takes these claims up to the first that another object has, and says which that is.
    async fn take_at_once(
        &mut self,
        claims: &[(String, Claim)],
    ) -> Result<Option<(usize, Conflict)>, ClaimError> {
        let all = claims.iter().map(|(name, claim)| self.take_one(name, claim));
        let acquired = join_all(all).await;
        let (mut first, mut failure, mut beyond) = (None, None, Vec::new());
        for (place, (acquired, (_, claim))) in acquired.into_iter().zip(claims).enumerate() {
            match acquired {
                Ok(Acquired::New(taken)) if first.is_some() => beyond.push(taken),
                Ok(Acquired::New(taken)) => {
                    self.guard.new.push(taken);
                    self.inner().metrics.claims_taken(&claim.scope).inc();
                }
                Ok(Acquired::Ours) => {}
                Ok(Acquired::Others(conflict)) => first = first.or(Some((place, *conflict))),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        give_back(self.inner(), beyond).await;
        failure.map_or(Ok(first), Err)
    }

    async fn others_too(&self, first: Conflict) -> Vec<Conflict> {
        let name = first.name.clone();
        let mut conflicts = vec![first];
        // Where more cannot be read, the first is reason enough.
        if let Err(ClaimError::Held(more)) = self.check_from(&name).await {
            conflicts.extend(more);
        }
        conflicts
    }

    fn inner(&self) -> &Inner {
        &self.guard.inner
    }

    async fn take_one(&self, name: &str, claim: &Claim) -> Result<Acquired, ClaimError> {
        let (api, seen) = (&self.inner().api, self.inner().cache.get(name));
        if let Some(seen) = &seen
            && let Some(acquired) = self.renew(name, claim, seen).await?
        {
            return Ok(acquired);
        }
        for attempt in 0..ATTEMPTS {
            // One that the watch has shown is read first: to create it would be in vain.
            let is_new = attempt > 0 || seen.is_none();
            let create = store::create(api, name, &self.holder, claim, Sharing::Alone);
            if is_new && let Some(lock) = create.await? {
                return Ok(Acquired::New(Taken { lock, before: None }));
            }
            // None: it has been released since.
            if let Some(stored) = store::get(api, name).await?
                && let Some(hold) = self.settle(name, claim, stored).await?
            {
                return Ok(hold);
            }
            let longest = 10_u64 << attempt;
            sleep(Duration::from_millis(1 + RandomState::new().hash_one(attempt) % longest)).await;
        }
        Err(ClaimError::Contended { name: name.to_owned() })
    }

    /// Writes the claim if the watch has shown it to be this object's, as on a retry. `None`: it is
    /// not, or not as it was shown.
    async fn renew(
        &self,
        name: &str,
        claim: &Claim,
        seen: &CachedClaim,
    ) -> Result<Option<Acquired>, ClaimError> {
        let is_ours = ownership(&seen.spec, name, &self.holder) == Ownership::Ours;
        // What becomes of another value, a live read decides.
        if !is_ours || seen.spec.value != claim.value {
            return Ok(None);
        }
        let (uid, version) = (seen.uid.clone(), seen.version.clone());
        let lock = Lock { name: name.to_owned(), uid, version };
        let sharing = Sharing::of(&seen.spec, claim);
        let written = store::update(&self.inner().api, &lock, &self.holder, claim, sharing).await?;
        Ok(written.map(|_| Acquired::Ours))
    }

    /// The claim exists. `None`: it changed meanwhile, and has to be read again.
    async fn settle(
        &self,
        name: &str,
        claim: &Claim,
        stored: UniqueClaim,
    ) -> Result<Option<Acquired>, ClaimError> {
        let rewrite = async |sharing| {
            let (api, lock) = (&self.inner().api, Lock::of(&stored));
            store::update(api, &lock, &self.holder, claim, sharing).await
        };
        let new = |before| move |lock| Acquired::New(Taken { lock, before });
        let before = || Some(Box::new(stored.spec.clone()));
        let sharing = Sharing::of(&stored.spec, claim);
        match ownership(&stored.spec, name, &self.holder) {
            // Written also when nothing would change: the controller counts a claim's age from its
            // last change, and must not release it while this request is under way.
            Ownership::Ours if stored.spec.value == claim.value => {
                Ok(rewrite(sharing).await?.map(|_| Acquired::Ours))
            }
            Ownership::Ours if stored.spec.shared == Some(true) => {
                let state = HolderState::Shared;
                Ok(Some(Acquired::Others(Box::new(conflict(name, claim, stored, state)))))
            }
            // Until it is known that the update is stored none may share the key: what is stored may say the old
            // value for ever. The claim controller writes the value then. What is not allowed in the end is given
            // back.
            Ownership::Ours => {
                let (api, lock) = (&self.inner().api, Lock::of(&stored));
                let open = Claim { value: None, ..claim.clone() };
                let written =
                    store::update(api, &lock, &self.holder, &open, Sharing::Alone).await?;
                Ok(written.map(new(before())))
            }
            Ownership::Forged => Err(forged(name, claim)),
            Ownership::Others => match self.contest(claim, &stored).await? {
                Contest::TakeOver => Ok(rewrite(sharing).await?.map(new(None))),
                Contest::TakeFromOwned => Ok(rewrite(sharing).await?.map(new(before()))),
                // The last that joins is the holder: its create may be under way, which only the
                // holder's is waited for. Those before it are claimants that the controller knows.
                Contest::Join => Ok(rewrite(Sharing::WithOthers).await?.map(new(before()))),
                Contest::Refuse(state) => {
                    Ok(Some(Acquired::Others(Box::new(conflict(name, claim, stored, state)))))
                }
            },
        }
    }

    async fn contest(&self, claim: &Claim, stored: &UniqueClaim) -> Result<Contest, ClaimError> {
        let inner = self.inner();
        let held = &stored.spec.holder;
        let presence = inner.holders.presence(held).await?;
        let lock = Lock::of(stored);
        let unchanged = inner.cache.unchanged(&lock.name, &lock.version);
        let claimant = &self.holder.uid;
        let contest = contest(claimant, held.uid.as_deref(), &presence, unchanged, inner.grace);
        // A UID is no secret: to own the holder it must be that of the object which is stored under this name.
        let contest = match contest {
            Contest::TakeFromOwned if !self.is_stored().await? => {
                Contest::Refuse(HolderState::Stored)
            }
            contest => contest,
        };
        Ok(shared(contest, &stored.spec, claim))
    }

    /// Whether the object that wants the keys is stored now, as that which it says to be.
    async fn is_stored(&self) -> Result<bool, ClaimError> {
        let stored = self.inner().holders.stored_uid(&self.holder.with_pointer("")).await?;
        Ok(stored.is_some_and(|uid| uid == self.holder.uid))
    }

    /// Whether all could be taken now; nothing is written.
    pub(super) async fn check(&self) -> Result<(), ClaimError> {
        self.check_from("").await
    }

    async fn check_from(&self, after: &str) -> Result<(), ClaimError> {
        let mut read = Vec::new();
        for (name, claim) in &self.wanted {
            if name.as_str() > after {
                read.push(self.conflict_of(name, claim));
            }
        }
        let found: Vec<Option<Conflict>> = stream::iter(read).buffered(WAVE).try_collect().await?;
        let conflicts: Vec<Conflict> = found.into_iter().flatten().collect();
        if conflicts.is_empty() { Ok(()) } else { Err(ClaimError::Held(conflicts)) }
    }

    /// Who has the claim now, if it is another object that keeps it.
    async fn conflict_of(&self, name: &str, claim: &Claim) -> Result<Option<Conflict>, ClaimError> {
        let Some(stored) = store::get(&self.inner().api, name).await? else { return Ok(None) };
        match ownership(&stored.spec, name, &self.holder) {
            Ownership::Ours
                if stored.spec.shared == Some(true) && stored.spec.value != claim.value =>
            {
                Ok(Some(conflict(name, claim, stored, HolderState::Shared)))
            }
            Ownership::Ours => Ok(None),
            Ownership::Forged => Err(forged(name, claim)),
            Ownership::Others => Ok(match self.contest(claim, &stored).await? {
                Contest::Refuse(state) => Some(conflict(name, claim, stored, state)),
                Contest::TakeOver | Contest::TakeFromOwned | Contest::Join => None,
            }),
        }
    }
}

fn conflict(name: &str, claim: &Claim, stored: UniqueClaim, state: HolderState) -> Conflict {
    Conflict { claim: claim.clone(), held: stored.spec.holder, name: name.to_owned(), state }
}

fn forged(name: &str, claim: &Claim) -> ClaimError {
    let (scope, key) = (claim.scope.clone(), claim.key.clone());
    ClaimError::Forged { name: name.to_owned(), scope, key }
}

#[cfg(test)]
mod tests {
    use kube::{Api, Client, Config};

    use super::*;
    use crate::claims::cache::Cache;
    use crate::claims::holder::Holders;
    use crate::claims::known_conflicts::KnownConflicts;
    use crate::metrics::Metrics;

    fn guard() -> ClaimGuard {
        let config = Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::try_from(config).unwrap();
        let inner = Arc::new(Inner {
            api: Api::all(client.clone()),
            holders: Holders::new(client),
            cache: Cache::default(),
            conflicts: KnownConflicts::default(),
            grace: Duration::ZERO,
            metrics: Metrics::new(),
        });
        let lock = Lock { name: "c".into(), uid: "u".into(), version: "1".into() };
        ClaimGuard { inner, new: vec![Taken { lock, before: None }] }
    }

    #[test]
    fn claims_that_are_given_back_while_the_process_ends_are_left_to_the_controller() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let guard = runtime.block_on(async { guard() });
        runtime.spawn(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
        // It drops its tasks, and starts none any more.
        drop(runtime);
    }
}
