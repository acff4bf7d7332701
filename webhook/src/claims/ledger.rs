//! What the stored objects claim, and what has to be done about each claim. Pure: no client, no
//! clock.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use opensdn_crds::unique_claim::Holder as StoredHolder;
use opensdn_policy_host::Claim;

use super::Holder;
use super::cache::CachedClaim;
use super::owner::Owner;
use super::policies::{ClaimingPolicies, PolicyState};

/// Claims of policies that are gone, or enforce no more, are kept for so many times the grace: a
/// policy that is deleted and made again must not cost the objects their claims.
pub(crate) const WITHOUT_POLICY: u32 = 10;
/// How many UIDs that are gone are remembered of one claim. An object may be made and deleted under
/// one name for as long as the claim lives; the claim of one that was forgotten waits for the grace.
const GONE: usize = 8;

/// An object, whatever its UID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectRef {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ObjectRef {
    pub(crate) fn of(held: &StoredHolder) -> Self {
        Self {
            group: held.group.clone(),
            kind: held.kind.clone(),
            namespace: held.namespace.clone().unwrap_or_default(),
            name: held.name.clone(),
        }
    }
}

/// What is known of a stored object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KnownObject {
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) resource_version: String,
    /// creationTimestamp.
    pub(crate) created: String,
    /// What it claims, by the names of the claims; `None` if that
    /// could not be evaluated.
    pub(crate) claims: Option<BTreeMap<String, Claim>>,
    /// What its condition about conflicts says now.
    pub(crate) condition: Option<String>,
    /// Who controls it.
    pub(crate) owner: Option<Owner>,
}

impl KnownObject {
    /// Whether this is the same object in a state that is not older. The API server's versions of a
    /// resource are numbers that grow.
    pub(crate) fn is_as_new_as(&self, other: &Self) -> bool {
        let number = |known: &Self| known.resource_version.parse::<u64>().ok();
        self.uid == other.uid && number(self) >= number(other)
    }
}

/// A stored object that claims something. The order is that of age.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claimant {
    pub(crate) created: String,
    pub(crate) uid: String,
    pub(crate) object_ref: ObjectRef,
}

/// Since which change an object is outdated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64);

/// What the stored objects claim.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    objects: HashMap<ObjectRef, KnownObject>,
    claimants: HashMap<String, BTreeSet<Claimant>>,
    /// UIDs that were seen alive and then gone, by the names of the claims that they made; the last
    /// few of each.
    gone: HashMap<String, VecDeque<String>>,
    /// The objects that have an owner, by its UID.
    owned: HashMap<String, BTreeSet<ObjectRef>>,
    /// Objects whose claims may depend on an owner that has changed since they were evaluated, and
    /// which change that was.
    outdated: BTreeMap<ObjectRef, Mark>,
    marks: u64,
    /// Kinds that are listed completely.
    listed: HashSet<(String, String)>,
    dirty: BTreeSet<String>,
}

/// What is to be done about one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It is as it should be, or that is not known.
    Keep,
    /// Check again after this time, if nothing changes before.
    Wait(Duration),
    /// Claim it for this object, which is stored without its claim.
    Take(Claimant),
    /// The claim names another UID or policy than those of the stored object that makes it.
    Adopt(Claimant),
    /// Release it, if a live read confirms why.
    Release(ReleaseReason),
}

/// Why a claim is to be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ReleaseReason {
    /// Its holder was stored, and was deleted.
    Deleted,
    /// Its holder never came to be, or is gone since no replica watched.
    Orphan,
    /// Its holder does not claim it any more.
    NotClaimed,
}

impl Ledger {
    /// An object is stored in this state.
    pub(crate) fn put(&mut self, object_ref: ObjectRef, known: KnownObject) {
        if self.objects.get(&object_ref).is_some_and(|old| old.uid != known.uid) {
            self.remove(&object_ref);
        }
        self.set_owner(&object_ref, known.owner.as_ref());
        let claims = known.claims.iter().flatten();
        let claimant = Claimant {
            created: known.created.clone(),
            uid: known.uid.clone(),
            object_ref: object_ref.clone(),
        };
        for (name, _) in claims {
            self.claimants.entry(name.clone()).or_default().insert(claimant.clone());
            self.dirty.insert(name.clone());
        }
        if let Some(old) = self.objects.insert(object_ref.clone(), known) {
            let kept = |name: &String| self.claim(&object_ref, name).is_some();
            let dropped: Vec<String> = old
                .claims
                .into_iter()
                .flatten()
                .map(|(name, _)| name)
                .filter(|n| !kept(n))
                .collect();
            for name in dropped {
                self.forget(&name, &claimant);
            }
        }
    }

