//! What policies run on: the engine, the cache of compiled modules, and the compiler's process.

use std::path::PathBuf;

use opensdn_module_process::Compiler;
use opensdn_policy_host::{Cache, CacheError, Engine, EngineError};

use super::args::PolicyArgs;

/// Why policies have nothing to run on.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("start the engine of the policies")]
    Engine(#[source] EngineError),
    #[error("open the folder of compiled policies")]
    Cache(#[source] CacheError),
}

/// What policies run on.
pub struct Engines {
    pub(super) engine: Engine,
    pub(super) cache: Option<Cache>,
    /// Bytes that the cache may have.
    pub(super) cache_bytes: u64,
    /// Mebibytes of memory that the compiler may take.
    compiler_mebibytes: u64,
    pub(super) compiler: Option<Compiler>,
}

impl Engines {
    /// Starts the engine, for so many evaluations at once, and opens the cache: what can fail, before
    /// anything runs.
    ///
    /// # Errors
    /// The machine does not give the engine what it needs, or the cache folder is open to others.
    pub fn start(args: &PolicyArgs, evaluations: u32) -> Result<Self, Error> {
        let cache = args.cache_folder.as_ref().map(Cache::open).transpose();
        let cache = cache.map_err(Error::Cache)?;
        let engine = Engine::start(evaluations).map_err(Error::Engine)?;
        let engine = engine.with_slot_memory(args.limits().memory);
        let (cache_bytes, compiler_mebibytes) =
            (args.cache_mebibytes << 20, args.compiler_mebibytes);
        Ok(Self { engine, cache, cache_bytes, compiler_mebibytes, compiler: None })
    }

    /// Modules are compiled by this program in a process of its own, which is
    /// `lib/module-process`. Without a cache folder, where the code would go, nothing
    /// changes: only built-in modules are compiled, in this process.
    #[must_use]
    pub fn compiled_by(mut self, program: PathBuf) -> Self {
        let mebibytes = self.compiler_mebibytes;
        self.compiler = self.cache.as_ref().map(|cache| Compiler::new(program, cache, mebibytes));
        self
    }
}
