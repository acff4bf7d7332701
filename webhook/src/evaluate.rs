//! Evaluates the active policies on an object that is stored. The audit and the claim controller both
//! use it, so they cannot come to other verdicts. Deliberately not here: what follows from a verdict.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use opensdn_policy_host::lookup::Lookup;
use opensdn_policy_host::scan::ScanError;
use opensdn_policy_host::stored::{EvaluateAs, StoredObject};
use opensdn_policy_host::{Context, PolicySet, Verdict};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::active::{ActivePolicies, ActiveSet};

/// How long all policies together may take for one object. No request waits for it.
const EVALUATION_TIMEOUT: Duration = Duration::from_secs(10);

/// The labels of a namespace, where they are known.
pub type NamespaceLabels = dyn Fn(&str) -> Option<Arc<BTreeMap<String, String>>> + Send + Sync;

/// Evaluates stored objects; cheap to clone.
#[derive(Clone)]
pub struct Evaluator {
    active: Arc<ActivePolicies>,
    lookup: Arc<dyn Lookup>,
    labels: Arc<NamespaceLabels>,
}

impl Evaluator {
    /// Evaluates the `active` policies.
    #[must_use]
    pub fn new(
        active: Arc<ActivePolicies>,
        lookup: Arc<dyn Lookup>,
        labels: Arc<NamespaceLabels>,
    ) -> Self {
        Self { active, lookup, labels }
    }

    /// What is in force now; `None` until that is known for the first time. No policy in force
    /// is an answer too, so the two must not look the same.
    pub(crate) fn in_force(&self) -> Option<Arc<PolicySet>> {
        let known = *self.active.changed().borrow() > 0;
        known.then(|| Arc::clone(&self.active.current().set))
    }

    /// What is active now, with what the objects say; `None` until it is known for the first time.
    pub(crate) fn active_set(&self) -> Option<Arc<ActiveSet>> {
        let known = *self.active.changed().borrow() > 0;
        known.then(|| self.active.snapshot())
    }

    /// Ticks when the active set changes.
    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.active.changed()
    }

    /// The verdict of the policies on the object.
    ///
    /// # Errors
    /// Its text could be read in two ways; the API server stores no such object.
    pub(crate) async fn evaluate(
        &self,
        set: &PolicySet,
        stored: &StoredObject,
        evaluate_as: EvaluateAs,
    ) -> Result<Verdict, ScanError> {
        let labels = (self.labels)(&stored.namespace);
        let deadline = Instant::now() + EVALUATION_TIMEOUT;
        let context = Context { lookup: Arc::clone(&self.lookup), deadline, is_background: true };
        set.evaluate_stored(stored, evaluate_as, labels.as_deref(), &context).await
    }
}
