//! One watch cache: the objects of one kind in one [`IndexSchema`], and whether they can be relied on.
//!
//! A kind that the API server does not serve has no objects. Discovery that says so is an answer,
//! so the cache is then empty *and* synced; it is queried again whenever a definition changes and
//! every few seconds. Discovery that fails proves nothing: lookups are errors. Were an absent kind
//! an error, a policy that reads an optional API (network attachments, say) would refuse every
//! write on clusters without it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use kube::Client;
use opensdn_policy_host::Index;
use opensdn_policy_host::lookup::{FoundObject, LookupError, up_to_the_limit};
use opensdn_runtime::discovery::{Discovery, Resolution, Resource};
use opensdn_runtime::watch::{Event, WatchSpec, watch_parts};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::store::{IndexSchema, Store};

/// How long after that there is room again a kind is read again of which something was left out, and so how often at most.
const REREAD_AFTER: Duration = Duration::from_secs(60);

/// How long readiness waits for a cache to be filled for the first time.
const FIRST_FILL_TIMEOUT: Duration = Duration::from_secs(20);

/// A cache whose watch ends when it is dropped.
pub(super) struct Cache {
    pub(super) shared: Arc<CacheState>,
    task: AbortHandle,
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the watch writes and lookups read.
pub(super) struct CacheState {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) schema: IndexSchema,
    staleness: Duration,
    store: RwLock<Store>,
    synced: AtomicBool,
    ever: AtomicBool,
    epoch: Instant,
    /// Milliseconds from `epoch` to the last heartbeat.
    heard: AtomicU64,
    why: Mutex<String>,
    ticks: watch::Sender<u64>,
}

impl Cache {
    /// Starts to fill. `ticks` changes when lookups start or stop being answered.
    pub(super) fn start(client: Client, discovery: Discovery, shared: CacheState) -> Self {
        let shared = Arc::new(shared);
        let task = tokio::spawn(keep(client, discovery, Arc::clone(&shared))).abort_handle();
        Self { shared, task }
    }
}

impl CacheState {
    pub(super) fn new(
        (group, kind): (&str, &str),
        schema: IndexSchema,
        staleness: Duration,
        ticks: watch::Sender<u64>,
    ) -> Self {
        let store = RwLock::new(Store::new(&schema));
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            schema,
            staleness,
            store,
            synced: AtomicBool::new(false),
            ever: AtomicBool::new(false),
            epoch: Instant::now(),
            heard: AtomicU64::new(0),
            why: Mutex::new("it has not been filled yet".to_owned()),
            ticks,
        }
    }

    /// Whether lookups are answered; else why not.
    pub(super) fn usable(&self) -> Result<(), LookupError> {
        self.usable_at(Instant::now())
    }

    fn usable_at(&self, now: Instant) -> Result<(), LookupError> {
        let error = |why: &str| {
            let group = if self.group.is_empty() { "" } else { "." };
            let name = format!("{}{group}{}", self.kind, self.group);
            Err(LookupError(format!("the webhook's cache of {name} cannot be relied on: {why}")))
        };
        if !self.synced.load(Ordering::Acquire) {
            return error(&self.why());
        }
        let age = self.age_at(now);
        if age > self.staleness {
            let why = self.why();
            return error(&format!("no answer from the API server for {age:.0?} ({why})"));
        }
        Ok(())
    }

    /// What was wrong last.
    pub(super) fn why(&self) -> String {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long ago the API server answered last.
    pub(super) fn age(&self) -> Duration {
        self.age_at(Instant::now())
    }

    fn age_at(&self, now: Instant) -> Duration {
        let heard = Duration::from_millis(self.heard.load(Ordering::Acquire));
        now.saturating_duration_since(self.epoch).saturating_sub(heard)
    }

    /// Whether the process should not be sent reviews before the cache is filled for the first
    /// time. One that is not filled by then (of a kind that we may not read, for one) harms its
    /// policies only. Where reviews are sent already, a new cache does not turn them away.
    pub(super) fn is_awaited(&self, serves_already: bool) -> bool {
        let is_new = !serves_already && self.epoch.elapsed() < FIRST_FILL_TIMEOUT;
        is_new && !self.ever.load(Ordering::Acquire)
    }

    pub(super) fn get(
        &self,
        number: usize,
        namespace: &str,
        name: &str,
    ) -> Result<Option<FoundObject>, LookupError> {
        let entry = self.store.read().unwrap_or_else(PoisonError::into_inner).get(namespace, name);
        entry.map(|entry| self.schema.found(number, &entry)).transpose()
    }

    pub(super) fn find(
        &self,
        number: usize,
        key: &str,
        most: usize,
    ) -> Result<Vec<FoundObject>, LookupError> {
        let store = self.store.read().unwrap_or_else(PoisonError::into_inner);
        store.is_indexed()?;
        let entries = store.find(number, key, most);
        drop(store);
        let mut failure = None;
        let found = entries.iter().map_while(|entry| {
            self.schema.found(number, entry).map_err(|error| failure = Some(error)).ok()
        });
        let found = up_to_the_limit(found);
        failure.map_or(Ok(found), Err)
    }

    fn may_take_in_more(&self) -> bool {
        self.store.write().unwrap_or_else(PoisonError::into_inner).may_take_in_more()
    }

    pub(super) fn is_of(&self, index: &Index) -> bool {
        self.kind == index.kind && self.group == index.group
    }

    fn alive(&self) {
        let now = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(now, Ordering::Release);
    }

    fn explain(&self, why: impl Into<String>) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = why.into();
    }

    /// Puts all objects in place of those before. The old ones are freed outside the lock, for
    /// that takes time when they are many.
    fn replace(&self, store: Store) {
        tracing::debug!(
            group = self.group,
            kind = self.kind,
            objects = store.len(),
            "filled a lookup cache"
        );
        let mut place = self.store.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *place, store);
        drop(place);
        drop(old);
        self.alive();
        self.ever.store(true, Ordering::Release);
        if !self.synced.swap(true, Ordering::AcqRel) {
            self.ticks.send_modify(|tick| *tick += 1);
        }
    }

    fn unsync(&self, why: String) {
        self.explain(why);
        if self.synced.swap(false, Ordering::AcqRel) {
            self.ticks.send_modify(|tick| *tick += 1);
        }
    }
}

