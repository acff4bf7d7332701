//! Whether what an AdmissionPolicy says is active on every live replica, by what each of them has
//! written into its status. Known where this replica leads.

use tokio::sync::watch;

use super::reporter::Snapshot;
use super::status;
use crate::replicas::Replicas;

/// How far policies are rolled out; cheap to clone.
#[derive(Clone)]
pub(crate) struct Rollout {
    pub(super) snapshots: watch::Receiver<Snapshot>,
    pub(super) replicas: Replicas,
}

impl Rollout {
    /// Whether every live replica runs the policy as its object is now. One that has no object is
    /// run nowhere: the replicas follow the objects.
    pub(crate) fn is_complete(&self, policy: &str) -> bool {
        let snapshot = self.snapshots.borrow();
        let Some(reported) = snapshot.get(policy) else { return true };
        let alive = self.replicas.alive();
        // Until the live replicas are known nothing can be said for all.
        !alive.is_empty() && status::is_rolled_out(&reported.object, &alive)
    }
}
