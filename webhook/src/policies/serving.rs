//! Where this process answers reviews: puts in force what has been loaded, when its lookups are answered,
//! and says what became of each policy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use opensdn_admission_policy::CLOSED_GROUPS;
use opensdn_policy_host::{Binding, InactivePolicy, Index, PolicySet};
use tokio::sync::watch;

use super::entry::{self, Entry};
use super::reporter::Snapshot;
use crate::active::ActivePolicies;
use crate::lookup::{LookupCaches, namespace_index};

/// Puts policies in force.
pub(super) struct Serving {
    pub(super) replica: String,
    pub(super) active: Arc<ActivePolicies>,
    pub(super) lookups: LookupCaches,
    pub(super) snapshots: watch::Sender<Snapshot>,
    /// Why the AdmissionPolicies cannot be read; none while they can.
    pub(super) outdated: watch::Sender<Option<String>>,
}

impl Serving {
    /// Asks for the lookups of what is in force and what is about to be.
    pub(super) fn want_lookups(&self, entries: &BTreeMap<String, Entry>) {
        let mut indexes: Vec<Index> = Vec::new();
        for binding in entries.values().flat_map(Entry::bindings) {
            indexes.extend(binding.policy.metadata().indexes.iter().cloned());
            if binding.scope.namespace_selector.is_some() {
                indexes.push(namespace_index());
            }
        }
        self.lookups.want(&indexes);
    }

    /// Whether the lookups of the binding are answered; else why not.
    pub(super) fn answers(&self, binding: &Binding) -> Result<(), String> {
        let selects = binding.scope.namespace_selector.is_some().then(namespace_index);
        let mut indexes = binding.policy.metadata().indexes.iter().chain(&selects);
        indexes.try_for_each(|index| self.lookups.answers(index)).map_err(|error| error.0)
    }

    /// Puts the entries in force as they are now. `is_starting`: not all have been loaded yet.
    pub(super) fn swap_if_changed(&self, entries: &BTreeMap<String, Entry>, is_starting: bool) {
        let inactive: Vec<InactivePolicy> =
            entries.iter().filter_map(|(name, entry)| entry.inactive(name, is_starting)).collect();
        let enforcing: BTreeSet<String> = entries
            .iter()
            .filter(|(_, entry)| entry.enforces())
            .map(|(name, _)| name.clone())
            .collect();
        let wanted: Vec<&Binding> = entries.values().filter_map(Entry::serving).collect();
        let snapshot = self.active.snapshot();
        let current: Vec<&Binding> = snapshot.set.bindings().collect();
        if wanted.len() == current.len()
            && wanted.iter().zip(&current).all(|(one, other)| entry::same(one, other))
            && snapshot.set.inactive() == inactive
            && snapshot.enforcing == enforcing
        {
            return;
        }
        let bindings: Vec<Binding> = wanted.into_iter().cloned().collect();
        tracing::info!(policies = bindings.len(), inactive = inactive.len(), "policy set updated");
        let closed = CLOSED_GROUPS.map(str::to_owned).to_vec();
        self.active.swap_with(PolicySet::new(bindings, closed).with_inactive(inactive), enforcing);
    }

    /// All that was there at the start has been dealt with. Nothing in force is an answer too, and
    /// differs from not knowing yet.
    pub(super) fn all_are_read(&self) {
        if *self.active.changed().borrow() == 0 {
            self.active.swap(PolicySet::default());
        }
    }

    /// Says what became of each policy, and why that may be outdated, if it may.
    pub(super) fn report(&self, entries: &BTreeMap<String, Entry>, outdated: Option<&str>) {
        self.outdated.send_if_modified(|before| {
            let changed = before.as_deref() != outdated;
            if changed {
                *before = outdated.map(str::to_owned);
            }
            changed
        });
        let report = |(name, entry): (&String, &Entry)| (name.clone(), entry.report(&self.replica));
        let snapshot = entries.iter().map(report).collect();
        self.snapshots.send_if_modified(|before| {
            let changed = !entry::same_report(before, &snapshot);
            if changed {
                *before = Arc::new(snapshot);
            }
            changed
        });
    }
}
