//! Loads modules off the threads that answer reviews, each of them once. Where the bytes come from
//! is in `contents.rs`, the process that compiles them in `compiler.rs`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opensdn_admission_policy::Problem;
use opensdn_policy_host::{Cache, Digest, Engine, LoadError, Policy};
use tokio::sync::Semaphore;

use super::compiler::{Compiled, Compiler};

/// More modules than this are only kept compiled while they are in force.
const KEPT: usize = 64;

/// Why a module is not loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoaderError {
    /// The module is to blame: the same bytes would fail again.
    #[error("{}", .0.message)]
    Refused(Problem),
    /// The machine is: the compiler was killed, or could not be started.
    #[error("{}", .0.message)]
    Interrupted(Problem),
}

impl LoaderError {
    /// Whether it is no use to try the same content again.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// What to say of it.
    pub(crate) fn into_problem(self) -> Problem {
        match self {
            Self::Refused(problem) | Self::Interrupted(problem) => problem,
        }
    }
}

impl From<&LoadError> for LoaderError {
    fn from(error: &LoadError) -> Self {
        Self::Refused(Problem::from(error))
    }
}

/// Loads modules.
pub(crate) struct Loader {
    engine: Engine,
    cache: Option<Cache>,
    compiler: Option<Compiler>,
    compiled: Mutex<HashMap<Digest, Policy>>,
    permits: Semaphore,
}

impl Loader {
    /// Without a compiler of its own, and without a cache to hand over what that has made, it
    /// compiles in this process.
    pub(crate) fn new(engine: Engine, cache: Option<Cache>, compiler: Option<Compiler>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let permits = Semaphore::new(cores);
        Self { engine, cache, compiler, compiled: Mutex::default(), permits }
    }

    /// The policy of these bytes.
    pub(crate) async fn load(
        &self,
        bytes: Arc<[u8]>,
        pinned: Option<Digest>,
    ) -> Result<Policy, LoaderError> {
        let digest = Digest::of(&bytes);
        if let Some(expected) = pinned.filter(|pinned| *pinned != digest) {
            return Err(LoaderError::from(&LoadError::Digest { expected, found: digest }));
        }
        // The semaphore is never closed; a permit more or less is no reason to fail.
        let _permit = self.permits.acquire().await;
        if let Some(policy) = self.lock().get(&digest) {
            return Ok(policy.clone());
        }
        let policy = match self.compile_apart(&bytes, digest).await? {
            Some(policy) => policy,
            None => self.compile_here(bytes, digest).await?,
        };
        self.lock().insert(digest, policy.clone());
        Ok(policy)
    }

    /// What the cache has, once the compiler's own process has put it there. `None` where there is
    /// no such process, or it says that the module is none: to try it here shows why.
    async fn compile_apart(
        &self,
        bytes: &[u8],
        digest: Digest,
    ) -> Result<Option<Policy>, LoaderError> {
        let Some((compiler, cache)) = self.compiler.as_ref().zip(self.cache.clone()) else {
            return Ok(None);
        };
        let engine = self.engine.clone();
        let known = move || {
            let (engine, cache) = (engine.clone(), cache.clone());
            off_the_path(async move { Policy::load_compiled(&engine, digest, &cache).await })
        };
        if let Some(policy) = known().await? {
            return Ok(Some(policy));
        }
        match compiler.compile(bytes).await {
            Compiled::Done => known().await,
            Compiled::Refused | Compiled::Unavailable => Ok(None),
            Compiled::Crashed(how) => {
                let said = format!("the compiler {how} on this module");
                Err(LoaderError::Refused(Problem::unusable(said)))
            }
        }
    }

    async fn compile_here(&self, bytes: Arc<[u8]>, digest: Digest) -> Result<Policy, LoaderError> {
        let (engine, cache) = (self.engine.clone(), self.cache.clone());
        off_the_path(
            async move { Policy::load(&engine, &bytes, Some(digest), cache.as_ref()).await },
        )
        .await
    }

    /// Forgets what is not in force, when there is too much of it.
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

/// Runs what takes long where no review waits for it.
async fn off_the_path<T: Send + 'static>(
    work: impl Future<Output = Result<T, LoadError>> + Send + 'static,
) -> Result<T, LoaderError> {
    let runtime = tokio::runtime::Handle::current();
    match tokio::task::spawn_blocking(move || runtime.block_on(work)).await {
        Ok(outcome) => outcome.map_err(|error| LoaderError::from(&error)),
        Err(_) => {
            let said = "the compiler crashed on it".to_owned();
            Err(LoaderError::Refused(Problem::unusable(said)))
        }
    }
}

#[cfg(test)]
mod tests;
