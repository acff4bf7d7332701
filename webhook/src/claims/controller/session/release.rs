//! How a claim is given up. Its holder is read live, and so is every object that could need the key
//! after it: one that claims it too, and what the holder controls or is controlled by, which a policy
//! may have exempted. If there is one, the claim becomes that object's by one write on condition that
//! nothing has changed; only if there is none it is deleted, on the same condition. So the key is
//! free at no moment while a stored object needs it, wherever this process ends and whatever else
//! takes itself for the leader.
//!
//! Lookups of policies may lag behind. So where an object is exempt by them, it counts as exempt only
//! if its owner, read live, does claim the key.

use std::time::Duration;

use opensdn_crds::unique_claim::Holder as StoredHolder;
use opensdn_policy_host::Claim;
use opensdn_policy_host::stored::StoredObject;
use serde_json::Value;

use super::calls::{Calls, lock};
use super::reconcile::Step;
use super::{RETRY_DELAY, Session};
use crate::claims::cache::CachedClaim;
use crate::claims::decide::{Age, Answer, Confirmed, Presence, confirm};
use crate::claims::error::ClaimError;
use crate::claims::holder::Holder;
use crate::claims::ledger::{ObjectRef, ReleaseReason, WITHOUT_POLICY};
use crate::claims::owner::{Owner, without_owners};
use crate::claims::policies::PolicyState;
use crate::claims::store::{self, Sharing, WriteOutcome};

/// Whether a stored object needs a key.
enum Need {
    /// It does, by this claim.
    Claims(Box<Claim>),
    /// It does not, or its owner claims it.
    DoesNotClaim,
    /// That could not be evaluated.
    Unknown,
}

/// Who has a key after its holder.
enum Heir {
    /// This stored object, by this claim.
    Object(Box<(Value, Claim)>),
    /// No object.
    None,
    /// That could not be evaluated.
    Unknown,
}

/// A claim that is to be given up.
pub(super) struct Release {
    pub(super) name: String,
    pub(super) seen: CachedClaim,
    pub(super) reason: ReleaseReason,
}

/// What live reads have shown of its holder.
pub(super) struct Inspected {
    presence: Presence,
    answer: Answer,
    /// The UID of the object of its name, which may be another one, and what controls that.
    uid: Option<String>,
    owner: Option<Owner>,
}

impl Session<'_> {
    /// What follows when the holder has been read; whether something is under way for the claim.
    pub(super) fn go_on(&mut self, release: &Release, inspected: &Inspected) -> bool {
        let Release { name, seen, reason } = release;
        let calls = self.calls;
        let policy = held_for(seen);
        let is_rolled_out = || policy.is_none_or(|policy| (calls.controller.rolled_out)(policy));
        let may_be_needed = inspected.answer == Answer::DoesNotClaim && !is_rolled_out();
        if may_be_needed || !self.disconnected.is_empty() {
            self.requeue(name, RETRY_DELAY);
            return false;
        }
        let age = calls.age(seen, &inspected.presence, *reason);
        if confirm(&inspected.presence, inspected.answer, age) == Confirmed::Later {
            self.requeue(name, calls.inner().grace);
            return false;
        }
        let candidates = self.candidates(name, &seen.spec.holder, inspected);
        let release = Release { name: name.clone(), seen: seen.clone(), reason: *reason };
        self.claims.start(name.clone(), async move { calls.give_up(&release, &candidates).await });
        true
    }

    /// The objects that could need the key: the holder's owner first, the others by age.
    fn candidates(
        &self,
        name: &str,
        held: &StoredHolder,
        inspected: &Inspected,
    ) -> Vec<StoredHolder> {
        let holder = ObjectRef::of(held);
        // Another object of its name may be stored now.
        let uids = [&held.uid, &inspected.uid];
        let claimants = self.ledger.claimants(name).map(|claimant| &claimant.object_ref);
        let owned = uids.into_iter().flatten().flat_map(|uid| self.ledger.owned_by(uid));
        let mut others: Vec<_> = claimants
            .chain(owned)
            .filter(|other| **other != holder)
            .filter_map(|other| Some((other, self.ledger.known(other)?)))
            .collect();
        others.sort_by_key(|(other, known)| (&known.created, &known.uid, *other));
        others.dedup_by_key(|(other, _)| *other);
        let owner = inspected.owner.as_ref().map(|owner| owner.held(&holder.namespace));
        let others = others.into_iter().map(|(other, known)| other.held(known, None));
        owner.into_iter().chain(others).collect()
    }
}

