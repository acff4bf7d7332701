//! What the stored objects claim, and what follows for each claim. Pure: no client, no clock.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use opensdn_crds::unique_claim::Holder as Held;
use opensdn_policy_host::Claim;

use super::Holder;
use super::cache::Seen;

/// Claims of policies that are not in force are kept for so many times the grace: a policy whose
/// module cannot be loaded for a while must not cost the objects their claims.
pub(crate) const WITHOUT_POLICY: u32 = 10;

/// An object, whatever its UID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Place {
    pub(crate) fn of(held: &Held) -> Self {
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
pub(crate) struct Known {
    pub(crate) uid: String,
    pub(crate) version: String,
    /// creationTimestamp.
    pub(crate) created: String,
    /// What it claims, by the names of the claims; `None` if the policies could not tell.
    pub(crate) wants: Option<BTreeMap<String, Claim>>,
    /// What its condition about conflicts says now.
    pub(crate) told: Option<String>,
}

/// A stored object that claims something. The order is that of age.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wanter {
    pub(crate) created: String,
    pub(crate) uid: String,
    pub(crate) place: Place,
}

/// What the stored objects claim.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    objects: HashMap<Place, Known>,
    wanters: HashMap<String, BTreeSet<Wanter>>,
    /// UIDs that were seen alive and then gone, by the names of the claims that they made.
    gone: HashMap<String, HashSet<String>>,
    /// Kinds that are listed completely.
    listed: HashSet<(String, String)>,
    dirty: BTreeSet<String>,
}

/// What is to be done about one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is as it should be, or it cannot be told.
    Keep,
    /// Look again after this time, if nothing changes before.
    Wait(Duration),
    /// Claim it for this object, which is stored without its claim.
    Take(Wanter),
    /// The claim names another UID or policy than those of the stored object that makes it.
    Adopt(Wanter),
    /// Release it, if a live read confirms why.
    Release(Why),
}

/// Why a claim is to be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Why {
    /// Its holder was stored, and was deleted.
    Deleted,
    /// Its holder never came to be, or is gone since nobody looked.
    Orphan,
    /// Its holder does not claim it any more.
    NotClaimed,
}

impl Ledger {
    /// An object is stored in this state.
    pub(crate) fn put(&mut self, place: Place, known: Known) {
        if self.objects.get(&place).is_some_and(|old| old.uid != known.uid) {
            self.remove(&place);
        }
        let claims = known.wants.iter().flatten();
        let wanter =
            Wanter { created: known.created.clone(), uid: known.uid.clone(), place: place.clone() };
        for (name, _) in claims {
            self.wanters.entry(name.clone()).or_default().insert(wanter.clone());
            self.dirty.insert(name.clone());
        }
        if let Some(old) = self.objects.insert(place.clone(), known) {
            let kept = |name: &String| self.wants(&place, name).is_some();
            let dropped: Vec<String> = old
                .wants
                .into_iter()
                .flatten()
                .map(|(name, _)| name)
                .filter(|n| !kept(n))
                .collect();
            for name in dropped {
                self.forget(&name, &wanter);
            }
        }
    }

    /// An object is gone.
    pub(crate) fn remove(&mut self, place: &Place) {
        let Some(old) = self.objects.remove(place) else { return };
        let wanter = Wanter { created: old.created, uid: old.uid, place: place.clone() };
        for (name, _) in old.wants.into_iter().flatten() {
            self.gone.entry(name.clone()).or_default().insert(wanter.uid.clone());
            self.forget(&name, &wanter);
        }
    }

    fn forget(&mut self, name: &str, wanter: &Wanter) {
        if let Some(wanters) = self.wanters.get_mut(name) {
            wanters.remove(wanter);
            if wanters.is_empty() {
                self.wanters.remove(name);
            }
        }
        self.dirty.insert(name.to_owned());
    }