    /// An object is gone.
    pub(crate) fn remove(&mut self, object_ref: &ObjectRef) {
        let Some(old) = self.objects.remove(object_ref) else { return };
        self.disown(object_ref, old.owner.as_ref());
        self.outdated.remove(object_ref);
        let claimant =
            Claimant { created: old.created, uid: old.uid, object_ref: object_ref.clone() };
        for (name, _) in old.claims.into_iter().flatten() {
            let gone = self.gone.entry(name.clone()).or_default();
            if gone.len() >= GONE {
                gone.pop_front();
            }
            gone.push_back(claimant.uid.clone());
            self.forget(&name, &claimant);
        }
    }

    fn set_owner(&mut self, object_ref: &ObjectRef, owner: Option<&Owner>) {
        let before = self.objects.get(object_ref).and_then(|old| old.owner.clone());
        self.disown(object_ref, before.as_ref());
        if let Some(owner) = owner {
            self.owned.entry(owner.uid.clone()).or_default().insert(object_ref.clone());
        }
    }

    fn disown(&mut self, object_ref: &ObjectRef, owner: Option<&Owner>) {
        let Some(owner) = owner else { return };
        if let Some(owned) = self.owned.get_mut(&owner.uid) {
            owned.remove(object_ref);
            if owned.is_empty() {
                self.owned.remove(&owner.uid);
            }
        }
    }

    /// The objects that the object of that UID controls.
    pub(crate) fn owned_by(&self, uid: &str) -> impl Iterator<Item = &ObjectRef> {
        self.owned.get(uid).into_iter().flatten()
    }

    /// This object has changed: what it owns, or it if a known object owns it, may have been evaluated
    /// with a lookup that did not show the change yet.
    pub(crate) fn mark_outdated(&mut self, object_ref: &ObjectRef) {
        let Some(known) = self.objects.get(object_ref) else { return };
        let mut outdated: Vec<ObjectRef> = self.owned_by(&known.uid).cloned().collect();
        let owner = known.owner.as_ref().map(|owner| owner.object_ref(&object_ref.namespace));
        if owner.is_some_and(|owner| self.objects.contains_key(&owner)) {
            outdated.push(object_ref.clone());
        }
        self.marks += 1;
        self.outdated.extend(outdated.into_iter().map(|one| (one, Mark(self.marks))));
    }

    /// The objects that have to be evaluated again.
    pub(crate) fn outdated(&self) -> impl Iterator<Item = &ObjectRef> {
        self.outdated.keys()
    }

    /// Since which change the object has to be evaluated again, if it has to.
    pub(crate) fn mark_of(&self, object_ref: &ObjectRef) -> Option<Mark> {
        self.outdated.get(object_ref).copied()
    }

    /// The object has been evaluated again because of this change; if there was another one since, that
    /// has to be done once more.
    pub(crate) fn evaluated_again(&mut self, object_ref: &ObjectRef, mark: Mark) {
        if self.mark_of(object_ref) != Some(mark) {
            return;
        }
        self.outdated.remove(object_ref);
        // What is reported of it had to wait.
        let claims = self.objects.get(object_ref).and_then(|known| known.claims.as_ref());
        self.dirty.extend(claims.into_iter().flat_map(BTreeMap::keys).cloned());
    }

    /// Whether it is not known yet that an object claims what its owner claims too.
    pub(crate) fn may_be_exempt(&self, object_ref: &ObjectRef, owner: &Claimant) -> bool {
        let known = self.objects.get(object_ref).and_then(|known| known.owner.as_ref());
        self.outdated.contains_key(object_ref) && known.is_some_and(|known| known.uid == owner.uid)
    }

    fn forget(&mut self, name: &str, claimant: &Claimant) {
        if let Some(claimants) = self.claimants.get_mut(name) {
            claimants.remove(claimant);
            if claimants.is_empty() {
                self.claimants.remove(name);
            }
        }
        self.dirty.insert(name.to_owned());
    }

    /// All objects of a kind have been put, and these are all there are.
    pub(crate) fn listed(&mut self, group: &str, kind: &str, object_refs: &HashSet<ObjectRef>) {
        let of_kind =
            |object_ref: &&ObjectRef| object_ref.group == group && object_ref.kind == kind;
        let gone: Vec<ObjectRef> = self
            .objects
            .keys()
            .filter(of_kind)
            .filter(|object_ref| !object_refs.contains(*object_ref))
            .cloned()
            .collect();
        for object_ref in gone {
            self.remove(&object_ref);
        }
        self.listed.insert((group.to_owned(), kind.to_owned()));
    }

    /// Marks these claims to be reconciled.
    pub(crate) fn touch(&mut self, names: impl IntoIterator<Item = String>) {
        self.dirty.extend(names);
    }

    /// The next claim to reconcile.
    pub(crate) fn pop(&mut self) -> Option<String> {
        self.dirty.pop_first()
    }

    /// What is known of an object.
    pub(crate) fn known(&self, object_ref: &ObjectRef) -> Option<&KnownObject> {
        self.objects.get(object_ref)
    }

    /// What the object claims under that name.
    pub(crate) fn claim(&self, object_ref: &ObjectRef, name: &str) -> Option<&Claim> {
        self.objects.get(object_ref)?.claims.as_ref()?.get(name)
    }

