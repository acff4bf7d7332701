//! Which replicas of the webhook are alive: each keeps a Lease of its own, which also says whether it is
//! ready, and the leader reads them all and clears away those that expired. Who writes the webhook
//! configurations reads them, too, where nothing else shows that a replica may be called.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use opensdn_deploy::names::webhook::{NAME, REPLICA_LEASE_PREFIX};
use opensdn_runtime::apply::{Context, Deletion, Exactly, apply, delete_exactly, delete_named};
use opensdn_runtime::call::{Call, CallError, Verb};
use opensdn_runtime::error_chain;
use opensdn_runtime::leader::lease::Observed;
use opensdn_runtime::leader::{LEASE_DURATION, Leadership, RENEW_PERIOD};
use opensdn_runtime::readiness::Readiness;
use opensdn_runtime::shutdown::{Drain, Phase};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

const LABEL: &str = "opensdn.io/webhook-replica";
/// The annotation of a replica that is ready.
const READY: &str = "opensdn.io/ready";
/// Long before the Lease expires, so that a call can be repeated.
const CALL_TIMEOUT: Duration = Duration::from_secs(4);
/// How often the leader lists the live replicas.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The replicas that are alive, as the leader sees them; empty elsewhere. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Replicas {
    alive: watch::Receiver<Arc<BTreeSet<String>>>,
}

impl Replicas {
    /// Starts to renew this replica's Lease and, where it leads, to watch the others.
    #[must_use]
    pub(crate) fn start(
        client: Client,
        namespace: &str,
        replica: &str,
        leadership: Leadership,
        readiness: Readiness,
        drain: Drain,
    ) -> Self {
        let (sender, alive) = watch::channel(Arc::default());
        let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
        let ctx = Context::new(client, NAME).timeout(CALL_TIMEOUT);
        let (own, name) = (namespace.to_owned(), replica.to_owned());
        tokio::spawn(live(ctx.clone(), own, name, readiness, drain));
        tokio::spawn(watch_others(api, ctx, leadership, sender));
        Self { alive }
    }

    /// The names of those alive. Unknown, and empty, where this replica does not lead.
    #[must_use]
    pub(crate) fn alive(&self) -> Arc<BTreeSet<String>> {
        self.alive.borrow().clone()
    }

    /// Returns when the set of live replicas changes; never, once the process ends.
    pub(crate) async fn changed(&mut self) {
        if self.alive.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn lease_name(replica: &str) -> String {
    format!("{REPLICA_LEASE_PREFIX}{replica}")
}

/// Renews this replica's own Lease until the process drains, then removes it.
async fn live(
    ctx: Context,
    namespace: String,
    replica: String,
    readiness: Readiness,
    mut drain: Drain,
) {
    let mut checks = readiness.changes();
    loop {
        let is_ready = readiness.missing().is_empty();
        tokio::select! {
            () = drain.reached(Phase::Draining) => break,
            () = renew(&ctx, &namespace, &replica, is_ready) => {}
        }
        tokio::select! {
            () = drain.reached(Phase::Draining) => break,
            () = turned(&mut checks, &readiness, is_ready) => {}
            () = sleep(RENEW_PERIOD) => {}
        }
    }
    let name = lease_name(&replica);
    // Else it expires by itself.
    if let Err(error) = delete_named::<Lease>(&ctx, Some(&namespace), &name).await {
        let error = error_chain(&error);
        tracing::debug!(error, "failed to delete the Lease of this replica");
    }
}

/// Returns when this replica is ready and was not, or the other way round.
async fn turned(checks: &mut watch::Receiver<()>, readiness: &Readiness, was_ready: bool) {
    while readiness.missing().is_empty() == was_ready {
        if checks.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn renew(ctx: &Context, namespace: &str, replica: &str, is_ready: bool) {
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(lease_name(replica)),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(LABEL.to_owned(), "true".to_owned())])),
            annotations: Some(BTreeMap::from([(READY.to_owned(), is_ready.to_string())])),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(replica.to_owned()),
            lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
            renew_time: Some(MicroTime(Timestamp::now())),
            ..LeaseSpec::default()
        }),
    };
    if let Err(error) = apply(ctx, &lease).await {
        tracing::warn!(error = error_chain(&error), "failed to renew the Lease of this replica");
    }
}

/// Where this replica leads: polls the live replicas.
async fn watch_others(
    api: Api<Lease>,
    ctx: Context,
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
        match poll(&api, &ctx, &mut known).await {
            Ok(alive) => publish(&sender, alive),
            Err(error) => {
                tracing::warn!(error = error_chain(&error), "failed to list replica leases");
            }
        }
        tokio::select! {
            () = leadership.changed() => {}
            () = sleep(POLL_INTERVAL) => {}
        }
    }
}

