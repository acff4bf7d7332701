//! What is reported of the lookup caches: metrics for each, and what keeps this replica out of the
//! Service.
//!
//! A cache that cannot be refreshed makes the policies that need it inconclusive, and their status
//! says so; all others judge on. All replicas have the same caches, so to leave for the sake of one
//! would leave no replica to judge. Only a replica that has heard nothing at all from the API server
//! leaves: another one may hear of it. Where requests are sent already, a new cache turns none away.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use opensdn_runtime::discovery::Discovery;
use opensdn_runtime::readiness::{Readiness, ReadinessCheck};
use tokio::time::Instant;

use super::cache::Cache;
use crate::metrics::Metrics;

/// What has been reported.
pub(super) struct Health {
    metrics: Metrics,
    readiness: Readiness,
    discovery: Discovery,
    staleness: Duration,
    api_server: ReadinessCheck,
    /// By kind: the check that its cache is filled for the first time.
    fills: HashMap<String, ReadinessCheck>,
}

impl Health {
    pub(super) fn new(
        metrics: Metrics,
        readiness: Readiness,
        discovery: Discovery,
        staleness: Duration,
    ) -> Self {
        let api_server = readiness.initially_ready("API server");
        Self { metrics, readiness, discovery, staleness, api_server, fills: HashMap::new() }
    }

    /// Reports on these caches, which are all there are.
    pub(super) fn report(&mut self, caches: &[Arc<Cache>]) {
        let mut by_kind: BTreeMap<String, &Arc<Cache>> = BTreeMap::new();
        for cache in caches {
            let name = format!("{}/{}", cache.shared.group, cache.shared.kind);
            // Of two caches the one counts that answers.
            if by_kind.get(&name).is_none_or(|other| other.shared.usable().is_err()) {
                by_kind.insert(name, cache);
            }
        }
        for (name, cache) in &by_kind {
            self.report_one(name, cache);
        }
        let gone: Vec<String> =
            self.fills.keys().filter(|name| !by_kind.contains_key(*name)).cloned().collect();
        for name in gone {
            if let Some(check) = self.fills.remove(&name) {
                check.remove();
            }
            self.metrics.forget_lookup_cache(&name);
        }
        let ages = caches.iter().map(|cache| cache.shared.age());
        let discovered = self.discovery.snapshot().read_at.map(|at| Instant::now() - at);
        match silent_for(ages, discovered, self.staleness) {
            Some(age) => {
                let why = caches.first().map(|cache| cache.shared.why()).unwrap_or_default();
                self.api_server.fail(silence(age, &why));
            }
            None => self.api_server.pass(),
        }
    }

    fn report_one(&mut self, name: &str, cache: &Cache) {
        let usable = cache.shared.usable();
        self.metrics.lookup_cache_synced(name).set(i64::from(usable.is_ok()));
        self.metrics.lookup_cache_staleness(name).set(cache.shared.age().as_secs_f64());
        let serves = self.readiness.has_reported_ready();
        let check = self.fills.entry(name.to_owned()).or_insert_with(|| {
            let title = format!("lookup cache of {name}");
            match serves {
                true => self.readiness.initially_ready(title),
                false => self.readiness.add_check(title, "it has not been filled yet"),
            }
        });
        match usable {
            Err(error) if cache.shared.is_awaited(serves) => check.fail(error.0),
            Ok(()) | Err(_) => check.pass(),
        }
    }
}

/// That the API server has given no answer that could be used, and what a cache knows of it: it may be
/// away, or it may answer all the time and refuse.
fn silence(age: Duration, why: &str) -> String {
    format!("no usable answer from the API server for {age:.0?}: {why}")
}

/// For how long the API server has been silent, if that is too long. The `ages` are of what the
/// caches heard last, `discovered` of when the served kinds were read last. Without a cache nothing
/// depends on it.
fn silent_for(
    ages: impl Iterator<Item = Duration>,
    discovered: Option<Duration>,
    staleness: Duration,
) -> Option<Duration> {
    let youngest = ages.min()?;
    let last = discovered.map_or(youngest, |discovered| discovered.min(youngest));
    (last > staleness).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_token_is_not_called_silence() {
        let said = silence(Duration::from_secs(31), "the API server refuses our token (401)");
        assert_eq!(
            said,
            "no usable answer from the API server for 31s: the API server refuses our token (401)"
        );
    }

    #[test]
    fn the_replica_leaves_only_when_nothing_at_all_was_heard() {
        let seconds = Duration::from_secs;
        let silent = |ages: &[u64], discovered: Option<u64>| {
            let ages = ages.iter().map(|age| seconds(*age));
            silent_for(ages, discovered.map(seconds), seconds(30))
        };
        assert_eq!(silent(&[100, 5], Some(100)), None, "one kind is away");
        assert_eq!(silent(&[100], Some(5)), None, "the only kind is away");
        assert_eq!(silent(&[100, 50], Some(60)), Some(seconds(50)));
        assert_eq!(silent(&[100, 50], None), Some(seconds(50)));
        assert_eq!(silent(&[], Some(100)), None, "nothing is looked up");
    }
}
