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

/// Whether no new object gets a key that a stored one has and that the policy makes unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Uniqueness {
    /// The policy makes nothing unique.
    NotClaimed,
    /// What is stored has not all been claimed, as far as this leader knows.
    Pending,
    /// It has.
    Holds,
    /// The API server takes no claims, for this reason.
    Refused(String),
}

impl Uniqueness {
    /// That of a policy which claims, and is active in the set of that number, if it is.
    pub(super) fn of_claiming(progress: &ClaimsProgress, active: Option<u64>) -> Self {
        match &progress.refused {
            Some(why) => Self::Refused(why.clone()),
            None if active.is_some() && progress.claimed == active => Self::Holds,
            None => Self::Pending,
        }
    }
}
