//! Loads modules off the threads that answer reviews, each of them once. Where the bytes come from
//! is in `module_store.rs`, the process that compiles them in `lib/module-process`, what is remembered of
//! them in `loader/table.rs`, who may compile in `loader/turns.rs`.

mod table;
mod turns;

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opensdn_admission_policy::{Fault, Problem, is_built_in};
use opensdn_module_process::{Compiled, Compiler, out_of_memory};
use opensdn_policy_host::{Cache, Digest, Engine, LoadError, Policy};

use table::Table;
use turns::{Origin, Turns};

pub(crate) use turns::Waiting;

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

impl LoaderError {
    fn refused(why: String) -> Self {
        Self::Refused(Problem::unusable(why))
    }

    fn interrupted(why: String) -> Self {
        let hint = "it is tried again by itself; if that does not help, the log of the webhook says what ends its compiler";
        Self::Interrupted(Problem::new(Fault::NotCompiled, "/spec/module", why, hint))
    }

    fn out_of_memory(mebibytes: u64) -> Self {
        let why = out_of_memory(mebibytes);
        let hint = "raise --compiler-mebibytes of the webhook, and the memory limit of its pods by as \
                    much, or make the module smaller";
        Self::Refused(Problem::new(Fault::ModuleUnusable, "/spec/module", why, hint))
    }

    /// In the webhook's own process nothing would limit what a module takes.
    fn no_compiler(has_cache: bool) -> Self {
        let why = "modules from outside are compiled by a process of their own, with limits, and this \
                   webhook has none";
        let hint = if has_cache {
            "its program could not be found when it started, which its log says: put it back and restart"
        } else {
            "start the webhook with --cache-folder (OPENSDN_WEBHOOK_CACHE_FOLDER), a folder that no \
             other user may write to: the process hands the compiled module over there"
        };
        Self::Refused(Problem::new(Fault::ModuleUnusable, "/spec/module", why, hint))
    }

    fn full(folder: &Path, why: String) -> Self {
        let hint = format!(
            "free space in {} (--cache-folder) or give its volume more; the module is tried again then",
            folder.display()
        );
        Self::Interrupted(Problem::new(Fault::CacheFull, "/spec/module", why, hint))
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
    /// Bytes that the cache may have.
    cache_bytes: u64,
    compiler: Option<Compiler>,
    known: Mutex<Table>,
    turns: Turns,
}

impl Loader {
    /// Without a compiler of its own, and without a cache to hand over what that has made, it
    /// compiles in this process, but only what is part of this program.
    pub(crate) fn new(
        engine: Engine,
        cache: Option<Cache>,
        cache_bytes: u64,
        compiler: Option<Compiler>,
    ) -> Self {
        let (known, turns) = (Mutex::default(), Turns::new());
        Self { engine, cache, cache_bytes, compiler, known, turns }
    }

    /// The policy of these bytes.
    pub(crate) async fn load(
        &self,
        bytes: Arc<[u8]>,
        pinned: Option<Digest>,
    ) -> Result<Policy, LoaderError> {
        self.load_showing(bytes, pinned, &Waiting::default()).await
    }

    /// The same, and `waiting` shows whether it waits for other modules meanwhile.
    pub(crate) async fn load_showing(
        &self,
        bytes: Arc<[u8]>,
        pinned: Option<Digest>,
        waiting: &Waiting,
    ) -> Result<Policy, LoaderError> {
        let digest = Digest::of(&bytes);
        if let Some(expected) = pinned.filter(|pinned| *pinned != digest) {
            return Err(LoaderError::from(&LoadError::Digest { expected, found: digest }));
        }
        if let Some(known) = self.find(digest).await {
            return known;
        }
        let origin = if is_built_in(&bytes) { Origin::BuiltIn } else { Origin::Outside };
        self.compile_in_turn(bytes, digest, origin, waiting).await
    }

    /// Compiles what is not known, as often as it has to give way.
    async fn compile_in_turn(
        &self,
        bytes: Arc<[u8]>,
        digest: Digest,
        origin: Origin,
        waiting: &Waiting,
    ) -> Result<Policy, LoaderError> {
        let _announced = self.turns.announce(origin);
        loop {
            let mut turn = waiting.during(self.turns.take(origin)).await;
            // Another caller may have waited for the same.
            if let Some(known) = self.find(digest).await {
                return known;
            }
            let compiled = self.compile(Arc::clone(&bytes), digest, origin, turn.is_over()).await;
            let Some(outcome) = compiled else { continue };
            self.remember(digest, &outcome);
            self.trim_cache(digest).await;
            return outcome;
        }
    }

    /// What is known of the module without its bytes: it is loaded, it cannot be, or the cache has
    /// its code.
    pub(crate) async fn find(&self, digest: Digest) -> Option<Result<Policy, LoaderError>> {
        if let Some(known) = self.lock().get(digest) {
            return Some(known.map_err(LoaderError::Refused));
        }
        let outcome = self.load_compiled(digest).await.transpose()?;
        self.remember(digest, &outcome);
        Some(outcome)
    }