    /// It is certain that the object claims this.
    pub(crate) fn add_claim(&mut self, object_ref: &ObjectRef, name: &str, claim: &Claim) {
        let Some(mut known) = self.objects.get(object_ref).cloned() else { return };
        known.claims.get_or_insert_default().insert(name.to_owned(), claim.clone());
        self.put(object_ref.clone(), known);
    }

    /// The objects that make the claim, oldest first.
    pub(crate) fn claimants(&self, name: &str) -> impl Iterator<Item = &Claimant> {
        self.claimants.get(name).into_iter().flatten()
    }

    /// Whether another object than this one claims the same with the same value.
    pub(crate) fn is_shared(&self, name: &str, object_ref: &ObjectRef) -> bool {
        let Some(own) = self.claim(object_ref, name) else { return false };
        self.claimants(name).any(|other| {
            other.object_ref != *object_ref
                && self
                    .claim(&other.object_ref, name)
                    .is_some_and(|claim| own.shares_with(claim.value.as_deref()))
        })
    }

    /// The oldest of the objects that make the claim. Creation times are whole seconds: of those of
    /// the same second it is the one that holds the claim.
    pub(crate) fn oldest(&self, name: &str, holder: Option<&ObjectRef>) -> Option<&Claimant> {
        let first = self.claimants(name).next()?;
        let mut same_second =
            self.claimants(name).take_while(|other| other.created == first.created);
        same_second.find(|other| Some(&other.object_ref) == holder).or(Some(first))
    }

    /// What is to be done about the claim of that name, which is stored as `seen`.
    pub(crate) fn action(
        &mut self,
        name: &str,
        seen: Option<&CachedClaim>,
        unchanged: Duration,
        grace: Duration,
        policies: &ClaimingPolicies,
    ) -> Action {
        let Some(seen) = seen else {
            self.gone.remove(name);
            return self.claimants(name).next().cloned().map_or(Action::Keep, Action::Take);
        };
        let held = &seen.spec.holder;
        let object_ref = ObjectRef::of(held);
        let kind = (object_ref.group.clone(), object_ref.kind.clone());
        let state = policies.state_of(seen.spec.policy.as_deref());
        let is_active = state == PolicyState::Active;
        let after = |grace: Duration, reason| match grace.checked_sub(unchanged) {
            None | Some(Duration::ZERO) => Action::Release(reason),
            Some(left) => Action::Wait(left),
        };
        match self.objects.get(&object_ref) {
            Some(KnownObject { claims: None, .. }) => Action::Keep,
            Some(KnownObject { claims: Some(claims), uid, created, .. })
                if claims.contains_key(name) =>
            {
                let adopt = Claimant { created: created.clone(), uid: uid.clone(), object_ref };
                if held.uid.as_ref() != Some(uid) || !is_active {
                    return Action::Adopt(adopt);
                }
                let wanted = claims.get(name).and_then(|claim| claim.value.as_ref());
                let is_shared = self.is_shared(name, &adopt.object_ref);
                let (value, shared) = (seen.spec.value.as_ref(), seen.spec.shared == Some(true));
                if value == wanted && shared == is_shared {
                    Action::Keep
                } else if value == wanted && is_shared {
                    // There are others that were stored without being asked.
                    Action::Adopt(adopt)
                } else {
                    // An update to another value, or a create that shares it, may be under way. Nor at once where
                    // there is no value: an older definition of UniqueClaims drops it.
                    match grace.checked_sub(unchanged) {
                        None | Some(Duration::ZERO) => Action::Adopt(adopt),
                        Some(left) => Action::Wait(left),
                    }
                }
            }
            // What it claims by that policy is not known either.
            Some(_) if state == PolicyState::Unavailable => Action::Keep,
            Some(_) if is_active => after(grace, ReleaseReason::NotClaimed),
            Some(_) => after(grace * WITHOUT_POLICY, ReleaseReason::NotClaimed),
            None if self.is_gone(name, held) => Action::Release(ReleaseReason::Deleted),
            // Of a kind that is not watched, the live read before the release decides.
            None if self.listed.contains(&kind) || !is_active => {
                after(grace, ReleaseReason::Orphan)
            }
            None => after(grace * 2, ReleaseReason::Orphan),
        }
    }

    fn is_gone(&self, name: &str, held: &StoredHolder) -> bool {
        let uid = held.uid.as_ref();
        uid.is_some_and(|uid| self.gone.get(name).is_some_and(|gone| gone.contains(uid)))
    }
}

impl Claimant {
    /// As the holder of a claim.
    pub(crate) fn holder(&self, version: &str) -> Holder {
        let ObjectRef { group, kind, namespace, name } = self.object_ref.clone();
        Holder { group, version: version.to_owned(), kind, namespace, name, uid: self.uid.clone() }
    }
}

#[cfg(test)]
mod tests;
