//! The compiler as a process of its own: this program again, with other arguments. What the
//! compiler has taken of memory the system gets back, which the webhook would keep until it ends;
//! reviews go first; and a module on which it crashes or never ends costs a message.
//!
//! It reads the module from its standard input and writes the code to the cache folder; the exit
//! code is the answer. Why a module is refused is found out by the webhook.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use opensdn_policy_host::{Cache, Engine, Policy, PrecompileError};
use opensdn_runtime::error_chain;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The argument that makes this program the compiler; the cache folder follows.
const COMPILE: &str = "compile-module";
/// The module is none that can be compiled.
const REFUSED: u8 = 3;
/// It could not start to compile: no engine, no cache.
const UNAVAILABLE: u8 = 4;
/// No usable module takes so long on any machine.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(300);
/// Each takes some 100 MiB and all cores.
const MAX_CONCURRENT: usize = 2;
/// Reviews go first.
const NICENESS: i32 = 10;

/// Compiles modules into a cache folder, each in a process of its own.
#[derive(Debug)]
pub(crate) struct Compiler {
    program: PathBuf,
    folder: PathBuf,
    permits: Semaphore,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Compiled {
    /// The cache has it.
    Done,
    /// The module is none.
    Refused,
    /// There is no such process; the log says why.
    Unavailable,
    /// What it did: `was ended by signal 9`.
    Crashed(String),
}

impl Compiler {
    pub(crate) fn new(program: PathBuf, cache: &Cache) -> Self {
        let folder = cache.folder().to_owned();
        Self { program, folder, permits: Semaphore::new(MAX_CONCURRENT) }
    }

    pub(crate) async fn compile(&self, module: &[u8]) -> Compiled {
        // The semaphore is never closed; a permit more or less is no reason to fail.
        let _permit = self.permits.acquire().await;
        let child = Command::new(&self.program)
            .arg(COMPILE)
            .arg(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        let outcome = match child {
            Ok(child) => timeout(COMPILE_TIMEOUT, feed(child, module)).await,
            Err(error) => Ok(Err(error)),
        };
        match outcome {
            Ok(Ok(status)) => read(status),
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to start the compiler process; compiling in-process");
                Compiled::Unavailable
            }
            Err(_) => Compiled::Crashed(format!("took more than {} s", COMPILE_TIMEOUT.as_secs())),
        }
    }
}

async fn feed(mut child: Child, module: &[u8]) -> io::Result<ExitStatus> {
    if let Some(mut input) = child.stdin.take() {
        // If it has ended already, its status says more than that it does not read.
        if let Err(error) = input.write_all(module).await {
            tracing::debug!(%error, "failed to write the module to the compiler");
        }
    }
    child.wait().await
}

fn read(status: ExitStatus) -> Compiled {
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(0) => Compiled::Done,
        Some(REFUSED) => Compiled::Refused,
        // It has said why.
        Some(UNAVAILABLE) => Compiled::Unavailable,
        _ => Compiled::Crashed(format!("ended with {status}")),
    }
}

/// The cache folder, if this process is to be the compiler.
pub(crate) fn compile_request(arguments: impl IntoIterator<Item = OsString>) -> Option<PathBuf> {
    let mut arguments = arguments.into_iter().skip(1);
    let is_compiler = arguments.next()? == COMPILE;
    arguments.next().filter(|_| is_compiler).map(PathBuf::from)
}

/// The compiler's process, whole.
pub(crate) fn run(folder: &Path) -> ExitCode {
    tracing_subscriber::fmt().json().flatten_event(true).with_writer(io::stderr).init();
    lower_priority();
    match compile_into(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Compile(PrecompileError::Compile(_))) => REFUSED.into(),
        Err(error) => {
            let error = error_chain(&error);
            tracing::warn!(
                error,
                "failed to compile a module in a process of its own; compiling in-process"
            );
            UNAVAILABLE.into()
        }
    }
}

/// Reviews get the processor first, and when the container's memory is used up the kernel kills the
/// compiler, not the webhook. Where the system refuses, it compiles all the same.
fn lower_priority() {
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(%error, "failed to lower the compiler's priority");
    }
    if let Err(error) = fs::write("/proc/self/oom_score_adj", "1000") {
        tracing::debug!(%error, "failed to raise the compiler's OOM score");
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("read the module")]
    Read(#[source] io::Error),
    #[error(transparent)]
    Engine(#[from] opensdn_policy_host::EngineError),
    #[error(transparent)]
    Cache(#[from] opensdn_policy_host::CacheError),
    #[error(transparent)]
    Compile(#[from] PrecompileError),
}

fn compile_into(folder: &Path) -> Result<(), Failure> {
    let mut module = Vec::new();
    io::stdin().read_to_end(&mut module).map_err(Failure::Read)?;
    // How many evaluations there may be at once is nothing to the code.
    let (cache, engine) = (Cache::open(folder)?, Engine::start(1)?);
    Policy::precompile(&engine, &module, &cache)?;
    Ok(())
}
