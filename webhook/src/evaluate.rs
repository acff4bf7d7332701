//! Evaluates the active policies on an object that is stored, by the same `PolicySet::evaluate` as
//! requests. The audit and the claim controller both use it, so they cannot come to other verdicts.
//! Deliberately not here: what follows from a verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use opensdn_policy_host::lookup::{Lookup, is_secret};
use opensdn_policy_host::scan::{self, Paths, ScanError};
use opensdn_policy_host::{
    Binding, Context, Interest, Operation, PolicySet, Request, Step, Verdict,
};
use opensdn_runtime::discovery::Snapshot;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::active::{ActivePolicies, ActiveSet};

/// Who asks, for policies that look at the user and for exemptions.
pub(crate) const USER: &str = "system:opensdn-audit";

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

/// For which operation an object is evaluated: policies may differ between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EvaluateAs {
    /// As if it were created now.
    Created,
    /// As if it were updated to what it is.
    Updated,
}

/// A stored object.
#[derive(Clone, Debug)]
pub(crate) struct StoredObject {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// `creationTimestamp`: in UTC and whole seconds, so its order is that of its text.
    pub(crate) created: String,
    text: String,
}

impl StoredObject {
    /// Reads the object; `None` if it has no kind or name.
    pub(crate) fn read(object: &Value) -> Option<Self> {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = match text("/apiVersion").split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", text("/apiVersion")),
        };
        let stored = Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text("/kind").to_owned(),
            namespace: text("/metadata/namespace").to_owned(),
            name: text("/metadata/name").to_owned(),
            uid: text("/metadata/uid").to_owned(),
            created: text("/metadata/creationTimestamp").to_owned(),
            text: object.to_string(),
        };
        (!stored.kind.is_empty() && !stored.name.is_empty()).then_some(stored)
    }
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
        let mut paths = Paths::new();
        let mount = paths.mount("", set.paths());
        let found = scan::scan(stored.text.as_bytes(), &paths)?;
        let object = found.document(&mount);
        let labels = (self.labels)(&stored.namespace);
        let request = Request {
            operation: match evaluate_as {
                EvaluateAs::Created => Operation::Create,
                EvaluateAs::Updated => Operation::Update,
            },
            group: &stored.group,
            version: &stored.version,
            kind: &stored.kind,
            subresource: "",
            name: &stored.name,
            namespace: &stored.namespace,
            namespace_labels: labels.as_deref(),
            user: USER,
            groups: &[],
            // As for a request that counts: the verdict is to be the same.
            dry_run: false,
            object,
            old_object: object.filter(|_| evaluate_as == EvaluateAs::Updated),
        };
        let deadline = Instant::now() + EVALUATION_TIMEOUT;
        Ok(set.evaluate(&request, &Context { lookup: Arc::clone(&self.lookup), deadline }).await)
    }
}

/// What can be listed of what policies are about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Subjects {
    /// Groups and kinds.
    pub(crate) kinds: BTreeSet<(String, String)>,
    /// Policies that are about any kind, which cannot be listed, with the reason in words.
    pub(crate) not_listed: BTreeMap<String, String>,
}

impl Subjects {
    /// The kinds that these policies evaluate when an object is created or updated. `served` has
    /// the kinds of a group, where a policy is about all of them.
    pub(crate) fn of<'b>(bindings: impl Iterator<Item = &'b Binding>, served: &Snapshot) -> Self {
        let mut subjects = Self::default();
        for binding in bindings {
            for interest in &binding.policy.metadata().interests {
                if writes(interest) {
                    subjects.add(binding, interest, served);
                }
            }
        }
        // Whatever a policy may read of them, no list of Secrets is to hold their values.
        subjects.kinds.retain(|(group, kind)| !is_secret(group, kind));
        subjects
    }

    fn add(&mut self, binding: &Binding, interest: &Interest, served: &Snapshot) {
        let is = |wanted: &str, actual: &str| wanted == "*" || wanted == actual;
        let rules = &binding.scope.kinds;
        for rule in rules {
            if is(&interest.group, &rule.group) && is(&interest.kind, &rule.kind) {
                self.kinds.insert((rule.group.clone(), rule.kind.clone()));
            }
        }
        if !rules.is_empty() {
            return;
        }
        let Interest { group, kind, .. } = interest;
        if group == "*" {
            let why = "it is about kinds of any group; name the kinds in spec.kinds of the \
                AdmissionPolicy to have them checked";
            self.not_listed.insert(binding.name.clone(), why.to_owned());
        } else if kind == "*" {
            self.kinds.extend(served.of_group(group).map(|kind| (group.clone(), kind.to_owned())));
        } else {
            self.kinds.insert((group.clone(), kind.clone()));
        }
    }
}

fn writes(interest: &Interest) -> bool {
    let operations = &interest.operations;
    interest.step == Step::Validate
        && (operations.contains(&Operation::Create) || operations.contains(&Operation::Update))
}
