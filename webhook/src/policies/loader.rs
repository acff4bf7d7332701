//! Compiles modules off the threads that answer reviews, each of them once. Where the bytes come
//! from is in `contents.rs`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opensdn_admission_policy::Problem;
use opensdn_policy_host::{Cache, Digest, Engine, LoadError, Policy};
use tokio::sync::Semaphore;

/// More modules than this are only kept compiled while they are in force.
const KEPT: usize = 64;

/// Compiles modules.
pub(crate) struct Loader {
    engine: Engine,
    cache: Option<Cache>,
    compiled: Mutex<HashMap<Digest, Policy>>,
    permits: Semaphore,
}

impl Loader {
    pub(crate) fn new(engine: Engine, cache: Option<Cache>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { engine, cache, compiled: Mutex::default(), permits: Semaphore::new(cores) }
    }

    /// The policy of these bytes.
    pub(crate) async fn load(
        &self,
        bytes: Arc<[u8]>,
        pinned: Option<Digest>,
    ) -> Result<Policy, Problem> {
        let digest = Digest::of(&bytes);
        if let Some(expected) = pinned.filter(|pinned| *pinned != digest) {
            return Err(Problem::from(&LoadError::Digest { expected, found: digest }));
        }
        // The semaphore is never closed; a permit more or less is no reason to fail.
        let _permit = self.permits.acquire().await;
        if let Some(policy) = self.lock().get(&digest) {
            return Ok(policy.clone());
        }
        let (engine, cache) = (self.engine.clone(), self.cache.clone());
        let runtime = tokio::runtime::Handle::current();
        let compile =
            move || runtime.block_on(Policy::load(&engine, &bytes, Some(digest), cache.as_ref()));
        match tokio::task::spawn_blocking(compile).await {
            Ok(Ok(policy)) => {
                self.lock().insert(digest, policy.clone());
                Ok(policy)
            }
            Ok(Err(error)) => Err(Problem::from(&error)),
            Err(_) => Err(Problem::unusable("the compiler crashed on it".to_owned())),
        }
    }

    /// Forgets what is not in force, when it has become much.
    pub(crate) fn forget_all_but(&self, in_force: &HashSet<Digest>) {
        let mut compiled = self.lock();
        if compiled.len() > KEPT {
            compiled.retain(|digest, _| in_force.contains(digest));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Policy>> {
        // A map of finished policies cannot be left half changed.
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
