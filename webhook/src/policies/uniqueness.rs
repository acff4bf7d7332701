//! How far the claims of what is stored are: the claim controller of the leader says it, and it is
//! written into the status of AdmissionPolicies. Deliberately not here: claims.

/// How far they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimsProgress {
    /// The number of the active set by which all of them have been made.
    pub claimed: Option<u64>,
    /// Why the API server refuses to have claims written; none while it does not.
    pub refused: Option<String>,
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
    /// It has, but not every live replica runs the policy.
    NotEverywhere,
    /// It has.
    Holds,
    /// The API server takes no claims, for this reason.
    Refused(String),
}

impl Uniqueness {
    /// That of a policy which claims, and is active here in the set of that number, if it is. A replica that does
    /// not run it yet lets an object pass whose key is taken.
    pub(super) fn of_claiming(
        progress: &ClaimsProgress,
        active: Option<u64>,
        is_rolled_out: bool,
    ) -> Self {
        let is_claimed = active.is_some() && progress.claimed == active;
        match &progress.refused {
            Some(why) => Self::Refused(why.clone()),
            None if is_claimed && is_rolled_out => Self::Holds,
            None if is_claimed => Self::NotEverywhere,
            None => Self::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniqueness_holds_when_all_is_claimed_and_every_replica_asks_for_it() {
        let progress = |claimed| ClaimsProgress { claimed, refused: None };
        let of = |claimed, active, rolled_out| {
            Uniqueness::of_claiming(&progress(claimed), active, rolled_out)
        };
        assert_eq!(of(Some(3), Some(3), true), Uniqueness::Holds);
        assert_eq!(
            of(Some(3), Some(3), false),
            Uniqueness::NotEverywhere,
            "a replica does not run it yet"
        );
        assert_eq!(of(Some(2), Some(3), true), Uniqueness::Pending);
        assert_eq!(of(None, None, true), Uniqueness::Pending, "it is not active here");
        let mut progress = progress(Some(3));
        let of = |progress: &ClaimsProgress| Uniqueness::of_claiming(progress, Some(3), true);
        progress.is_refused(Some("no"));
        assert_eq!(of(&progress), Uniqueness::Refused("no".to_owned()));
        progress.is_refused(None);
        assert_eq!(of(&progress), Uniqueness::Pending, "claims may be gone");
    }
}
