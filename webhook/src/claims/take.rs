//! Taking claims one after the other, and rolling back those of a request that is not allowed.
//! Deliberately not here: release of claims that are left behind (`controller.rs`).

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use opensdn_crds::unique_claim::UniqueClaim;
use opensdn_policy_host::Claim;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::decide::{Contest, Ownership, contest, ownership};
use super::error::{ClaimError, Conflict, HolderState};
use super::store::{self, Lock};
use super::{Holder, Inner};

/// How often a claim that others change at the same time is tried.
const ATTEMPTS: u32 = 8;

/// Claims that were taken. Dropped without [`ClaimGuard::commit`], those that are new are rolled
/// back.
#[must_use = "claims that are not committed are rolled back"]
pub struct ClaimGuard {
    inner: Arc<Inner>,
    new: Vec<Lock>,
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
        for lock in std::mem::take(&mut self.new) {
            // What is left is an orphan now, and the controller releases those.
            if let Err(error) = store::delete(&self.inner.api, &lock).await {
                tracing::warn!(
                    error = opensdn_runtime::error_chain(&error),
                    "failed to roll back a claim; the claim controller will release it"
                );
            }
        }
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        // Without a runtime the process is ending; the controller releases what is left.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let new = std::mem::take(&mut self.new);
        if !new.is_empty() {
            let mut guard = Self { inner: Arc::clone(&self.inner), new };
            runtime.spawn(async move { guard.roll_back().await });
        }
    }
}

impl std::fmt::Debug for ClaimGuard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.new.iter().map(|lock| &lock.name)).finish()
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
    New(Lock),
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
        for (name, claim) in self.wanted.clone() {
            if answer.is_closed() {
                return Err(ClaimError::Deadline);
            }
            match self.take_one(&name, &claim).await? {
                Acquired::New(lock) => {
                    self.guard.new.push(lock);
                    self.inner().metrics.claims_taken(&claim.scope).inc();
                }
                Acquired::Ours => {}
                Acquired::Others(conflict) => {
                    self.inner().metrics.claim_conflicts(&claim.scope).inc();
                    // The request is denied; what follows names everything in the way at once.
                    return Err(ClaimError::Held(self.others_too(*conflict).await));
                }
            }
        }
        Ok(())
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
        let api = &self.inner().api;
        for attempt in 0..ATTEMPTS {
            if let Some(lock) = store::create(api, name, &self.holder, claim).await? {
                return Ok(Acquired::New(lock));
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

    /// The claim exists. `None`: it changed meanwhile, and has to be read again.
    async fn settle(
        &self,
        name: &str,
        claim: &Claim,
        stored: UniqueClaim,
    ) -> Result<Option<Acquired>, ClaimError> {
        let rewrite = async || {
            store::update(&self.inner().api, &Lock::of(&stored), &self.holder, claim).await
        };
        match ownership(&stored.spec, name, &self.holder) {
            // Written also when nothing would change: the controller counts a claim's age from its
            // last change, and must not release it while this request is under way.
            Ownership::Ours => Ok(rewrite().await?.map(|_| Acquired::Ours)),
            Ownership::Forged => Err(forged(name, claim)),
            Ownership::Others => match self.contest(&stored).await? {
                Contest::TakeOver => Ok(rewrite().await?.map(Acquired::New)),
                Contest::Refuse(state) => {
                    Ok(Some(Acquired::Others(Box::new(conflict(name, claim, stored, state)))))
                }
            },
        }
    }

    async fn contest(&self, stored: &UniqueClaim) -> Result<Contest, ClaimError> {
        let inner = self.inner();
        let held = &stored.spec.holder;
        let presence = inner.holders.presence(held).await?;
        let lock = Lock::of(stored);
        let unchanged = inner.cache.unchanged(&lock.name, &lock.version);
        Ok(contest(held.uid.as_deref(), &presence, unchanged, inner.grace))
    }

    /// Whether all could be taken now; nothing is written.
    pub(super) async fn check(&self) -> Result<(), ClaimError> {
        self.check_from("").await
    }

    async fn check_from(&self, after: &str) -> Result<(), ClaimError> {
        let mut conflicts = Vec::new();
        for (name, claim) in self.wanted.iter().filter(|(name, _)| name.as_str() > after) {
            let api = &self.inner().api;
            let Some(stored) = store::get(api, name).await? else { continue };
            match ownership(&stored.spec, name, &self.holder) {
                Ownership::Ours => {}
                Ownership::Forged => return Err(forged(name, claim)),
                Ownership::Others => {
                    if let Contest::Refuse(state) = self.contest(&stored).await? {
                        conflicts.push(conflict(name, claim, stored, state));
                    }
                }
            }
        }
        if conflicts.is_empty() { Ok(()) } else { Err(ClaimError::Held(conflicts)) }
    }
}

fn conflict(name: &str, claim: &Claim, stored: UniqueClaim, state: HolderState) -> Conflict {
    Conflict { claim: claim.clone(), held: stored.spec.holder, name: name.to_owned(), state }
}

fn forged(name: &str, claim: &Claim) -> ClaimError {
    let (scope, key) = (claim.scope.clone(), claim.key.clone());
    ClaimError::Forged { name: name.to_owned(), scope, key }
}
