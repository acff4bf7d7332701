//! Which replicas of the webhook are alive: each keeps a Lease of its own, and the leader reads
//! them all and clears away those that expired.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use opensdn_runtime::call::{Call, CallError, Verb};
use opensdn_runtime::error_chain;
use opensdn_runtime::leader::lease::Observed;
use opensdn_runtime::leader::{LEASE_DURATION, Leadership, RENEW_PERIOD};
use opensdn_runtime::shutdown::{Drain, Phase};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

const LABEL: &str = "opensdn.io/webhook-replica";
/// Long before the Lease expires, so that a call can be repeated.
const CALL_TIMEOUT: Duration = Duration::from_secs(4);
/// How often the leader looks who is alive.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The replicas that are alive, as the leader sees them; empty elsewhere. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Replicas {
    alive: watch::Receiver<Arc<BTreeSet<String>>>,
}

impl Replicas {
    /// Begins to show that this replica is alive and, where it leads, to watch the others.
    #[must_use]
    pub(crate) fn start(
        client: Client,
        namespace: &str,
        replica: &str,
        leadership: Leadership,
        drain: Drain,
    ) -> Self {
        let (sender, alive) = watch::channel(Arc::default());
        let api: Api<Lease> = Api::namespaced(client, namespace);
        tokio::spawn(live(api.clone(), replica.to_owned(), drain));
        tokio::spawn(look(api, leadership, sender));
        Self { alive }
    }

    /// The names of those alive. Unknown, and empty, where this replica does not lead.
    #[must_use]
    pub(crate) fn alive(&self) -> Arc<BTreeSet<String>> {
        self.alive.borrow().clone()
    }

    /// Returns when another set is alive; never, once the process ends.
    pub(crate) async fn changed(&mut self) {
        if self.alive.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn lease_name(replica: &str) -> String {
    format!("opensdn-webhook-replica-{replica}")
}

/// Renews this replica's own Lease until the process drains, then removes it.
async fn live(api: Api<Lease>, replica: String, mut drain: Drain) {
    let name = lease_name(&replica);
    loop {
        tokio::select! {
            () = drain.reached(Phase::Draining) => break,
            () = renew(&api, &name, &replica) => {}
        }
        tokio::select! {
            () = drain.reached(Phase::Draining) => break,
            () = sleep(RENEW_PERIOD) => {}
        }
    }
    // Else it expires by itself.
    if let Err(failure) =
        call(Verb::Delete, &name).run(api.delete(&name, &DeleteParams::default())).await
    {
        tracing::debug!(
            error = error_chain(&failure),
            "failed to delete the Lease of this replica"
        );
    }
}

async fn renew(api: &Api<Lease>, name: &str, replica: &str) {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "labels": {LABEL: "true"}},
        "spec": {
            "holderIdentity": replica,
            "leaseDurationSeconds": LEASE_DURATION.as_secs(),
            "renewTime": k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        },
    });
    let params = PatchParams::apply("opensdn-webhook").force();
    if let Err(failure) =
        call(Verb::Patch, name).run(api.patch(name, &params, &Patch::Apply(&lease))).await
    {
        tracing::warn!(error = error_chain(&failure), "failed to renew the Lease of this replica");
    }
}

async fn look(
    api: Api<Lease>,
    mut leadership: Leadership,
    sender: watch::Sender<Arc<BTreeSet<String>>>,
) {
    let mut known = BTreeMap::new();
    while !sender.is_closed() {
        if !leadership.is_held() {
            known.clear();
            publish(&sender, BTreeSet::new());
            leadership.changed().await;
            continue;
        }
        match round(&api, &mut known).await {
            Ok(alive) => publish(&sender, alive),
            Err(failure) => {
                tracing::warn!(error = error_chain(&failure), "failed to list replica leases");
            }
        }
        tokio::select! {
            () = leadership.changed() => {}
            () = sleep(POLL_INTERVAL) => {}
        }
    }
}

/// One look: who is alive. Leases that have expired are deleted, unless they were renewed meanwhile.
async fn round(
    api: &Api<Lease>,
    known: &mut BTreeMap<String, Observed>,
) -> Result<BTreeSet<String>, CallError> {
    let leases = Call::of::<Lease>(Verb::List)
        .timeout(CALL_TIMEOUT)
        .run(api.list(&ListParams::default().labels(LABEL)))
        .await?
        .items;
    let (alive, expired) = divide(&leases, known, Instant::now());
    for lease in expired {
        let preconditions = Preconditions {
            uid: lease.metadata.uid.clone(),
            resource_version: lease.metadata.resource_version.clone(),
        };
        let params = DeleteParams::default().preconditions(preconditions);
        match call(Verb::Delete, &lease.name_any())
            .run(api.delete(&lease.name_any(), &params))
            .await
        {
            Ok(_) => tracing::info!(lease = lease.name_any(), "lost a replica: its Lease expired"),
            Err(failure) => {
                tracing::debug!(error = error_chain(&failure), "failed to delete an expired Lease")
            }
        }
    }
    Ok(alive)
}

/// Who is alive, and which Leases have expired.
fn divide<'l>(
    leases: &'l [Lease],
    known: &mut BTreeMap<String, Observed>,
    now: Instant,
) -> (BTreeSet<String>, Vec<&'l Lease>) {
    let mut next = BTreeMap::new();
    let (mut alive, mut expired) = (BTreeSet::new(), Vec::new());
    for lease in leases {
        let name = lease.name_any();
        let observed = Observed::update(known.remove(&name), lease, now);
        if observed.age(now) >= LEASE_DURATION {
            expired.push(lease);
        } else if let Some(replica) =
            lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone())
        {
            alive.insert(replica);
        }
        next.insert(name, observed);
    }
    *known = next;
    (alive, expired)
}

fn call(verb: Verb, name: &str) -> Call {
    Call::of::<Lease>(verb).name(name).timeout(CALL_TIMEOUT)
}

fn publish(sender: &watch::Sender<Arc<BTreeSet<String>>>, alive: BTreeSet<String>) {
    sender.send_if_modified(|before| {
        let changed = **before != alive;
        if changed {
            *before = Arc::new(alive);
        }
        changed
    });
}

#[cfg(test)]
mod tests {

    use opensdn_runtime::leader::lease::new_lease;

    use super::*;

    fn lease(replica: &str, version: &str) -> Lease {
        let mut lease = new_lease(&lease_name(replica), replica, LEASE_DURATION);
        lease.metadata.resource_version = Some(version.to_owned());
        lease
    }

    #[tokio::test]
    async fn a_replica_is_dead_when_its_lease_did_not_change_for_its_duration() {
        let now = Instant::now();
        let mut known = BTreeMap::new();
        let both = [lease("a", "1"), lease("b", "2")];
        let (alive, expired) = divide(&both, &mut known, now);
        assert_eq!((alive.len(), expired.len()), (2, 0));
        let later = [lease("a", "3"), lease("b", "2")];
        let (alive, expired) = divide(&later, &mut known, now + LEASE_DURATION);
        assert_eq!(alive.into_iter().collect::<Vec<_>>(), ["a"]);
        assert_eq!(expired.len(), 1);
    }
}
