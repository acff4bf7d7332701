//! The policies in force, with what a review must be searched for on their behalf. They are
//! swapped as a whole; a review in progress keeps those that it started with.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use opensdn_admission_policy::CLOSED_GROUPS;
use opensdn_crds::OPENSDN_GROUP;
use opensdn_policy_host::{
    InactivePolicy, Mode, PolicySet, Scope,
    scan::{Mount, Paths, Slot},
};
use tokio::sync::watch;

use crate::metrics::{Metrics, PolicyMetrics};

/// Where an object carries the annotation that confirms a loss (policy `destructive-change`).
const CONFIRM_LOSS: &str = "/metadata/annotations/opensdn.io~1confirm-loss";

/// The policies in force.
pub struct ActivePolicies {
    current: ArcSwap<ActiveSet>,
    changed: watch::Sender<u64>,
    metrics: Metrics,
}

/// One state of the policies in force. It never changes.
pub struct ActiveSet {
    /// The policies.
    pub set: Arc<PolicySet>,
    /// Names of the AdmissionPolicies that enforce by what the objects say. One that is not in the
    /// set could not be loaded here, or not yet; that says nothing about other replicas.
    pub enforcing: BTreeSet<String>,
    /// Handles of the metrics, one per binding of the set, in its order.
    pub metrics: Vec<PolicyMetrics>,
    /// What a review is searched for.
    pub(crate) paths: Paths,
    /// Where it is found.
    pub(crate) places: Places,
}

/// Where the parts of an AdmissionReview are found after a scan.
pub(crate) struct Places {
    pub(crate) api_version: Slot,
    pub(crate) review_kind: Slot,
    pub(crate) uid: Slot,
    pub(crate) operation: Slot,
    pub(crate) group: Slot,
    pub(crate) version: Slot,
    pub(crate) kind: Slot,
    pub(crate) subresource: Slot,
    pub(crate) name: Slot,
    pub(crate) namespace: Slot,
    pub(crate) user: Slot,
    pub(crate) groups: Slot,
    pub(crate) dry_run: Slot,
    pub(crate) object: Mount,
    pub(crate) old_object: Mount,
    pub(crate) object_uid: Slot,
    pub(crate) object_name: Slot,
    pub(crate) generate_name: Slot,
    pub(crate) deletion: Slot,
    pub(crate) request_version: Slot,
    pub(crate) request_kind: Slot,
    pub(crate) confirmed: [Slot; 2],
}

impl ActivePolicies {
    /// Nothing is in force yet: what comes to a replica that is not ready is not judged, and that is
    /// no pass.
    #[must_use]
    pub fn new(metrics: Metrics) -> Self {
        let closed = CLOSED_GROUPS.map(str::to_owned).to_vec();
        let set = PolicySet::new(Vec::new(), closed).with_inactive(vec![not_read_yet()]);
        let current = ActiveSet::new(set, BTreeSet::new(), &metrics);
        Self { current: ArcSwap::from_pointee(current), changed: watch::Sender::new(0), metrics }
    }

    /// Puts another set in force, from the next review on. Those of its policies that enforce are
    /// all that do.
    pub fn swap(&self, set: PolicySet) {
        let active = set.bindings().map(|binding| (&binding.name, binding.mode));
        let inactive = set.inactive().iter().map(|policy| (&policy.name, policy.mode));
        let enforcing = active
            .chain(inactive)
            .filter(|(_, mode)| *mode == Mode::Enforce)
            .map(|(name, _)| name.clone())
            .collect();
        self.swap_with(set, enforcing);
    }

    /// Puts another set in force, from the next review on. `enforcing` are the AdmissionPolicies
    /// that enforce by what the objects say, in the set or not.
    pub fn swap_with(&self, set: PolicySet, enforcing: BTreeSet<String>) {
        let kinds: Vec<String> = set
            .bindings()
            .flat_map(|binding| &binding.policy.metadata().interests)
            .map(|interest| format!("{}/{}", interest.group, interest.kind))
            .collect();
        self.metrics.know_kinds(kinds.iter().map(String::as_str));
        self.current.store(Arc::new(ActiveSet::new(set, enforcing, &self.metrics)));
        self.changed.send_modify(|generation| *generation += 1);
    }

