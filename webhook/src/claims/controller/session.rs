//! Reconciling claims by one set of policies and over one set of kinds: what is watched, and what the
//! stored objects claim by it. What is done about each claim is in `session/reconcile.rs`, the calls
//! for it in `session/calls.rs` and `session/release.rs`, how many of them run at once in
//! `session/work.rs`. Deliberately not here: what follows for a claim (`ledger.rs`, `decide.rs`).

mod calls;
mod reconcile;
mod refusal;
mod release;
mod work;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use opensdn_policy_host::stored::StoredObject;
use opensdn_runtime::call::CallError;
use opensdn_runtime::discovery::Resource;
use opensdn_runtime::watch::{Event, WatchSpec, watch};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::conflicts::ConflictTracker;
use super::{ClaimController, Plan};
use crate::claims::Inner;
use crate::claims::ledger::{KnownObject, Ledger, ObjectRef};
use calls::Calls;
use reconcile::{ClaimOutcome, ObjectOutcome};
use refusal::Refusals;
use work::{Queue, Running};

/// After a call failed, or a reason was not confirmed.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// How often objects that could not be evaluated are evaluated again.
const REEVALUATE_INTERVAL: Duration = Duration::from_secs(30);
/// How often a quiet watch has to be answered.
const HEARTBEAT: Duration = Duration::from_secs(60);
/// So many claims are worked at once, each by one call at a time.
const CLAIMS_AT_ONCE: usize = 12;
/// And so many objects, which are read to be evaluated again or have something reported on them.
const OBJECTS_AT_ONCE: usize = 4;

pub(super) struct Session<'k> {
    calls: Calls<'k>,
    ledger: Ledger,
    /// What a kind's watch has listed since it was started again.
    listing: HashMap<usize, HashSet<ObjectRef>>,
    synced: HashSet<usize>,
    /// Kinds of which the API server does not answer.
    disconnected: HashSet<usize>,
    due: BTreeMap<Instant, Vec<String>>,
    conflicts: ConflictTracker<'k>,
    /// Objects on which conflicts could not be reported, as while the API server, or a webhook that it
    /// asks about their status, does not answer.
    unreported: BTreeSet<ObjectRef>,
    /// Objects of which it is not known what they claim: a policy could not be evaluated.
    not_evaluated: BTreeSet<ObjectRef>,
    /// Objects that are to be read and evaluated again.
    to_evaluate: BTreeSet<ObjectRef>,
    /// Which claims have to be written, and whether the API server takes any.
    refusals: Refusals,
    probes: Running<'k, (), Result<(), CallError>>,
    queue: Queue,
    claims: Running<'k, String, ClaimOutcome>,
    /// How many were written since that was logged.
    taken: usize,
    /// Claims of which something has changed while they were worked.
    changed: HashSet<String>,
    objects: Running<'k, ObjectRef, ObjectOutcome>,
    reevaluate: Instant,
}

/// The journal ends with the session, however it ends.
struct Journal<'i>(&'i Inner);

impl Drop for Journal<'_> {
    fn drop(&mut self) {
        self.0.cache.end_journal();
    }
}

impl<'k> Session<'k> {
    pub(super) fn new(controller: &'k ClaimController, plan: &'k Plan) -> Self {
        Self {
            calls: Calls { controller, plan },
            ledger: Ledger::default(),
            listing: HashMap::new(),
            synced: HashSet::new(),
            disconnected: HashSet::new(),
            due: BTreeMap::new(),
            conflicts: ConflictTracker::new(
                &controller.claims.inner.conflicts,
                controller.metrics.clone(),
            ),
            unreported: BTreeSet::new(),
            not_evaluated: BTreeSet::new(),
            to_evaluate: BTreeSet::new(),
            refusals: Refusals::new(),
            probes: Running::new(1),
            queue: Queue::default(),
            claims: Running::new(CLAIMS_AT_ONCE),
            taken: 0,
            changed: HashSet::new(),
            objects: Running::new(OBJECTS_AT_ONCE),
            reevaluate: Instant::now() + REEVALUATE_INTERVAL,
        }
    }

    /// Works for as long as it is polled. What is under way never keeps it from its watches.
    pub(super) async fn run(mut self) {
        let cache = &self.calls.inner().cache;
        let _journal = Journal(self.calls.inner());
        cache.start_journal();
        let mut cache_synced = cache.synced();
        // While one sender is left, the channel stays open also when there is nothing to watch.
        let (_open, mut objects) = mpsc::channel(1);
        let _watches = self.watch_all(&_open);
        loop {
            if *cache_synced.borrow() && self.synced.len() == self.calls.plan.resources.len() {
                self.start_work();
                if self.queue.is_empty() && self.claims.is_idle() {
                    self.conflicts.are_all_known();
                    self.say_taken();
                }
                self.say_claimed();
            }
            self.say_refused();
            let due = self.due.keys().next().copied().unwrap_or(self.reevaluate);
            let in_time = due.min(self.reevaluate).min(self.refusals.next_probe());
            tokio::select! {
                change = objects.recv() => {
                    if let Some((kind, change)) = change {
                        self.apply(kind, change).await;
                    }
                }
                names = cache.changed() => self.ledger.touch(names),
                (name, outcome) = self.claims.next() => self.finish_claim(name, outcome),
                (object_ref, outcome) = self.objects.next() => {
                    self.finish_object(object_ref, outcome);
                }
                ((), answer) = self.probes.next() => self.refusals.answered(&answer),
                _ = cache_synced.changed() => {}
                () = sleep_until(in_time) => self.wake(),
            }
        }
    }

