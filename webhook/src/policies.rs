//! AdmissionPolicy objects become policies in force.
//!
//! ```text
//! AdmissionPolicy --source, contents--> bytes --loader--> Policy --plan--> Binding
//!     --lookup caches filled--> ActivePolicies::swap                --> status (reporter)
//! ```
//!
//! Each policy goes this way by itself: one that cannot be loaded leaves its own previous version
//! in force and says so, and the others are not affected. Where there is no previous version, as after
//! a restart, what an enforcing policy is about is inconclusive, and its failure mode decides. Here: one actor that owns the state and decides
//! what is next. Deliberately not here: evaluation (the host), who calls us (`configuration`).

pub mod args;
pub(crate) mod check;
pub(crate) mod compiler;
pub mod engines;
mod entry;
mod loader;
mod module_store;
mod reporter;
mod rollout;
mod status;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use opensdn_admission_policy::CLOSED_GROUPS;
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_policy_host::{Binding, InactivePolicy, Index, Limits, PolicySet};
use opensdn_runtime::discovery::Discovery;
use opensdn_runtime::leader::Leadership;
use opensdn_runtime::readiness::{Readiness, ReadinessCheck};
use opensdn_runtime::watch::{Event, WatchSpec, watch};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::active::ActivePolicies;
use crate::lookup::{LookupCaches, namespace_index};
use crate::metrics::{Loaded, Metrics};
use crate::replicas::Replicas;
use check::Checker;
use engines::Engines;
use entry::{Entry, Loading};
use loader::Loader;
use module_store::ModuleStore;
use reporter::{Reporter, Snapshot};

pub(crate) use rollout::Rollout;

/// What the policies need from the rest of the process.
pub(crate) struct Deps {
    pub(crate) client: Client,
    pub(crate) replica: String,
    pub(crate) engines: Engines,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) limits: Limits,
    pub(crate) active: Arc<ActivePolicies>,
    pub(crate) lookups: LookupCaches,
    pub(crate) discovery: Discovery,
    pub(crate) leadership: Leadership,
    pub(crate) replicas: Replicas,
    /// The number of the active set by which all claims of what is stored have been made.
    pub(crate) claimed: watch::Receiver<Option<u64>>,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
}

/// What the API server has to send us.
#[derive(Debug)]
pub(crate) struct Demand {
    /// The policies that are in force or about to be.
    pub(crate) bindings: Vec<Binding>,
    /// Whether these are all. Of a policy that cannot be loaded here another replica may have a
    /// version in force, so what is sent for it must not be cut off.
    pub(crate) complete: bool,
}

/// The running part.
pub(crate) struct Policies {
    /// Checks AdmissionPolicies at admission.
    pub(crate) checker: Checker,
    /// What the webhook configurations have to cover; `None` until everything that was there at
    /// the start has been dealt with.
    pub(crate) demand: watch::Receiver<Option<Arc<Demand>>>,
    /// On which replicas policies are active.
    pub(crate) rollout: Rollout,
}

/// Starts to watch and load.
pub(crate) fn start(deps: Deps) -> Policies {
    let Engines { engine, cache, cache_bytes, compiler, .. } = deps.engines;
    let loader = Arc::new(Loader::new(engine, cache, cache_bytes, compiler));
    let contents = ModuleStore::new(deps.client.clone(), deps.folder);
    let checker =
        Checker::new(Arc::clone(&loader), contents.clone(), deps.discovery.clone(), deps.limits);
    let (demand_sender, demand) = watch::channel(None);
    let (snapshot_sender, snapshots) = watch::channel(Snapshot::default());
    let rollout = Rollout { snapshots: snapshots.clone(), replicas: deps.replicas.clone() };
    let reporter = Reporter {
        client: deps.client.clone(),
        replica: deps.replica.clone(),
        leadership: deps.leadership,
        replicas: deps.replicas,
        snapshots,
        claimed: deps.claimed,
        active: deps.active.changed(),
    };
    tokio::spawn(reporter.run());
    let (results, loaded) = mpsc::unbounded_channel();
    let condition = deps.readiness.add_check("policies", "the AdmissionPolicies are being read");
    let actor = Actor {
        replica: deps.replica,
        limits: deps.limits,
        active: deps.active,
        lookups: deps.lookups,
        metrics: deps.metrics,
        loader,
        contents,
        results,
        entries: BTreeMap::new(),
        listed: None,
        progress: Progress::Listing,
        started: Instant::now(),
        condition,
        demand: demand_sender,
        snapshots: snapshot_sender,
    };
    tokio::spawn(actor.run(deps.client, loaded));
    Policies { checker, demand, rollout }
}

