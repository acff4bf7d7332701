//! Which objects lost a key to an older one, and on which of them that has still to be reported.
//! Deliberately not here: how it is reported (`report.rs`).

use std::collections::{BTreeSet, HashMap};

use opensdn_crds::unique_claim::Holder as StoredHolder;
use opensdn_policy_host::Claim;

use crate::claims::known_conflicts::{KnownConflicts, State};
use crate::claims::ledger::{Claimant, Ledger, ObjectRef};
use crate::claims::report::Conflicts;
use crate::metrics::BackgroundMetrics;

/// The conflicts that are known.
pub(super) struct ConflictTracker<'k> {
    metrics: BackgroundMetrics,
    conflicts: &'k KnownConflicts,
    /// By claim: its scope, and the objects that lost it.
    losers: HashMap<String, (String, Vec<ObjectRef>)>,
    unreported: BTreeSet<ObjectRef>,
}

/// However a session ends, the next one, here or elsewhere, counts them all again.
impl Drop for ConflictTracker<'_> {
    fn drop(&mut self) {
        *self.conflicts.lock() = State::default();
        self.metrics.forget_conflicts();
    }
}

impl<'k> ConflictTracker<'k> {
    pub(super) fn new(conflicts: &'k KnownConflicts, metrics: BackgroundMetrics) -> Self {
        Self { metrics, conflicts, losers: HashMap::new(), unreported: BTreeSet::new() }
    }

    /// Of everything that is stored it is known what it claims.
    pub(super) fn are_all_known(&self) {
        self.conflicts.lock().are_all = true;
    }

    /// What was reported on this object may not hold any more.
    pub(super) fn recheck(&mut self, object_ref: ObjectRef) {
        self.unreported.insert(object_ref);
    }

    /// Another object on which something has to be reported, of those that are `settled`, with its
    /// conflicts; none of those: that they are resolved.
    pub(super) fn next_unreported(
        &mut self,
        is_settled: impl Fn(&ObjectRef) -> bool,
    ) -> Option<(ObjectRef, Conflicts)> {
        let object_ref = self.unreported.iter().find(|one| is_settled(one))?.clone();
        self.unreported.remove(&object_ref);
        let known = &mut self.conflicts.lock().conflicts;
        let conflicts = known.get(&object_ref).cloned().unwrap_or_default();
        if conflicts.is_empty() {
            known.remove(&object_ref);
        }
        Some((object_ref, conflicts))
    }

    /// Updates which objects lost this key, which `holder` has.
    pub(super) fn note(&mut self, ledger: &Ledger, name: &str, holder: Option<&ObjectRef>) {
        let known = &mut self.conflicts.lock().conflicts;
        if let Some((scope, object_refs)) = self.losers.remove(name) {
            self.metrics.conflicts(&scope).dec();
            for object_ref in object_refs {
                if let Some(conflicts) = known.get_mut(&object_ref) {
                    conflicts.remove(name);
                }
                self.unreported.insert(object_ref);
            }
        }
        let lost = losers_of(ledger, name, holder);
        let Some((_, (claim, _))) = lost.first() else { return };
        let scope = claim.scope.clone();
        self.metrics.conflicts(&scope).inc();
        let mut object_refs = Vec::new();
        for (object_ref, conflict) in lost {
            let conflicts = known.entry(object_ref.clone()).or_default();
            conflicts.insert(name.to_owned(), conflict);
            self.unreported.insert(object_ref.clone());
            object_refs.push(object_ref);
        }
        self.losers.insert(name.to_owned(), (scope, object_refs));
    }
}

fn losers_of(
    ledger: &Ledger,
    name: &str,
    holder: Option<&ObjectRef>,
) -> Vec<(ObjectRef, (Claim, StoredHolder))> {
    let Some(oldest) = ledger.oldest(name, holder) else { return Vec::new() };
    let Some(known) = ledger.known(&oldest.object_ref) else { return Vec::new() };
    let held = ledger.claim(&oldest.object_ref, name);
    let pointer = held.map(|claim| claim.pointer.as_str());
    let shares = |claim: &Claim| held.is_some_and(|held| held.shares_with(claim.value.as_deref()));
    let older = oldest.object_ref.held(known, pointer);
    let conflict = |loser: &Claimant| {
        let claim = ledger.claim(&loser.object_ref, name).filter(|claim| !shares(claim))?.clone();
        Some((loser.object_ref.clone(), (claim, older.clone())))
    };
    let is_loser = |claimant: &&Claimant| {
        *claimant != oldest && !ledger.may_be_exempt(&claimant.object_ref, oldest)
    };
    ledger.claimants(name).filter(is_loser).filter_map(conflict).collect()
}
