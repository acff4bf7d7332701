//! What the API server has to send us: what policies judge, those that are in force and those that
//! could not be loaded, as far as it is known what these are about. Nothing here comes from a status:
//! that is written by the processes that answer reviews, which must not say what they are asked.

use opensdn_policy_host::{Binding, FailureMode, Interest, KindRule};

use super::entry;

/// What the API server has to send us.
#[derive(Debug)]
pub(crate) struct Demand {
    /// The policies that are in force or about to be.
    pub(crate) bindings: Vec<Binding>,
    /// Those of which nothing is, for they could not be loaded.
    pub(crate) lost: Vec<LostPolicy>,
    /// Whether the first are all, as their objects are now. Of a policy that cannot be loaded here another replica may
    /// have this version in force, so what is sent for it must not be cut off.
    pub(crate) complete: bool,
}

/// A policy that could not be loaded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LostPolicy {
    /// What its module is about, where it was loaded before or could at least be asked.
    pub(crate) interests: Option<Vec<Interest>>,
    /// The kinds that its AdmissionPolicy names.
    pub(crate) kinds: Vec<KindRule>,
    pub(crate) failure_mode: Option<FailureMode>,
}

/// What one policy judges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged<'d> {
    /// What its module is about; none, where that is not known.
    pub(crate) interests: Option<&'d [Interest]>,
    /// The kinds that its AdmissionPolicy names; none: all that the module is about.
    pub(crate) kinds: &'d [KindRule],
    pub(crate) failure_mode: Option<FailureMode>,
}

impl Demand {
    /// What all policies judge.
    pub(crate) fn judged(&self) -> Vec<Judged<'_>> {
        let loaded = self.bindings.iter().map(|binding| Judged {
            interests: Some(&binding.policy.metadata().interests),
            kinds: &binding.scope.kinds,
            failure_mode: binding.failure_mode,
        });
        let lost = self.lost.iter().map(|lost| Judged {
            interests: lost.interests.as_deref(),
            kinds: &lost.kinds,
            failure_mode: lost.failure_mode,
        });
        loaded.chain(lost).collect()
    }

    /// Whether both ask for the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.complete == other.complete
            && self.lost == other.lost
            && self.bindings.len() == other.bindings.len()
            && self.bindings.iter().zip(&other.bindings).all(|(one, other)| entry::same(one, other))
    }
}