    async fn load_compiled(&self, digest: Digest) -> Result<Option<Policy>, LoaderError> {
        let Some(cache) = self.cache.clone() else { return Ok(None) };
        let engine = self.engine.clone();
        off_the_path(async move { Policy::load_compiled(&engine, digest, &cache).await }).await
    }

    /// None where it was `over` before it ended.
    async fn compile(
        &self,
        bytes: Arc<[u8]>,
        digest: Digest,
        origin: Origin,
        over: impl Future<Output = ()>,
    ) -> Option<Result<Policy, LoaderError>> {
        let Some(compiler) = &self.compiler else {
            return Some(match origin {
                Origin::BuiltIn => self.compile_here(bytes, digest, self.cache.clone()).await,
                Origin::Outside => Err(LoaderError::no_compiler(self.cache.is_some())),
            });
        };
        // It would be compiled for nothing, again and again.
        if origin == Origin::Outside
            && let Some(full) = self.full(bytes.len())
        {
            return Some(Err(full));
        }
        let compiled = compiler.compile(&bytes, over).await?;
        if let (Compiled::Full { folder, why }, Origin::BuiltIn) = (&compiled, origin) {
            // What is part of this program must not depend on the disk.
            let folder = folder.display();
            tracing::warn!(%digest, why, %folder, "failed to cache a built-in module: disk full; compiled it again here");
            return Some(self.compile_here(bytes, digest, None).await);
        }
        Some(self.read_compiled(digest, compiled).await)
    }

    /// What is wrong where the cache has no room even for the module itself.
    fn full(&self, bytes: usize) -> Option<LoaderError> {
        let folder = self.cache.as_ref()?.folder();
        let space = rustix::fs::statvfs(folder).ok()?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let is_full = usize::try_from(free).is_ok_and(|free| free < bytes);
        let why = || {
            format!("{} has {free} bytes free, and the module alone has {bytes}", folder.display())
        };
        is_full.then(|| LoaderError::full(folder, why()))
    }

    async fn read_compiled(
        &self,
        digest: Digest,
        compiled: Compiled,
    ) -> Result<Policy, LoaderError> {
        match compiled {
            Compiled::Done => self.load_compiled(digest).await?.ok_or_else(|| {
                LoaderError::interrupted("the compiled module is not in the cache".to_owned())
            }),
            Compiled::Refused { why, .. } => Err(LoaderError::refused(why)),
            Compiled::OutOfMemory { mebibytes } => Err(LoaderError::out_of_memory(mebibytes)),
            Compiled::Full { folder, why } => {
                let folder_name = folder.display();
                tracing::warn!(%digest, why, folder = %folder_name, "failed to cache a module: disk full");
                Err(LoaderError::full(&folder, why))
            }
            Compiled::Interrupted(why) => {
                tracing::warn!(%digest, why, "failed to compile a module; it is tried again");
                Err(LoaderError::interrupted(why))
            }
        }
    }

    async fn compile_here(
        &self,
        bytes: Arc<[u8]>,
        digest: Digest,
        cache: Option<Cache>,
    ) -> Result<Policy, LoaderError> {
        let engine = self.engine.clone();
        off_the_path(
            async move { Policy::load(&engine, &bytes, Some(digest), cache.as_ref()).await },
        )
        .await
    }

    fn remember(&self, digest: Digest, outcome: &Result<Policy, LoaderError>) {
        let known = match outcome {
            Ok(policy) => Ok(policy.clone()),
            Err(error) if error.is_final() => Err(error.clone().into_problem()),
            Err(_) => return,
        };
        self.lock().put(digest, known);
    }

    /// Removes the oldest of the cache where there is too much, but nothing that is in force.
    async fn trim_cache(&self, newest: Digest) {
        let Some(cache) = self.cache.clone() else { return };
        let mut kept = self.lock().in_force().clone();
        kept.insert(newest);
        let (engine, most) = (self.engine.clone(), self.cache_bytes);
        let trimmed = tokio::task::spawn_blocking(move || cache.trim(&engine, most, &kept)).await;
        // It only takes more room then.
        if let Ok(Err(error)) = trimmed {
            tracing::warn!(%error, "failed to remove old compiled modules");
        }
    }

    /// Says what is in force, all of it. Other modules are forgotten when there is too much of them.
    pub(crate) fn forget_all_but(&self, in_force: &HashSet<Digest>) {
        self.lock().keep(in_force.clone());
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // A table of whole entries cannot be left half changed.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs what takes long where no review waits for it.
async fn off_the_path<T: Send + 'static>(
    work: impl Future<Output = Result<T, LoadError>> + Send + 'static,
) -> Result<T, LoaderError> {
    let runtime = tokio::runtime::Handle::current();
    match tokio::task::spawn_blocking(move || runtime.block_on(work)).await {
        Ok(outcome) => outcome.map_err(|error| LoaderError::from(&error)),
        Err(_) => Err(LoaderError::refused("the compiler crashed on it".to_owned())),
    }
}

#[cfg(test)]
mod tests;