    /// What is in force now.
    #[must_use]
    pub fn current(&self) -> Guard<Arc<ActiveSet>> {
        self.current.load()
    }

    /// What is in force now, to be kept for longer than one review.
    #[must_use]
    pub fn snapshot(&self) -> Arc<ActiveSet> {
        self.current.load_full()
    }

    /// Ticks when the active set changes.
    #[must_use]
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

/// Stands for all policies until they have been read.
fn not_read_yet() -> InactivePolicy {
    InactivePolicy {
        name: "(all)".to_owned(),
        mode: Mode::Enforce,
        failure_mode: None,
        scope: Scope::default(),
        interests: None,
        never: vec![(OPENSDN_GROUP.to_owned(), "AdmissionPolicy".to_owned())],
        why: "the webhook has just started and reads the AdmissionPolicies; try again".to_owned(),
    }
}

impl ActiveSet {
    fn new(set: PolicySet, enforcing: BTreeSet<String>, metrics: &Metrics) -> Self {
        let mut paths = Paths::new();
        // Mounted first: what is wanted of the object besides shares the slots of the policies.
        let object = paths.mount("/request/object", set.paths());
        let old_object = paths.mount("/request/oldObject", set.paths());
        let places = Places {
            api_version: paths.want("/apiVersion"),
            review_kind: paths.want("/kind"),
            uid: paths.want("/request/uid"),
            operation: paths.want("/request/operation"),
            group: paths.want("/request/kind/group"),
            version: paths.want("/request/kind/version"),
            kind: paths.want("/request/kind/kind"),
            subresource: paths.want("/request/subResource"),
            name: paths.want("/request/name"),
            namespace: paths.want("/request/namespace"),
            user: paths.want("/request/userInfo/username"),
            groups: paths.want("/request/userInfo/groups"),
            dry_run: paths.want("/request/dryRun"),
            object,
            old_object,
            object_uid: paths.want("/request/object/metadata/uid"),
            object_name: paths.want("/request/object/metadata/name"),
            generate_name: paths.want("/request/object/metadata/generateName"),
            deletion: paths.want("/request/object/metadata/deletionTimestamp"),
            request_version: paths.want("/request/requestKind/version"),
            request_kind: paths.want("/request/requestKind/kind"),
            confirmed: ["oldObject", "object"]
                .map(|object| paths.want(&format!("/request/{object}{}", CONFIRM_LOSS))),
        };
        let metrics =
            set.bindings().map(|binding| metrics.policy(&binding.name, binding.mode)).collect();
        Self { set: Arc::new(set), enforcing, metrics, paths, places }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use opensdn_policy_host::{Context, Operation, Request, lookup::NoLookup};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test]
    async fn before_the_policies_are_read_our_kinds_are_refused_and_other_kinds_pass() {
        let active = ActivePolicies::new(Metrics::new());
        let denies = async |group, kind| {
            let request = Request {
                operation: Operation::Update,
                group,
                version: "v1alpha1",
                kind,
                subresource: "",
                name: "n",
                namespace: "ns",
                namespace_labels: None,
                user: "u",
                groups: &[],
                dry_run: false,
                object: None,
                old_object: None,
            };
            let deadline = Instant::now() + Duration::from_secs(60);
            let context = Context { lookup: Arc::new(NoLookup), deadline, is_background: false };
            active.snapshot().set.evaluate(&request, &context).await.denies()
        };
        assert!(denies("tf.tungsten.io", "Vrouter").await);
        assert!(!denies("opensdn.io", "AdmissionPolicy").await);
        assert!(!denies("", "Pod").await);
        active.swap(PolicySet::default());
        assert!(!denies("tf.tungsten.io", "Vrouter").await, "there are none");
    }
}