async fn keep(client: Client, discovery: Discovery, shared: Arc<CacheState>) {
    let mut changed = discovery.changed();
    loop {
        let table = Arc::clone(&changed.borrow_and_update());
        match table.find(&shared.group, &shared.kind) {
            Resolution::Served(resource) => {
                follow(&client, &discovery, &mut changed, &shared, resource).await;
                continue;
            }
            Resolution::Absent => {
                shared.explain("the cluster has no such kind");
                shared.replace(Store::new(&shared.schema));
            }
            // A synced cache grows stale by itself; one that never was says why.
            Resolution::Unknown(why) => shared.explain(why),
        }
        if changed.changed().await.is_err() {
            return;
        }
    }
}

/// Returns when the kind is no longer served in this way.
async fn follow(
    client: &Client,
    discovery: &Discovery,
    changed: &mut watch::Receiver<Arc<opensdn_runtime::discovery::Snapshot>>,
    shared: &CacheState,
    resource: Resource,
) {
    let target = WatchSpec {
        path: resource.path(),
        name: None,
        label_selector: String::new(),
        metadata_only: false,
        heartbeat: shared.staleness / 3,
    };
    let known = Resolution::Served(resource);
    let start = || watch_parts(client.clone(), target.clone(), shared.schema.parts());
    let (mut changes, mut filling) = (start(), Store::new(&shared.schema));
    let mut reread_at: Option<Instant> = None;
    loop {
        let reread = reread_at.unwrap_or_else(Instant::now);
        tokio::select! {
            change = changes.recv() => match change {
                Some(change) => {
                    apply(discovery, shared, &mut filling, change);
                    if shared.may_take_in_more() {
                        reread_at = reread_at.or_else(|| Some(Instant::now() + REREAD_AFTER));
                    }
                }
                None => return,
            },
            () = sleep_until(reread), if reread_at.is_some() => {
                (changes, filling, reread_at) = (start(), Store::new(&shared.schema), None);
            }
            alive = changed.changed() => {
                let table = Arc::clone(&changed.borrow_and_update());
                let found = table.find(&shared.group, &shared.kind);
                // That it is unknown just now does not end a watch that runs.
                if alive.is_err() || (found != known && !matches!(found, Resolution::Unknown(_))) {
                    return;
                }
            }
        }
    }
}

