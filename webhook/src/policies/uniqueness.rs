//! How far the claims of what is stored are: the claim controller of the leader says it, and it is
//! written into the status of AdmissionPolicies. Pure. Deliberately not here: claims.

use std::collections::BTreeMap;

use time::OffsetDateTime;

/// How far they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimsProgress {
    /// The number of the active set by which all of them have been made.
    pub claimed: Option<u64>,
    /// Why the API server refuses to have claims written; none while it does not.
    pub refused: Option<String>,
    /// The policies of which objects were stored without the claims that they make, as while the webhook was
    /// switched off, by their names.
    pub unclaimed: BTreeMap<String, Unclaimed>,
}

/// That objects were stored without the claims that they make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclaimed {
    /// When that was found: what was said before of uniqueness was not so.
    pub found_at: OffsetDateTime,
    /// Whether there are such objects still.
    pub are_left: bool,
}

impl ClaimsProgress {
    /// Whether the API server refuses to have claims written, and why. What was claimed then has to be claimed again:
    /// they may be gone.
    pub fn is_refused(&mut self, why: Option<&str>) {
        self.refused = why.map(str::to_owned);
        if why.is_some() {
            self.claimed = None;
        }
    }

    /// Such an object of this policy was found.
    pub fn found_unclaimed(&mut self, policy: &str, now: OffsetDateTime) {
        let found = Unclaimed { found_at: now, are_left: true };
        match self.unclaimed.get_mut(policy) {
            // There are thousands at once.
            Some(Unclaimed { are_left: true, .. }) => {}
            Some(known) => *known = found,
            None => drop(self.unclaimed.insert(policy.to_owned(), found)),
        }
    }

    /// Of which policies claims have to be written still. One that has to be is no sign that its object is stored
    /// without it: a watch may be behind.
    pub fn are_left(&mut self, of: impl Fn(&str) -> bool) {
        for (policy, unclaimed) in &mut self.unclaimed {
            unclaimed.are_left &= of(policy);
        }
    }
}

/// Whether no new object gets a key that a stored one has and that the policy makes unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Uniqueness {
    /// The policy makes nothing unique.
    NotClaimed,
    /// This replica loads its module, so what was found before stays.
    NotKnown,
    /// This replica has no module of it: if it makes something unique, that holds no more.
    NotRun,
    /// What is stored has not all been claimed, as far as this leader knows.
    Pending,
    /// This leader has found objects without the claims that they make, whatever was found before.
    Unclaimed,
    /// What is stored has been claimed, but not every live replica runs the policy.
    NotEverywhere,
    /// It has; where that was not so at a time, since later than that.
    Holds(Option<OffsetDateTime>),
    /// The API server takes no claims, for this reason.
    Refused(String),
}

impl Uniqueness {
    /// That of a policy which claims, and is active here in the set of that number, if it is. A replica that does
    /// not run it yet lets an object pass whose key is taken.
    pub(super) fn of_claiming(
        progress: &ClaimsProgress,
        policy: &str,
        active: Option<u64>,
        is_rolled_out: bool,
    ) -> Self {
        let is_claimed = active.is_some() && progress.claimed == active;
        let unclaimed = progress.unclaimed.get(policy);
        match &progress.refused {
            Some(why) => Self::Refused(why.clone()),
            None if unclaimed.is_some_and(|unclaimed| unclaimed.are_left) => Self::Unclaimed,
            None if is_claimed && is_rolled_out => {
                Self::Holds(unclaimed.map(|unclaimed| unclaimed.found_at))
            }
            None if is_claimed => Self::NotEverywhere,
            None => Self::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;

    use super::*;

    #[test]
    fn uniqueness_holds_when_all_is_claimed_and_every_replica_asks_for_it() {
        let progress = |claimed| ClaimsProgress { claimed, ..ClaimsProgress::default() };
        let of = |claimed, active, rolled_out| {
            Uniqueness::of_claiming(&progress(claimed), "p", active, rolled_out)
        };
        assert_eq!(of(Some(3), Some(3), true), Uniqueness::Holds(None));
        assert_eq!(
            of(Some(3), Some(3), false),
            Uniqueness::NotEverywhere,
            "a replica does not run it yet"
        );
        assert_eq!(of(Some(2), Some(3), true), Uniqueness::Pending);
        assert_eq!(of(None, None, true), Uniqueness::Pending, "it is not active here");
        let mut progress = progress(Some(3));
        let of = |progress: &ClaimsProgress| Uniqueness::of_claiming(progress, "p", Some(3), true);
        progress.is_refused(Some("no"));
        assert_eq!(of(&progress), Uniqueness::Refused("no".to_owned()));
        progress.is_refused(None);
        assert_eq!(of(&progress), Uniqueness::Pending, "claims may be gone");
    }

    #[test]
    fn it_does_not_hold_while_objects_are_stored_without_their_claims_and_holds_since_later() {
        let (start, later) =
            (OffsetDateTime::UNIX_EPOCH, OffsetDateTime::UNIX_EPOCH + Duration::SECOND);
        let mut progress = ClaimsProgress::default();
        let of = |progress: &ClaimsProgress, policy: &str| {
            Uniqueness::of_claiming(progress, policy, Some(3), true)
        };
        assert_eq!(of(&progress, "p"), Uniqueness::Pending, "another has led");
        progress.found_unclaimed("p", start);
        progress.found_unclaimed("p", later);
        assert_eq!(of(&progress, "p"), Uniqueness::Unclaimed);
        assert_eq!(of(&progress, "other"), Uniqueness::Pending, "its objects have their claims");
        progress.are_left(|policy| policy == "p");
        progress.claimed = Some(3);
        assert_eq!(of(&progress, "p"), Uniqueness::Unclaimed);
        progress.are_left(|_| false);
        assert_eq!(of(&progress, "p"), Uniqueness::Holds(Some(start)));
        assert_eq!(of(&progress, "other"), Uniqueness::Holds(None));
        progress.are_left(|_| true);
        assert_eq!(of(&progress, "p"), Uniqueness::Holds(Some(start)), "a watch is behind");
        progress.found_unclaimed("p", later);
        progress.are_left(|_| false);
        assert_eq!(of(&progress, "p"), Uniqueness::Holds(Some(later)));
    }
}
