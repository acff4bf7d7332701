//! What runs futures and policies: one runtime, one engine, the cache of compiled policies. Each is
//! started when it is first needed, so that commands without policies start at once. What policies
//! are run on is not known here.

use std::cell::OnceCell;
use std::future::Future;

use opensdn_error_chain::error_chain;
use opensdn_module_process::BoundedProcess;
use opensdn_policy_host::{Cache, Digest, Engine, Metering, Policy};
use opensdn_validate::{Loader, ModuleError};
use tokio::runtime::Handle;

use crate::cli::Global;
use crate::exit::{Exit, Failure};

/// Evaluations at once. A command judges one object after the other, and each slot costs address
/// space, which some machines limit.
const CONCURRENT: u32 = 4;
/// Memory of the process that reads a module from outside: more than the webhook gives it, as modules of
/// JavaScript take most of a gigabyte on a machine with many processors.
const MEBIBYTES: u64 = 2048;
/// How else much is said.
const MEBIBYTES_VARIABLE: &str = "KUBECTL_OPENSDN_COMPILER_MEBIBYTES";

/// What runs futures. At its end nothing is waited for that still works in a thread, such as a lookup of a name.
struct Threads {
    handle: Handle,
    owner: Option<tokio::runtime::Runtime>,
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take() {
            owner.shutdown_background();
        }
    }
}

/// One command's runtime.
pub(crate) struct Runtime {
    threads: Threads,
    engine: OnceCell<Engine>,
    metering: Metering,
    cache: Option<Cache>,
    /// This program again, to read and compile modules from outside.
    process: Option<BoundedProcess>,
    /// Why nothing is cached, if that is not what the user wanted.
    uncached: Option<String>,
}

impl Runtime {
    /// Starts the runtime; compiled policies are kept in the cache folder that `global` names.
    ///
    /// # Errors
    /// The machine gives no threads, or a variable is no number.
    pub(crate) fn start(global: &Global) -> Result<Self, Failure> {
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| {
                let hint = "raise the limit of processes: `ulimit -u`";
                Failure::new(Exit::Unreachable, "no-threads", "no thread can be started", hint)
                    .because(&error)
            })?;
        let (cache, uncached) = match global.cache() {
            Ok(cache) => (cache, None),
            Err(error) => (None, Some(error_chain(&error))),
        };
        let (engine, metering, process) = (OnceCell::new(), Metering::Off, process()?);
        let threads = Threads { handle: tokio.handle().clone(), owner: Some(tokio) };
        Ok(Self { threads, engine, metering, cache, process, uncached })
    }

    /// The same with an engine that counts what evaluations cost.
    pub(crate) fn metered(mut self, metering: Metering) -> Self {
        self.metering = metering;
        self
    }

    /// Runs the future to its end.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.threads.handle.block_on(future)
    }

    /// Why compiled policies are not kept, in words; each start is slower then.
    pub(crate) fn uncached(&self) -> Option<&str> {
        self.uncached.as_deref()
    }

    /// The engine that all policies of this command share.
    ///
    /// # Errors
    /// The machine does not give the address space.
    pub(crate) fn engine(&self) -> Result<&Engine, Failure> {
        if let Some(engine) = self.engine.get() {
            return Ok(engine);
        }
        let engine = Engine::start_metered(CONCURRENT, self.metering).map_err(|error| {
            let message = "the WebAssembly engine cannot be started";
            let hint = "if the address space is limited, raise it: `ulimit -v unlimited`";
            Failure::new(Exit::Unreachable, "no-engine", message, hint).because(&error)
        })?;
        Ok(self.engine.get_or_init(|| engine))
    }

    /// What loads policies for a validation.
    ///
    /// # Errors
    /// There is no engine.
    pub(crate) fn loader(&self) -> Result<Loader<'_>, Failure> {
        let (cache, compiler) = (self.cache.as_ref(), self.process());
        Ok(Loader { engine: self.engine()?, cache, compiler })
    }

    /// The policy of these bytes, compiled or from the cache.
    ///
    /// # Errors
    /// There is no engine, or (within) the bytes are no policy.
    pub(crate) fn load(
        &self,
        bytes: &[u8],
        pinned: Option<Digest>,
    ) -> Result<Result<Policy, ModuleError>, Failure> {
        let loader = self.loader()?;
        Ok(self.block_on(loader.load(bytes, pinned)))
    }

    /// What reads the bytes of modules from outside.
    pub(crate) fn process(&self) -> Option<&BoundedProcess> {
        self.process.as_ref()
    }
}

fn process() -> Result<Option<BoundedProcess>, Failure> {
    let mebibytes = match std::env::var(MEBIBYTES_VARIABLE) {
        Ok(text) => text.parse().ok().filter(|mebibytes| (32..=65_536).contains(mebibytes)),
        Err(_) => Some(MEBIBYTES),
    };
    let mebibytes = mebibytes.ok_or_else(|| {
        let hint = "set it to mebibytes of memory, 32 to 65536, or unset it";
        Failure::usage(format!("{MEBIBYTES_VARIABLE} is no such number"), hint)
    })?;
    // Where this program cannot be found, what is from outside is refused with the reason.
    Ok(std::env::current_exe().ok().map(|program| BoundedProcess::new(program, mebibytes)))
}