fn apply(discovery: &Discovery, shared: &CacheState, filling: &mut Store, change: Event) {
    let write = || shared.store.write().unwrap_or_else(PoisonError::into_inner);
    match change {
        Event::Init => *filling = Store::new(&shared.schema),
        Event::InitApply(object) => {
            let known = shared.store.read().unwrap_or_else(PoisonError::into_inner);
            filling.put_known(&shared.schema, &object, &known);
        }
        Event::InitDone(_) => {
            shared.replace(std::mem::replace(filling, Store::new(&shared.schema)));
        }
        Event::Apply(object) => {
            write().put(&shared.schema, &object);
            shared.alive();
        }
        Event::Delete(object) => {
            write().remove(&object);
            shared.alive();
        }
        Event::Heartbeat => shared.alive(),
        Event::Disconnected { absent: true, why } => {
            shared.unsync(why);
            discovery.invalidate();
        }
        Event::Disconnected { absent: false, why } => shared.explain(why),
    }
}

#[cfg(test)]
mod tests {
    use opensdn_policy_host::lookup::ALL;
    use opensdn_runtime::watch::Listed;
    use serde_json::json;

    use super::*;

    fn shared(staleness: Duration) -> CacheState {
        let index = Index {
            name: "by-ip".into(),
            group: "g".into(),
            kind: "Thing".into(),
            key: "/spec/ip".into(),
            reads: vec![],
        };
        let (ticks, _) = watch::channel(0);
        CacheState::new(("g", "Thing"), IndexSchema::new([&index]), staleness, ticks)
    }

    fn lost() -> Event {
        Event::Disconnected { absent: false, why: "connection refused".to_owned() }
    }

    #[tokio::test]
    async fn answers_only_when_filled_and_while_the_api_server_is_heard_of() {
        let shared = shared(Duration::from_secs(30));
        let (discovery, mut filling) = (Discovery::fixed(vec![]), Store::default());
        assert!(shared.usable().is_err());
        apply(&discovery, &shared, &mut filling, Event::Init);
        let object = json!({"metadata": {"name": "a"}, "spec": {"ip": "1"}});
        apply(&discovery, &shared, &mut filling, Event::InitApply(object));
        assert!(shared.usable().is_err(), "half a list is no answer");
        apply(&discovery, &shared, &mut filling, Event::InitDone(Listed::default()));
        assert_eq!(shared.find(0, "1", ALL).unwrap().len(), 1);
        apply(&discovery, &shared, &mut filling, lost());
        assert_eq!(shared.usable(), Ok(()), "a short interruption is forgiven");
        let later = Instant::now() + Duration::from_secs(31);
        let error = shared.usable_at(later).unwrap_err().0;
        assert!(error.contains("Thing.g") && error.contains("connection refused"), "{error}");
        shared.heard.store(31_000, Ordering::Release);
        assert_eq!(shared.usable_at(later), Ok(()));
    }

    #[tokio::test]
    async fn a_relist_replaces_everything_at_once() {
        let shared = shared(Duration::from_secs(30));
        let (discovery, mut filling) = (Discovery::fixed(vec![]), Store::default());
        let object = |name| json!({"metadata": {"name": name}, "spec": {"ip": "1"}});
        for change in [
            Event::Init,
            Event::InitApply(object("a")),
            Event::InitDone(Listed::default()),
            Event::Init,
        ] {
            apply(&discovery, &shared, &mut filling, change);
        }
        apply(&discovery, &shared, &mut filling, Event::InitApply(object("b")));
        assert_eq!(
            shared.find(0, "1", ALL).unwrap().first().map(|found| found.name.clone()),
            Some("a".into())
        );
        apply(&discovery, &shared, &mut filling, Event::InitDone(Listed::default()));
        let names: Vec<_> =
            shared.find(0, "1", ALL).unwrap().into_iter().map(|found| found.name).collect();
        assert_eq!(names, ["b"]);
    }
}
