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
//! what is next. A process that answers no reviews loads all of this only to know what policies judge
//! (`demand.rs`). Deliberately not here: evaluation (the host), who calls us (`configuration`).

pub mod args;
pub(crate) mod check;
mod demand;
pub mod engines;
mod entry;
mod loader;
mod module_store;
mod outdated;
mod reporter;
mod rollout;
mod serving;
mod status;
mod uniqueness;
mod unreadable;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use opensdn_deploy::names::webhook::NAME;
use opensdn_policy_host::Limits;
use opensdn_runtime::discovery::Discovery;
use opensdn_runtime::events::Events;
use opensdn_runtime::leader::Leadership;
use opensdn_runtime::readiness::{Readiness, ReadinessCheck};
use opensdn_runtime::watch::{Event, WatchSpec, watch};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::active::ActivePolicies;
use crate::lookup::LookupCaches;
use crate::metrics::{Loaded, Metrics};
use crate::replicas::Replicas;
use check::Checker;
use engines::Engines;
use entry::{Entry, Loading};
use loader::Loader;
use module_store::ModuleStore;
use outdated::Silence;
use reporter::{Reporter, Snapshot};
use serving::Serving;

pub(crate) use demand::{Demand, Judged};
pub(crate) use rollout::Rollout;
pub use uniqueness::{ClaimsProgress, Unclaimed};

/// What modules are loaded by, in every process.
pub(crate) struct LoaderDeps {
    pub(crate) client: Client,
    pub(crate) engines: Engines,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) limits: Limits,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
}

/// What policies that are put in force need from the rest of the process.
pub(crate) struct Deps {
    pub(crate) replica: String,
    pub(crate) active: Arc<ActivePolicies>,
    pub(crate) lookups: LookupCaches,
    pub(crate) discovery: Discovery,
    pub(crate) leadership: Leadership,
    pub(crate) replicas: Replicas,
    /// How far the claims of what is stored are.
    pub(crate) claims: watch::Receiver<ClaimsProgress>,
}

/// The running part.
pub(crate) struct Policies {
    /// Checks AdmissionPolicies at admission.
    pub(crate) checker: Checker,
    /// What the webhook configurations have to cover.
    pub(crate) demand: Demanded,
    /// On which replicas policies are active.
    pub(crate) rollout: Rollout,
}

/// What the webhook configurations have to cover; `None` until everything that was there at the start
/// has been dealt with.
pub(crate) type Demanded = watch::Receiver<Option<Arc<Demand>>>;

/// Starts to watch and load, and to put in force what is loaded.
pub(crate) fn start(loader: LoaderDeps, deps: Deps) -> Policies {
    let (snapshot_sender, snapshots) = watch::channel(Snapshot::default());
    let (outdated_sender, outdated) = watch::channel(None);
    let rollout = Rollout { snapshots: snapshots.clone(), replicas: deps.replicas.clone() };
    let reporter = Reporter {
        client: loader.client.clone(),
        events: Events::new(loader.client.clone(), NAME, &deps.replica),
        replica: deps.replica.clone(),
        leadership: deps.leadership,
        replicas: deps.replicas,
        snapshots,
        claims: deps.claims,
        active: deps.active.changed(),
        outdated,
    };
    tokio::spawn(reporter.run());
    let serving = Serving {
        replica: deps.replica,
        active: deps.active,
        lookups: deps.lookups,
        snapshots: snapshot_sender,
        outdated: outdated_sender,
    };
    let limits = loader.limits;
    let started = start_actor(loader, Some(serving));
    let checker = Checker::new(started.loader, started.contents, deps.discovery, limits);
    Policies { checker, demand: started.demand, rollout }
}

/// Starts to watch and load, only to know what is asked for: nothing is put in force or reported.
pub(crate) fn start_demand(loader: LoaderDeps) -> Demanded {
    start_actor(loader, None).demand
}

struct Started {
    loader: Arc<Loader>,
    contents: ModuleStore,
    demand: Demanded,
}

