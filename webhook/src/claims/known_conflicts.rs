//! The conflicts between stored objects that are known, for the controller that finds them and the audit that reports
//! them with what else is wrong.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opensdn_policy_host::Mode;
use opensdn_policy_host::stored::{Found, StoredObject, Weight};

use super::error::describe;
use super::ledger::ObjectRef;
use super::report::Conflicts;

/// None where this replica does not lead.
#[derive(Debug, Default)]
pub(super) struct KnownConflicts {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// By the objects that lost a key.
    pub(super) conflicts: HashMap<ObjectRef, Conflicts>,
    /// Whether these are all, as of everything that is stored it was known once what it claims.
    pub(super) are_all: bool,
}

impl KnownConflicts {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Each change leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what is not among them is none.
    pub(super) fn are_all(&self) -> bool {
        self.lock().are_all
    }

    /// Those of an object as they would be refused if it were created now.
    pub(super) fn of(&self, stored: &StoredObject) -> Vec<Found> {
        let state = self.lock();
        let of_object = state.conflicts.get(&ObjectRef::of_stored(stored)).into_iter().flatten();
        let found = of_object.map(|(_, (claim, older))| Found {
            policy: claim.policy.clone(),
            mode: Mode::Enforce,
            code: claim.code.clone(),
            weight: Weight::Denial,
            pointer: claim.pointer.clone(),
            message: format!(
                "{} ({}) is claimed by {} too, which was created earlier",
                claim.key,
                claim.scope,
                describe(older)
            ),
            hint: "change or delete one of them".to_owned(),
        });
        found.collect()
    }
}