impl Calls<'_> {
    /// Reads the holder of a claim that is to be given up.
    pub(super) async fn inspect(self, release: &Release) -> Result<Inspected, ClaimError> {
        let Release { name, seen, .. } = release;
        let (holders, held) = (&self.inner().holders, &seen.spec.holder);
        let presence = holders.presence(held).await?;
        let found = match presence {
            Presence::Absent => None,
            Presence::Stored { .. } | Presence::NotServed => holders.get(held).await?,
        };
        let object = found.map(|(_, object)| object);
        let is_unavailable =
            self.plan.policies.state_of(held_for(seen)) == PolicyState::Unavailable;
        let answer = match &object {
            Some(object) if !is_unavailable => match self.need(name, object).await? {
                Need::Claims(_) => Answer::Claims,
                Need::DoesNotClaim => Answer::DoesNotClaim,
                Need::Unknown => Answer::Unknown,
            },
            _ => Answer::Unknown,
        };
        let uid = object.as_ref().and_then(|object| object.pointer("/metadata/uid")?.as_str());
        let uid = uid.map(str::to_owned);
        let owner = object.as_ref().and_then(Owner::of);
        Ok(Inspected { presence, answer, uid, owner })
    }

    /// Makes the claim that of the first candidate that needs the key; if there is none, deletes it.
    pub(super) async fn give_up(
        self,
        release: &Release,
        candidates: &[StoredHolder],
    ) -> Result<Step, ClaimError> {
        match self.heir(&release.name, candidates).await? {
            Heir::Object(heir) => self.hand_over(release, *heir).await,
            Heir::None => self.delete(release).await,
            Heir::Unknown => Ok(Step::NotKnown),
        }
    }

    async fn delete(self, release: &Release) -> Result<Step, ClaimError> {
        let Release { name, seen, reason } = release;
        if store::delete(&self.inner().api, &lock(name, seen)).await? == WriteOutcome::Written {
            let reason = label(*reason);
            self.controller.metrics.released(reason).inc();
            let StoredHolder { kind, name: holder, .. } = &seen.spec.holder;
            tracing::info!(claim = name, kind, holder, reason, "released a claim");
        }
        Ok(Step::Done)
    }

    async fn hand_over(
        self,
        release: &Release,
        (object, claim): (Value, Claim),
    ) -> Result<Step, ClaimError> {
        let Release { name, seen, .. } = release;
        let Some(stored) = StoredObject::read(&object) else { return Ok(Step::Done) };
        let heir = holder_of(&stored);
        let (api, sharing) = (&self.inner().api, Sharing::of(&seen.spec, &claim));
        let written = store::update(api, &lock(name, seen), &heir, &claim, sharing).await?;
        if written.is_none() {
            // It was taken again, or another replica was faster; the watch will show it.
            return Ok(Step::Done);
        }
        let (kind, holder) = (&heir.kind, &heir.name);
        tracing::info!(claim = name, kind, holder, "handed over a claim");
        let evaluated = self.evaluate(&object).await;
        Ok(evaluated.map_or(Step::Done, |(object_ref, known)| {
            Step::HandedOver(Box::new((object_ref, known, claim)))
        }))
    }

    /// Who needs the key when its holder does not.
    async fn heir(self, name: &str, candidates: &[StoredHolder]) -> Result<Heir, ClaimError> {
        let mut none = Heir::None;
        for candidate in candidates {
            let found = self.inner().holders.get(candidate).await?;
            let Some((_, object)) = found else { continue };
            match self.need(name, &object).await? {
                Need::Claims(claim) => return Ok(Heir::Object(Box::new((object, *claim)))),
                Need::DoesNotClaim => {}
                Need::Unknown => none = Heir::Unknown,
            }
        }
        Ok(none)
    }

    /// Whether an object that was read live needs the key.
    async fn need(self, name: &str, object: &Value) -> Result<Need, ClaimError> {
        match self.claimed_by(name, object).await {
            Need::DoesNotClaim => {}
            known => return Ok(known),
        }
        let Some(owner) = Owner::of(object) else { return Ok(Need::DoesNotClaim) };
        let alone = self.claimed_by(name, &without_owners(object)).await;
        if matches!(alone, Need::DoesNotClaim) {
            return Ok(alone);
        }
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
        let held = owner.held(namespace.unwrap_or_default());
        let Some((_, found)) = self.inner().holders.get(&held).await? else { return Ok(alone) };
        let uid = found.pointer("/metadata/uid").and_then(Value::as_str);
        if uid != Some(owner.uid.as_str()) {
            return Ok(alone);
        }
        Ok(match self.claimed_by(name, &found).await {
            Need::Claims(_) => Need::DoesNotClaim,
            Need::DoesNotClaim => alone,
            Need::Unknown => Need::Unknown,
        })
    }

    /// Whether an object claims the key, as far as lookups show.
    async fn claimed_by(self, name: &str, object: &Value) -> Need {
        let Some(stored) = StoredObject::read(object) else { return Need::Unknown };
        match self.claims_of(object, &stored).await.map(|mut claims| claims.remove(name)) {
            Some(Some(claim)) => Need::Claims(Box::new(claim)),
            Some(None) => Need::DoesNotClaim,
            None => Need::Unknown,
        }
    }

    /// Whether a claim is old enough to be released although its holder may exist: the grace is
    /// longer if its policy is not in force or its kind not served, since both may come back.
    fn age(self, seen: &CachedClaim, presence: &Presence, reason: ReleaseReason) -> Age {
        let is_active = self.plan.policies.state_of(held_for(seen)) == PolicyState::Active;
        let grace = self.inner().grace;
        let grace = match reason {
            _ if !is_active || *presence == Presence::NotServed => grace * WITHOUT_POLICY,
            ReleaseReason::Deleted => Duration::ZERO,
            ReleaseReason::Orphan | ReleaseReason::NotClaimed => grace,
        };
        if seen.since.elapsed() >= grace { Age::PastGrace } else { Age::WithinGrace }
    }
}

/// The policy by which a claim was made.
fn held_for(seen: &CachedClaim) -> Option<&str> {
    seen.spec.policy.as_deref()
}

fn holder_of(stored: &StoredObject) -> Holder {
    Holder {
        group: stored.group.clone(),
        version: stored.version.clone(),
        kind: stored.kind.clone(),
        namespace: stored.namespace.clone(),
        name: stored.name.clone(),
        uid: stored.uid.clone(),
    }
}

fn label(reason: ReleaseReason) -> &'static str {
    match reason {
        ReleaseReason::Deleted => "deleted",
        ReleaseReason::Orphan => "orphan",
        ReleaseReason::NotClaimed => "not_claimed",
    }
}