    /// All objects of a kind have been put, and these are all there are.
    pub(crate) fn listed(&mut self, group: &str, kind: &str, places: &HashSet<Place>) {
        let of_kind = |place: &&Place| place.group == group && place.kind == kind;
        let gone: Vec<Place> = self
            .objects
            .keys()
            .filter(of_kind)
            .filter(|place| !places.contains(*place))
            .cloned()
            .collect();
        for place in gone {
            self.remove(&place);
        }
        self.listed.insert((group.to_owned(), kind.to_owned()));
    }

    /// Looks at these claims again.
    pub(crate) fn touch(&mut self, names: impl IntoIterator<Item = String>) {
        self.dirty.extend(names);
    }

    /// A claim that has to be looked at.
    pub(crate) fn pop(&mut self) -> Option<String> {
        self.dirty.pop_first()
    }

    /// What is known of an object.
    pub(crate) fn known(&self, place: &Place) -> Option<&Known> {
        self.objects.get(place)
    }

    /// What the object claims under that name.
    pub(crate) fn wants(&self, place: &Place, name: &str) -> Option<&Claim> {
        self.objects.get(place)?.wants.as_ref()?.get(name)
    }

    /// The objects that make the claim, oldest first.
    pub(crate) fn wanters(&self, name: &str) -> impl Iterator<Item = &Wanter> {
        self.wanters.get(name).into_iter().flatten()
    }

    /// The oldest of the objects that make the claim. Ages are whole seconds: of those of one age it
    /// is the one that holds the claim.
    pub(crate) fn eldest(&self, name: &str, holder: Option<&Place>) -> Option<&Wanter> {
        let first = self.wanters(name).next()?;
        let mut of_its_age = self.wanters(name).take_while(|other| other.created == first.created);
        of_its_age.find(|other| Some(&other.place) == holder).or(Some(first))
    }

    /// What is to be done about the claim of that name, which is stored as `seen`.
    pub(crate) fn next(
        &mut self,
        name: &str,
        seen: Option<&Seen>,
        unchanged: Duration,
        grace: Duration,
        policies: &HashSet<String>,
    ) -> Next {
        let Some(seen) = seen else {
            self.gone.remove(name);
            return self.wanters(name).next().cloned().map_or(Next::Keep, Next::Take);
        };
        let held = &seen.spec.holder;
        let place = Place::of(held);
        let kind = (place.group.clone(), place.kind.clone());
        let in_force = seen.spec.policy.as_ref().is_some_and(|policy| policies.contains(policy));
        let after = |patience: Duration, why| match patience.checked_sub(unchanged) {
            None | Some(Duration::ZERO) => Next::Release(why),
            Some(left) => Next::Wait(left),
        };
        match self.objects.get(&place) {
            Some(Known { wants: None, .. }) => Next::Keep,
            Some(Known { wants: Some(wants), uid, created, .. }) if wants.contains_key(name) => {
                if held.uid.as_ref() == Some(uid) && in_force {
                    return Next::Keep;
                }
                Next::Adopt(Wanter { created: created.clone(), uid: uid.clone(), place })
            }
            Some(_) if in_force => after(grace, Why::NotClaimed),
            Some(_) => after(grace * WITHOUT_POLICY, Why::NotClaimed),
            None if self.is_gone(name, held) => Next::Release(Why::Deleted),
            // Of a kind that is not watched, the live read before the release tells.
            None if self.listed.contains(&kind) || !in_force => after(grace, Why::Orphan),
            None => after(grace * 2, Why::Orphan),
        }
    }

    fn is_gone(&self, name: &str, held: &Held) -> bool {
        let uid = held.uid.as_ref();
        uid.is_some_and(|uid| self.gone.get(name).is_some_and(|gone| gone.contains(uid)))
    }
}

impl Wanter {
    /// As the holder of a claim.
    pub(crate) fn holder(&self, version: &str) -> Holder {
        let Place { group, kind, namespace, name } = self.place.clone();
        Holder { group, version: version.to_owned(), kind, namespace, name, uid: self.uid.clone() }
    }
}

#[cfg(test)]
mod tests;