/// The live replicas. Leases that have expired are deleted, unless they were renewed meanwhile.
async fn poll(
    api: &Api<Lease>,
    ctx: &Context,
    known: &mut BTreeMap<String, Observed>,
) -> Result<BTreeSet<String>, CallError> {
    let leases = list(api).await?;
    let (alive, expired) = divide(&leases, known, Instant::now());
    for lease in expired {
        let name = lease.name_any();
        match delete_exactly(ctx, lease, Exactly::ThisVersion).await {
            Ok(Deletion::Deleted) => {
                tracing::info!(lease = name, "lost a replica: its Lease expired")
            }
            Ok(Deletion::NotTheSame) => {
                tracing::debug!(lease = name, "an expired Lease was renewed")
            }
            Err(error) => {
                let error = error_chain(&error);
                tracing::debug!(lease = name, error, "failed to delete an expired Lease");
            }
        }
    }
    Ok(alive)
}

async fn list(api: &Api<Lease>) -> Result<Vec<Lease>, CallError> {
    let params = ListParams::default().labels(LABEL);
    let call = Call::of::<Lease>(Verb::List).timeout(CALL_TIMEOUT);
    Ok(call.run(api.list(&params)).await?.items)
}

/// The live replicas, and which Leases have expired.
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

fn publish(sender: &watch::Sender<Arc<BTreeSet<String>>>, alive: BTreeSet<String>) {
    sender.send_if_modified(|before| {
        let changed = **before != alive;
        if changed {
            *before = Arc::new(alive);
        }
        changed
    });
}

/// Whether any replica is ready, by the Leases, for a process that is none.
pub(crate) struct ReadyReplicas {
    api: Api<Lease>,
    known: BTreeMap<String, Seen>,
    asked: Option<Instant>,
}

/// A Lease of another process.
#[derive(Debug)]
struct Seen {
    version: Option<String>,
    since: Instant,
    /// One that was left behind by a process that is gone is not.
    is_renewed: bool,
}

impl ReadyReplicas {
    /// Of the replicas in this namespace.
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), known: BTreeMap::new(), asked: None }
    }

    /// Whether one is, as its Lease says, which has been renewed since this was asked first: to be asked
    /// again and again until then.
    pub(crate) async fn any(&mut self) -> Result<bool, CallError> {
        let leases = list(&self.api).await?;
        let now = Instant::now();
        // What was renewed since may have been renewed for the last time long ago.
        if self.asked.is_some_and(|asked| now.duration_since(asked) >= LEASE_DURATION) {
            self.known.clear();
        }
        self.asked = Some(now);
        Ok(is_any_ready(&leases, &mut self.known, now))
    }
}

fn is_any_ready(leases: &[Lease], known: &mut BTreeMap<String, Seen>, now: Instant) -> bool {
    let mut next = BTreeMap::new();
    let mut is_any = false;
    for lease in leases {
        let (name, version) = (lease.name_any(), lease.metadata.resource_version.clone());
        let seen = match known.remove(&name) {
            Some(seen) if seen.version == version => seen,
            before => Seen { version, since: now, is_renewed: before.is_some() },
        };
        let is_alive = seen.is_renewed && now.duration_since(seen.since) < LEASE_DURATION;
        is_any |= is_alive && lease.annotations().get(READY).is_some_and(|ready| ready == "true");
        next.insert(name, seen);
    }
    *known = next;
    is_any
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

    #[test]
    fn a_replica_is_ready_if_it_has_said_so_while_another_looked() {
        let now = Instant::now();
        let lease = |version: &str, ready: &str| {
            let mut lease = lease("a", version);
            lease.annotations_mut().insert(READY.to_owned(), ready.to_owned());
            [lease]
        };
        let mut known = BTreeMap::new();
        assert!(!is_any_ready(&lease("1", "true"), &mut known, now), "it may be long dead");
        assert!(!is_any_ready(&lease("1", "true"), &mut known, now + RENEW_PERIOD));
        assert!(is_any_ready(&lease("2", "true"), &mut known, now + RENEW_PERIOD));
        assert!(is_any_ready(&lease("2", "true"), &mut known, now + RENEW_PERIOD * 2));
        assert!(!is_any_ready(
            &lease("2", "true"),
            &mut known,
            now + RENEW_PERIOD + LEASE_DURATION
        ));
        assert!(!is_any_ready(&lease("3", "false"), &mut known, now + LEASE_DURATION * 2));
        assert!(is_any_ready(&lease("4", "true"), &mut known, now + LEASE_DURATION * 2));
        assert!(!is_any_ready(&[], &mut known, now + LEASE_DURATION * 2));
        assert!(!is_any_ready(&lease("5", "true"), &mut known, now + LEASE_DURATION * 2));
    }
}
