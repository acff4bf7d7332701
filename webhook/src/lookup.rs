//! What policies may look up: watch caches of the kinds that policies in force declared, indexed
//! by the declared keys, keeping the declared parts.
//!
//! One watch per kind serves all indexes. When the indexes of a kind change, a cache of the new
//! schema is filled beside the old one, which answers until the new one can. A cache that has not
//! been filled, or had no answer from the API server for a while, is an error, never an empty answer.

mod budget;
mod cache;
mod health;
#[doc(hidden)]
pub mod store;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use kube::Client;
use opensdn_policy_host::Index;
use opensdn_policy_host::lookup::{Answer, FoundObject, Lookup, LookupError};
use opensdn_runtime::discovery::Discovery;
use opensdn_runtime::readiness::Readiness;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::metrics::Metrics;
use cache::{Cache, CacheState};
use health::Health;
use store::IndexSchema;

/// How lookups are answered.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Lookups")]
pub struct LookupArgs {
    /// Seconds without an answer from the API server after which a lookup cache is not used any
    /// more.
    #[arg(long, env = "OPENSDN_WEBHOOK_LOOKUP_STALENESS_SECONDS", default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(3..=3600))]
    pub lookup_staleness_seconds: u64,
}

impl LookupArgs {
    /// How long a cache that had no answer from the API server is used.
    pub(crate) fn staleness(&self) -> Duration {
        Duration::from_secs(self.lookup_staleness_seconds)
    }
}

/// The watch caches; cheap to clone.
#[derive(Clone)]
pub struct LookupCaches {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    discovery: Discovery,
    staleness: Duration,
    /// Newest first: where there are two of a kind, the newer one is being filled.
    caches: ArcSwap<Vec<Arc<Cache>>>,
    /// Held while `caches` is changed.
    change: Mutex<()>,
    ticks: watch::Sender<u64>,
}

impl LookupCaches {
    /// No caches yet. A cache that had no answer from the API server for `staleness` is not used.
    pub(crate) fn start(
        client: Client,
        discovery: Discovery,
        staleness: Duration,
        metrics: Metrics,
        readiness: Readiness,
    ) -> Self {
        let health = Health::new(metrics, readiness, discovery.clone(), staleness);
        let inner = Arc::new(Inner {
            client,
            discovery,
            staleness,
            caches: ArcSwap::default(),
            change: Mutex::new(()),
            ticks: watch::Sender::new(0),
        });
        tokio::spawn(oversee(Arc::clone(&inner), health));
        Self { inner }
    }

    /// Sets which indexes are needed, all of them. Watches for new ones start, and those that
    /// are no longer needed end.
    pub(crate) fn want<'i>(&self, indexes: impl IntoIterator<Item = &'i Index>) {
        let mut kinds: BTreeMap<(&str, &str), Vec<&Index>> = BTreeMap::new();
        for index in indexes {
            kinds.entry((&index.group, &index.kind)).or_default().push(index);
        }
        let _change = self.inner.change.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.inner.caches.load_full();
        let mut next = Vec::new();
        for (kind, indexes) in kinds {
            let schema = IndexSchema::new(indexes);
            let of_kind = || {
                current.iter().filter(|cache| {
                    (cache.shared.group.as_str(), cache.shared.kind.as_str()) == kind
                })
            };
            let same = of_kind().find(|cache| cache.shared.schema.is_like(&schema)).cloned();
            let newest = same.unwrap_or_else(|| Arc::new(self.inner.begin(kind, schema)));
            // One that was being filled for a schema that was overtaken is not needed.
            let other = of_kind()
                .find(|cache| !Arc::ptr_eq(cache, &newest) && cache.shared.usable().is_ok());
            next.push(newest);
            next.extend(other.cloned());
        }
        self.inner.caches.store(Arc::new(next));
    }

    /// Whether lookups by the index are answered; else why not.
    pub(crate) fn answers(&self, index: &Index) -> Result<(), LookupError> {
        self.inner.usable(index).map(|_| ())
    }

    /// Ticks when a cache starts or stops answering.
    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.inner.ticks.subscribe()
    }

    /// The labels of a namespace, where they are watched and known.
    #[must_use]
    pub fn namespace_labels(&self, namespace: &str) -> Option<Arc<BTreeMap<String, String>>> {
        let caches = self.inner.caches.load();
        let index = namespace_index();
        let cache = caches.iter().find(|cache| {
            cache.shared.is_of(&index)
                && cache.shared.schema.number(&index).is_some()
                && cache.shared.usable().is_ok()
        })?;
        let number = cache.shared.schema.number(&index)?;
        let found = cache.shared.get(number, "", namespace).ok()??;
        let labels = found.parts.into_iter().next()??;
        serde_json::from_str(&labels).ok().map(Arc::new)
    }
}

