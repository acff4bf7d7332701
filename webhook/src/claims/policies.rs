//! What is known of the policy by which a claim was made. What one replica has loaded proves nothing
//! about others: a claim is given up for want of its policy only where the AdmissionPolicy objects
//! say that nothing enforces it.

use std::collections::{BTreeSet, HashSet};

use opensdn_policy_host::{Mode, PolicySet};

/// The policies that claim, as the objects and this replica know them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClaimingPolicies {
    /// Active here: what they claim can be evaluated.
    active: HashSet<String>,
    /// Enforced by what the objects say, and not active here: what they claim is not known.
    unavailable: HashSet<String>,
}

/// What is known of the policy of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyState {
    /// It is active here.
    Active,
    /// It is to be enforced, but cannot be evaluated here. Other replicas may rely on its claims.
    Unavailable,
    /// There is none of that name that enforces, or it makes no claims.
    Gone,
}

impl ClaimingPolicies {
    /// By the active `set` and the names of the AdmissionPolicies that enforce.
    pub(crate) fn new(set: &PolicySet, enforcing: &BTreeSet<String>) -> Self {
        let enforced = || set.bindings().filter(|binding| binding.mode == Mode::Enforce);
        let claims = |binding: &&opensdn_policy_host::Binding| binding.policy.metadata().claims;
        let active = enforced().filter(claims).map(|binding| binding.name.clone()).collect();
        let known: HashSet<&str> = enforced().map(|binding| binding.name.as_str()).collect();
        let is_unknown = |name: &&String| !known.contains(name.as_str());
        Self { active, unavailable: enforcing.iter().filter(is_unknown).cloned().collect() }
    }

    /// Whether the policy is active here and claims.
    pub(crate) fn is_active(&self, policy: &str) -> bool {
        self.active.contains(policy)
    }

    /// What is known of the policy that a claim names.
    pub(crate) fn state_of(&self, policy: Option<&str>) -> PolicyState {
        match policy {
            Some(policy) if self.active.contains(policy) => PolicyState::Active,
            Some(policy) if self.unavailable.contains(policy) => PolicyState::Unavailable,
            Some(_) | None => PolicyState::Gone,
        }
    }

    #[cfg(test)]
    pub(super) fn of(active: &[&str], unavailable: &[&str]) -> Self {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Self { active: set(active), unavailable: set(unavailable) }
    }
}