    fn watch_all(&self, sender: &mpsc::Sender<(usize, Event)>) -> Vec<AbortOnDropHandle<()>> {
        let follow = |(kind, resource): (usize, &Resource)| {
            let target = WatchSpec {
                path: resource.path(),
                name: None,
                label_selector: String::new(),
                metadata_only: false,
                heartbeat: HEARTBEAT,
            };
            let mut changes = watch(self.calls.controller.client.clone(), target);
            let sender = sender.clone();
            AbortOnDropHandle::new(tokio::spawn(async move {
                while let Some(change) = changes.recv().await {
                    if sender.send((kind, change)).await.is_err() {
                        return;
                    }
                }
            }))
        };
        self.calls.plan.resources.iter().enumerate().map(follow).collect()
    }

    fn wake(&mut self) {
        let now = Instant::now();
        let later = self.due.split_off(&now);
        let names = std::mem::replace(&mut self.due, later);
        self.ledger.touch(names.into_values().flatten());
        for object_ref in std::mem::take(&mut self.unreported) {
            self.conflicts.recheck(object_ref);
        }
        if self.refusals.next_probe() <= now {
            self.refusals.asked(now);
            self.start_probe();
        }
        if self.reevaluate <= now {
            self.reevaluate = now + REEVALUATE_INTERVAL;
            self.not_evaluated.retain(|object_ref| self.ledger.known(object_ref).is_some());
            self.to_evaluate.extend(self.not_evaluated.iter().cloned());
            self.to_evaluate.extend(self.ledger.outdated().cloned());
        }
    }

    async fn apply(&mut self, kind: usize, change: Event) {
        match change {
            // Everything that is given up is confirmed by live reads, but not which objects there are
            // that could take it.
            Event::Disconnected { .. } => self.disconnected.insert(kind),
            // A list that begins has not been answered yet.
            Event::Init => false,
            _ => self.disconnected.remove(&kind),
        };
        match change {
            Event::Init => {
                self.listing.insert(kind, HashSet::new());
            }
            Event::InitApply(object) => {
                if let Some(object_ref) = self.put_changed(&object).await {
                    self.listing.entry(kind).or_default().insert(object_ref);
                }
            }
            Event::InitDone(_) => {
                let object_refs = self.listing.remove(&kind).unwrap_or_default();
                if let Some(resource) = self.calls.plan.resources.get(kind) {
                    self.ledger.listed(&resource.group, &resource.kind, &object_refs);
                    self.synced.insert(kind);
                }
            }
            Event::Apply(object) => {
                self.put_changed(&object).await;
            }
            Event::Delete(object) => {
                if let Some(stored) = StoredObject::read(&object) {
                    let object_ref = ObjectRef::of_stored(&stored);
                    self.ledger.mark_outdated(&object_ref);
                    self.ledger.remove(&object_ref);
                }
            }
            Event::Heartbeat | Event::Disconnected { .. } => {}
        }
    }

    /// Takes in what a watch has shown.
    async fn put_changed(&mut self, object: &Value) -> Option<ObjectRef> {
        let (object_ref, known) = self.calls.evaluate(object).await?;
        self.put(object_ref.clone(), known);
        self.ledger.mark_outdated(&object_ref);
        Some(object_ref)
    }

    /// Takes in what a live read has shown, unless the watches have shown something newer since, be it
    /// that the object is gone.
    fn put_read(&mut self, object_ref: &ObjectRef, known: KnownObject) -> bool {
        let is_current = self.ledger.known(object_ref).is_some_and(|old| known.is_as_new_as(old));
        if is_current {
            self.put(object_ref.clone(), known);
        }
        is_current
    }

    fn put(&mut self, object_ref: ObjectRef, known: KnownObject) {
        if known.condition.is_some() {
            self.conflicts.recheck(object_ref.clone());
        }
        match known.claims {
            Some(_) => self.not_evaluated.remove(&object_ref),
            None => self.not_evaluated.insert(object_ref.clone()),
        };
        self.ledger.put(object_ref, known);
    }

    fn requeue(&mut self, name: &str, after: Duration) {
        self.due.entry(Instant::now() + after).or_default().push(name.to_owned());
    }
}

impl ObjectRef {
    pub(crate) fn of_stored(stored: &StoredObject) -> Self {
        Self {
            group: stored.group.clone(),
            kind: stored.kind.clone(),
            namespace: stored.namespace.clone(),
            name: stored.name.clone(),
        }
    }
}