/// The index by which labels of namespaces are known; wanted where a policy selects by them.
pub(crate) fn namespace_index() -> Index {
    Index {
        name: "namespace-labels".to_owned(),
        group: String::new(),
        kind: "Namespace".to_owned(),
        key: "/metadata/name".to_owned(),
        reads: vec!["/metadata/labels".to_owned()],
    }
}

impl Inner {
    fn begin(&self, kind: (&str, &str), schema: IndexSchema) -> Cache {
        let shared = CacheState::new(kind, schema, self.staleness, self.ticks.clone());
        Cache::start(self.client.clone(), self.discovery.clone(), shared)
    }

    /// A cache that answers the index, and the index' number there.
    fn usable(&self, index: &Index) -> Result<(Arc<Cache>, usize), LookupError> {
        let caches = self.caches.load();
        let mut failure = None;
        for cache in caches.iter().filter(|cache| cache.shared.is_of(index)) {
            if let Some(number) = cache.shared.schema.number(index) {
                match cache.shared.usable() {
                    Ok(()) => return Ok((Arc::clone(cache), number)),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
        }
        Err(failure.unwrap_or_else(|| {
            LookupError(format!("the webhook keeps no cache of {} for this lookup", index.kind))
        }))
    }
}

impl Lookup for LookupCaches {
    fn get<'a>(
        &'a self,
        index: &'a Index,
        namespace: &'a str,
        name: &'a str,
    ) -> Answer<'a, Option<FoundObject>> {
        let answer = self.inner.usable(index);
        Box::pin(std::future::ready(
            answer.and_then(|(cache, number)| cache.shared.get(number, namespace, name)),
        ))
    }

    fn find<'a>(
        &'a self,
        index: &'a Index,
        key: &'a str,
        most: usize,
    ) -> Answer<'a, Vec<FoundObject>> {
        let answer = self.inner.usable(index);
        Box::pin(std::future::ready(
            answer.and_then(|(cache, number)| cache.shared.find(number, key, most)),
        ))
    }
}

/// Retires caches whose successor is filled, and reports what can be relied on.
async fn oversee(inner: Arc<Inner>, mut health: Health) {
    let inner = {
        // The caches end with the last `LookupCaches`, and so does this task.
        let weak = Arc::downgrade(&inner);
        drop(inner);
        weak
    };
    let mut timer = interval(Duration::from_millis(500));
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let Some(mut ticks) = inner.upgrade().map(|inner| inner.ticks.subscribe()) else { return };
    loop {
        tokio::select! {
            _ = timer.tick() => {}
            changed = ticks.changed() => if changed.is_err() { return },
        }
        let Some(inner) = inner.upgrade() else { return };
        inner.retire();
        health.report(&inner.caches.load());
    }
}

impl Inner {
    fn retire(&self) {
        let _change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        let caches = self.caches.load_full();
        let mut kept: Vec<Arc<Cache>> = Vec::with_capacity(caches.len());
        for cache in caches.iter() {
            let successor = kept.iter().find(|other| {
                other.shared.kind == cache.shared.kind && other.shared.group == cache.shared.group
            });
            if successor.is_none_or(|successor| successor.shared.usable().is_err()) {
                kept.push(Arc::clone(cache));
            }
        }
        if kept.len() != caches.len() {
            self.caches.store(Arc::new(kept));
        }
    }
}