/// How far the start has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The objects are being read.
    Listing,
    /// Those that were there are being loaded.
    Loading,
    /// They have been dealt with, well or badly.
    Running,
}

struct Actor {
    replica: String,
    limits: Limits,
    active: Arc<ActivePolicies>,
    lookups: LookupCaches,
    metrics: Metrics,
    loader: Arc<Loader>,
    contents: ModuleStore,
    results: mpsc::UnboundedSender<Loading>,
    entries: BTreeMap<String, Entry>,
    /// The names seen in the list in progress.
    listed: Option<BTreeSet<String>>,
    progress: Progress,
    started: Instant,
    condition: ReadinessCheck,
    demand: watch::Sender<Option<Arc<Demand>>>,
    snapshots: watch::Sender<Snapshot>,
}

/// For so long a replica that starts is not ready while a policy that cannot be loaded just now is tried
/// again: on a full disk, a rolling update would replace the replicas that have it. Then it serves, and
/// refuses what that policy is about, so that AdmissionPolicies can be repaired.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// How often a policy that waits for lookups is checked for having waited long enough.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

impl Actor {
    async fn run(mut self, client: Client, mut loaded: mpsc::UnboundedReceiver<Loading>) {
        let mut changes = watch(client, target());
        let mut contents = self.contents.changed();
        let mut lookups = self.lookups.changed();
        let mut timer = interval(POLL_INTERVAL);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                change = changes.recv() => {
                    let Some(change) = change else { return };
                    self.observe(change);
                    // What came together is dealt with together: one swap, not one per object.
                    while let Ok(change) = changes.try_recv() {
                        self.observe(change);
                    }
                }
                result = loaded.recv() => {
                    let Some(result) = result else { return };
                    self.finish(result);
                    while let Ok(result) = loaded.try_recv() {
                        self.finish(result);
                    }
                }
                _ = contents.changed() => {}
                _ = lookups.changed() => {}
                _ = timer.tick() => {}
            }
            self.settle();
        }
    }

    fn observe(&mut self, change: Event) {
        match change {
            Event::Init => self.listed = Some(BTreeSet::new()),
            Event::InitApply(object) => {
                if let Some(name) = self.put(object)
                    && let Some(listed) = &mut self.listed
                {
                    listed.insert(name);
                }
            }
            Event::InitDone => {
                if let Some(listed) = self.listed.take() {
                    let names: Vec<String> = self.entries.keys().cloned().collect();
                    for name in names.into_iter().filter(|name| !listed.contains(name)) {
                        self.remove(&name);
                    }
                }
                if self.progress == Progress::Listing {
                    self.progress = Progress::Loading;
                }
            }
            Event::Apply(object) => {
                self.put(object);
            }
            Event::Delete(object) => {
                if let Some(name) = name(&object) {
                    self.remove(&name);
                }
            }
            Event::Heartbeat => {}
            Event::Disconnected { why, .. } => {
                if self.progress == Progress::Listing {
                    self.condition.fail(format!("failed to read the AdmissionPolicies: {why}"));
                }
            }
        }
    }

    fn put(&mut self, object: Value) -> Option<String> {
        let name = name(&object)?;
        match serde_json::from_value::<AdmissionPolicy>(object) {
            Ok(object) => match self.entries.get_mut(&name) {
                Some(entry) => entry.update(object),
                None => {
                    self.entries.insert(name.clone(), Entry::new(object));
                }
            },
            // The schema of the CRD lets none of these through; what ran before stays.
            Err(error) => {
                tracing::error!(policy = name, %error, "failed to read an AdmissionPolicy")
            }
        }
        Some(name)
    }

    fn remove(&mut self, name: &str) {
        if self.entries.remove(name).is_some() {
            tracing::info!(policy = name, "policy removed");
            self.metrics.policy_loaded(name, Loaded::Gone);
        }
    }

    fn finish(&mut self, result: Loading) {
        if let Some(entry) = self.entries.get_mut(&result.name) {
            entry.finish(result);
        }
    }

    /// Takes every policy as far as it can go now, and reports it.
    fn settle(&mut self) {
        let sources = self.entries.values().filter_map(|entry| entry.source().cloned()).collect();
        self.contents.want(&sources);
        for (name, entry) in &mut self.entries {
            entry.advance(name, &self.contents, &self.loader, self.limits, &self.results);
        }
        self.want_lookups();
        for entry in self.entries.values_mut() {
            entry.promote(|binding| lookups(binding, &self.lookups));
        }
        self.swap_if_changed();
        self.want_lookups();
        self.get_ready();
        self.report();
    }

    /// Asks for the lookups of what is in force and what is about to be.
    fn want_lookups(&self) {
        let mut indexes: Vec<Index> = Vec::new();
        for binding in self.entries.values().flat_map(Entry::bindings) {
            indexes.extend(binding.policy.metadata().indexes.iter().cloned());
            if binding.scope.namespace_selector.is_some() {
                indexes.push(namespace_index());
            }
        }
        self.lookups.want(&indexes);
    }

    fn swap_if_changed(&self) {
        // What has not been read yet would look as if it were not there.
        if self.progress == Progress::Listing {
            return;
        }
        let is_starting = self.progress == Progress::Loading;
        let inactive: Vec<InactivePolicy> = self
            .entries
            .iter()
            .filter_map(|(name, entry)| entry.inactive(name, is_starting))
            .collect();
        let enforcing: BTreeSet<String> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.enforces())
            .map(|(name, _)| name.clone())
            .collect();
        let wanted: Vec<&Binding> = self.entries.values().filter_map(Entry::serving).collect();
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
        let digests: HashSet<_> = bindings.iter().map(|one| one.policy.digest()).collect();
        tracing::info!(policies = bindings.len(), inactive = inactive.len(), "policy set updated");
        let closed = CLOSED_GROUPS.map(str::to_owned).to_vec();
        let set = PolicySet::new(bindings, closed).with_inactive(inactive);
        self.active.swap_with(set, enforcing);
        self.loader.forget_all_but(&digests);
    }

    fn get_ready(&mut self) {
        let waits = self.started.elapsed() < START_TIMEOUT;
        let is_dealt_with =
            |entry: &Entry| entry.is_settled() && !(waits && entry.is_worth_waiting_for());
        if self.progress == Progress::Loading && self.entries.values().all(is_dealt_with) {
            tracing::info!(policies = self.entries.len(), "loaded the AdmissionPolicies");
            self.progress = Progress::Running;
            // Nothing in force is an answer too, and differs from not knowing yet.
            if *self.active.changed().borrow() == 0 {
                self.active.swap(PolicySet::default());
            }
            self.condition.pass();
        }
    }

    fn report(&self) {
        let mut snapshot = BTreeMap::new();
        for (name, entry) in &self.entries {
            self.metrics.policy_loaded(name, entry.metric());
            snapshot.insert(name.clone(), entry.report(&self.replica));
        }
        self.snapshots.send_if_modified(|before| {
            let changed = !entry::same_report(before, &snapshot);
            if changed {
                *before = Arc::new(snapshot);
            }
            changed
        });
        if self.progress == Progress::Running {
            self.publish_demand();
        }
    }

    fn publish_demand(&self) {
        let bindings = self.entries.values().flat_map(Entry::bindings).cloned().collect();
        let complete = self.entries.values().all(|entry| entry.bindings().next().is_some());
        let demand = Demand { bindings, complete };
        self.demand.send_if_modified(|before| {
            let changed = !before.as_ref().is_some_and(|before| {
                before.complete == demand.complete
                    && before.bindings.len() == demand.bindings.len()
                    && before.bindings.iter().zip(&demand.bindings).all(|(a, b)| entry::same(a, b))
            });
            if changed {
                *before = Some(Arc::new(demand));
            }
            changed
        });
    }
}

/// Whether the lookups of the binding are answered; else why not.
fn lookups(binding: &Binding, lookups: &LookupCaches) -> Result<(), String> {
    let selects = binding.scope.namespace_selector.is_some().then(namespace_index);
    let mut indexes = binding.policy.metadata().indexes.iter().chain(&selects);
    indexes.try_for_each(|index| lookups.answers(index)).map_err(|error| error.0)
}

fn target() -> WatchSpec {
    WatchSpec {
        path: "/apis/opensdn.io/v1alpha1/admissionpolicies".to_owned(),
        name: None,
        metadata_only: false,
        heartbeat: Duration::from_secs(10),
    }
}

fn name(object: &Value) -> Option<String> {
    object.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned)
}