fn start_actor(deps: LoaderDeps, serving: Option<Serving>) -> Started {
    let LoaderDeps { client, engines, folder, limits, metrics, readiness } = deps;
    let Engines { engine, cache, cache_bytes, compiler, .. } = engines;
    let loader = Arc::new(Loader::new(engine, cache, cache_bytes, compiler));
    let contents = ModuleStore::new(client.clone(), folder);
    let (demand_sender, demand) = watch::channel(None);
    let (results, loaded) = mpsc::unbounded_channel();
    let actor = Actor {
        limits,
        serving,
        metrics,
        loader: Arc::clone(&loader),
        contents: contents.clone(),
        results,
        entries: BTreeMap::new(),
        listed: None,
        progress: Progress::Listing,
        started: Instant::now(),
        silence: Silence::default(),
        condition: readiness.add_check("policies", "the AdmissionPolicies are being read"),
        demand: demand_sender,
    };
    tokio::spawn(actor.run(client, loaded));
    Started { loader, contents, demand }
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
    limits: Limits,
    /// Where what is loaded is put in force.
    serving: Option<Serving>,
    metrics: Metrics,
    loader: Arc<Loader>,
    contents: ModuleStore,
    results: mpsc::UnboundedSender<Loading>,
    entries: BTreeMap<String, Entry>,
    /// The names seen in the list in progress.
    listed: Option<BTreeSet<String>>,
    progress: Progress,
    started: Instant,
    silence: Silence,
    condition: ReadinessCheck,
    demand: watch::Sender<Option<Arc<Demand>>>,
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
        let mut lookups = self.serving.as_ref().map(|serving| serving.lookups.changed());
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
                () = change(&mut lookups) => {}
                _ = timer.tick() => {}
            }
            self.settle();
        }
    }

    fn observe(&mut self, change: Event) {
        self.silence.observe(&change, Instant::now());
        match change {
            Event::Init => self.listed = Some(BTreeSet::new()),
            Event::InitApply(object) => {
                if let Some(name) = self.put(object)
                    && let Some(listed) = &mut self.listed
                {
                    listed.insert(name);
                }
            }
            Event::InitDone(_) => {
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
        // The schema of the CRD lets none through that cannot be read. One that is there all the same is
        // missed like one without its module, else nobody would judge; what ran before stays.
        let (object, wrong) = unreadable::read(&name, &object);
        if let Some(problem) = &wrong {
            tracing::error!(
                policy = name,
                problem = problem.text(),
                "failed to read an AdmissionPolicy"
            );
        }
        match self.entries.get_mut(&name) {
            Some(entry) => entry.update(object, wrong),
            None => {
                self.entries.insert(name.clone(), Entry::new(object, wrong));
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
        if let Some(serving) = &self.serving {
            serving.want_lookups(&self.entries);
        }
        for entry in self.entries.values_mut() {
            entry.promote(|binding| {
                self.serving.as_ref().map_or(Ok(()), |one| one.answers(binding))
            });
        }
        self.put_in_force();
        self.get_ready();
        self.report();
    }

    fn put_in_force(&self) {
        let bindings = self.entries.values().filter_map(Entry::serving);
        let digests: HashSet<_> = bindings.map(|one| one.policy.digest()).collect();
        self.loader.forget_all_but(&digests);
        // What has not been read yet would look as if it were not there.
        if let Some(serving) = &self.serving
            && self.progress != Progress::Listing
        {
            serving.swap_if_changed(&self.entries, self.progress == Progress::Loading);
            serving.want_lookups(&self.entries);
        }
    }

    fn get_ready(&mut self) {
        let waits = self.started.elapsed() < START_TIMEOUT;
        let is_dealt_with =
            |entry: &Entry| entry.is_settled() && !(waits && entry.is_worth_waiting_for());
        if self.progress == Progress::Loading && self.entries.values().all(is_dealt_with) {
            tracing::info!(policies = self.entries.len(), "loaded the AdmissionPolicies");
            self.progress = Progress::Running;
            if let Some(serving) = &self.serving {
                serving.all_are_read();
            }
            self.condition.pass();
        } else if self.progress == Progress::Loading {
            let rest: Vec<&Entry> =
                self.entries.values().filter(|entry| !is_dealt_with(entry)).collect();
            if let Some(first) = rest.first() {
                self.condition.fail(format!(
                    "{} of {} AdmissionPolicies are not loaded: {}",
                    rest.len(),
                    self.entries.len(),
                    first.describe()
                ));
            }
        }
    }

    fn report(&mut self) {
        let outdated = self.silence.reason(Instant::now());
        self.metrics.policies_outdated().set(i64::from(outdated.is_some()));
        for (name, entry) in &self.entries {
            self.metrics.policy_loaded(name, entry.metric());
        }
        if let Some(serving) = &self.serving {
            serving.report(&self.entries, outdated);
        }
        if self.progress == Progress::Running {
            self.publish_demand();
        }
    }

    fn publish_demand(&self) {
        let demand = Demand {
            bindings: self.entries.values().flat_map(Entry::bindings).cloned().collect(),
            lost: self.entries.values().filter_map(Entry::lost).collect(),
            complete: self.entries.values().all(Entry::is_current),
        };
        self.demand.send_if_modified(|before| {
            let changed = !before.as_ref().is_some_and(|before| before.is_same(&demand));
            if changed {
                *before = Some(Arc::new(demand));
            }
            changed
        });
    }
}

/// Returns when there is another value; never, where there is nothing to change.
async fn change(receiver: &mut Option<watch::Receiver<u64>>) {
    let changed = match receiver {
        Some(receiver) => receiver.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending::<()>().await;
    }
}

fn target() -> WatchSpec {
    WatchSpec {
        path: "/apis/opensdn.io/v1alpha1/admissionpolicies".to_owned(),
        name: None,
        label_selector: String::new(),
        metadata_only: false,
        heartbeat: Duration::from_secs(10),
    }
}

fn name(object: &Value) -> Option<String> {
    object.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned)
}
