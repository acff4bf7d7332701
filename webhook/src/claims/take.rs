//! Taking claims one after the other, and giving back what was taken in vain.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use opensdn_crds::unique_claim::UniqueClaim;
use opensdn_policy_host::Claim;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::decide::{Contest, Standing, contest, standing};
use super::error::{ClaimError, Conflict, Doing, Tenure};
use super::store::{self, Lock, call};
use super::{Holder, Inner};

/// How often a claim that others change at the same time is tried.
const ATTEMPTS: u32 = 8;

/// Claims that were taken. Dropped without [`Taken::keep`], those that are new are given back.
#[must_use = "claims that are not kept are given back"]
pub struct Taken {
    inner: Arc<Inner>,
    new: Vec<Lock>,
}

impl Taken {
    pub(super) fn nothing(inner: &Arc<Inner>) -> Self {
        Self { inner: Arc::clone(inner), new: Vec::new() }
    }

    /// The request is allowed: the claims stay. How many are new.
    pub fn keep(mut self) -> usize {
        std::mem::take(&mut self.new).len()
    }

    /// Only as they were taken: if another request for the same object relies on one, it stays.
    async fn give_back(&mut self) {
        for lock in std::mem::take(&mut self.new) {
            // What is left is an orphan now, and the keeper releases those.
            if let Err(error) = store::delete(&self.inner.api, &lock).await {
                tracing::warn!(
                    error = opensdn_runtime::error_chain(&error),
                    "a claim is not given back"
                );
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // Without a runtime the process is ending; the keeper releases what is left.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let new = std::mem::take(&mut self.new);
        if !new.is_empty() {
            let mut taken = Self { inner: Arc::clone(&self.inner), new };
            runtime.spawn(async move { taken.give_back().await });
        }
    }
}

impl std::fmt::Debug for Taken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.new.iter().map(|lock| &lock.name)).finish()
    }
}

/// One request's claims on their way.
pub(super) struct Acquisition {
    holder: Holder,
    wanted: BTreeMap<String, Claim>,
    taken: Taken,
}

/// What came of one claim.
enum Hold {
    /// It is new.
    New(Lock),
    /// The object had it before.
    Ours,
    /// Somebody else has it.
    Others(Box<Conflict>),
}

impl Acquisition {
    pub(super) fn new(inner: &Arc<Inner>, holder: Holder, wanted: BTreeMap<String, Claim>) -> Self {
        Self { holder, wanted, taken: Taken::nothing(inner) }
    }

    /// Takes all or none and says so; if nobody listens any more, none.
    pub(super) async fn run(mut self, answer: oneshot::Sender<Result<Taken, ClaimError>>) {
        let result = match self.acquire(&answer).await {
            Ok(()) => Ok(self.taken),
            Err(error) => {
                self.taken.give_back().await;
                Err(error)
            }
        };
        // If nobody listens, what was taken is dropped here, and so given back.
        drop(answer.send(result));
    }

    async fn acquire(
        &mut self,
        answer: &oneshot::Sender<Result<Taken, ClaimError>>,
    ) -> Result<(), ClaimError> {
        for (name, claim) in self.wanted.clone() {
            if answer.is_closed() {
                return Err(ClaimError::Deadline);
            }
            match self.take_one(&name, &claim).await? {
                Hold::New(lock) => {
                    self.taken.new.push(lock);
                    self.inner().metrics.claims_taken(&claim.scope).inc();
                }
                Hold::Ours => {}
                Hold::Others(conflict) => {
                    self.inner().metrics.claim_conflicts(&claim.scope).inc();
                    // It is lost; what follows only serves to name everything in the way at once.
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
        if let Err(ClaimError::Held(more)) = self.look_after(&name).await {
            conflicts.extend(more);
        }
        conflicts
    }

    fn inner(&self) -> &Inner {
        &self.taken.inner
    }

    async fn take_one(&self, name: &str, claim: &Claim) -> Result<Hold, ClaimError> {
        let api = &self.inner().api;
        for attempt in 0..ATTEMPTS {
            if let Some(lock) = store::create(api, name, &self.holder, claim).await? {
                return Ok(Hold::New(lock));
            }
            // None: it was released since.
            if let Some(stored) = call(Doing::Read, name, api.get_opt(name)).await?
                && let Some(hold) = self.settle(name, claim, stored).await?
            {
                return Ok(hold);
            }
            let longest = 10_u64 << attempt;
            sleep(Duration::from_millis(1 + RandomState::new().hash_one(attempt) % longest)).await;
        }
        Err(ClaimError::Contended { name: name.to_owned() })
    }

    /// The claim exists. `None`: it changed meanwhile, and has to be looked at again.
    async fn settle(
        &self,
        name: &str,
        claim: &Claim,
        stored: UniqueClaim,
    ) -> Result<Option<Hold>, ClaimError> {
        let rewrite = async || {
            store::change(&self.inner().api, &Lock::of(&stored), &self.holder, claim).await
        };
        match standing(&stored.spec, name, &self.holder) {
            // Written also when nothing would change: the keeper counts a claim's age from its
            // last change, and must not release it while this request is under way.
            Standing::Ours => Ok(rewrite().await?.map(|_| Hold::Ours)),
            Standing::Forged => Err(forged(name, claim)),
            Standing::Others => match self.contest(&stored).await? {
                Contest::TakeOver => Ok(rewrite().await?.map(Hold::New)),
                Contest::Refuse(tenure) => {
                    Ok(Some(Hold::Others(Box::new(conflict(name, claim, stored, tenure)))))
                }
            },
        }
    }

    async fn contest(&self, stored: &UniqueClaim) -> Result<Contest, ClaimError> {
        let inner = self.inner();
        let held = &stored.spec.holder;
        let presence = call(Doing::ReadHolder, &held.name, inner.holders.presence(held)).await?;
        let lock = Lock::of(stored);
        let unchanged = inner.cache.unchanged(&lock.name, &lock.version);
        Ok(contest(held.uid.as_deref(), &presence, unchanged, inner.grace))
    }

    /// Whether all could be taken now; nothing is written.
    pub(super) async fn look(&self) -> Result<(), ClaimError> {
        self.look_after("").await
    }

    async fn look_after(&self, after: &str) -> Result<(), ClaimError> {
        let mut conflicts = Vec::new();
        for (name, claim) in self.wanted.iter().filter(|(name, _)| name.as_str() > after) {
            let api = &self.inner().api;
            let Some(stored) = call(Doing::Read, name, api.get_opt(name)).await? else { continue };
            match standing(&stored.spec, name, &self.holder) {
                Standing::Ours => {}
                Standing::Forged => return Err(forged(name, claim)),
                Standing::Others => {
                    if let Contest::Refuse(tenure) = self.contest(&stored).await? {
                        conflicts.push(conflict(name, claim, stored, tenure));
                    }
                }
            }
        }
        if conflicts.is_empty() { Ok(()) } else { Err(ClaimError::Held(conflicts)) }
    }
}

fn conflict(name: &str, claim: &Claim, stored: UniqueClaim, tenure: Tenure) -> Conflict {
    Conflict { claim: claim.clone(), held: stored.spec.holder, name: name.to_owned(), tenure }
}

fn forged(name: &str, claim: &Claim) -> ClaimError {
    let (scope, key) = (claim.scope.clone(), claim.key.clone());
    ClaimError::Forged { name: name.to_owned(), scope, key }
}
