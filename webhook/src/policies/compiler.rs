//! The compiler as a process of its own: this program again, with other arguments. A module is
//! compiled there, asked what it is, and that is checked, before anything of it is used here: what a
//! module does to the compiler it cannot do to the webhook. The system gets the memory back, reviews
//! go first, and a module on which it crashes, or that takes too much, costs a message.
//!
//! It reads the module from its standard input and writes the code to the cache folder; the exit
//! code is the answer, and standard error has the reason. Memory and processor time are limited by
//! the process itself: were the container's limit the first to hold, the kernel would end the webhook
//! with its compiler, as all of a container ends together (`memory.oom.group`).

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use opensdn_policy_host::{Cache, Engine, MAX_TEXT_BYTES, Policy, PrecompileError, cut};
use opensdn_runtime::error_chain;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The argument that makes this program the compiler; the cache folder and the mebibytes of memory
/// that it may take follow.
const COMPILE: &str = "compile-module";
/// The module is no policy that can be used.
const REFUSED: u8 = 3;
/// It could not start to compile: no engine, no cache.
const UNAVAILABLE: u8 = 4;
/// There is no room for the code in the cache folder.
const FULL: u8 = 5;
/// The system gave it no more memory.
const OUT_OF_MEMORY: u8 = 6;
/// What it may take unless the arguments say otherwise.
pub(super) const DEFAULT_MEBIBYTES: u64 = 256;
/// No usable module takes so much of all processors.
const PROCESSOR_SECONDS: u64 = 240;
/// How long it may take where the processors work for others too.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(600);
/// Each takes memory of its own, and more than these are not much faster.
const THREADS: usize = 4;
/// Reviews go first.
const NICENESS: i32 = 10;
/// SIGHUP, SIGINT, SIGKILL and SIGTERM: another process or the kernel has ended it, whatever it
/// was doing.
const FROM_OUTSIDE: [i32; 4] = [1, 2, 9, 15];
const SIGXCPU: i32 = 24;
/// Bytes of its standard error that are read.
const MAX_SAID: u64 = 4 << 10;

/// Compiles modules into a cache folder, each in a process of its own.
#[derive(Debug)]
pub(crate) struct Compiler {
    program: PathBuf,
    folder: PathBuf,
    mebibytes: u64,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Compiled {
    /// The cache has it.
    Done,
    /// The module is to blame, and would be again; why.
    Refused(String),
    /// It takes more memory than the compiler may have; how much that is.
    OutOfMemory { mebibytes: u64 },
    /// The machine is to blame; why.
    Interrupted(String),
    /// So is the disk: there is no room in this folder; why.
    Full { folder: PathBuf, why: String },
}

impl Compiler {
    /// Compiles by `program`, which may take so many mebibytes of memory.
    pub(crate) fn new(program: PathBuf, cache: &Cache, mebibytes: u64) -> Self {
        Self { program, folder: cache.folder().to_owned(), mebibytes }
    }

    /// None where it was `over` before it ended: its process is gone then, and what it held with it.
    pub(crate) async fn compile(
        &self,
        module: &[u8],
        over: impl Future<Output = ()>,
    ) -> Option<Compiled> {
        let mut child = match self.start() {
            Ok(child) => child,
            Err(error) => return Some(not_started(&error)),
        };
        let ended = tokio::select! {
            ended = timeout(COMPILE_TIMEOUT, feed(&mut child, module)) => Some(ended),
            () = over => None,
        };
        let Some(Ok(outcome)) = ended else {
            // Not killed only where it has ended by itself.
            let _killed = child.kill().await;
            return ended.map(|_| not_ended());
        };
        Some(match outcome {
            Ok((status, said)) => self.read(status, &said),
            Err(error) => not_started(&error),
        })
    }

    fn start(&self) -> io::Result<Child> {
        Command::new(&self.program)
            .arg(COMPILE)
            .arg(&self.folder)
            .arg(self.mebibytes.to_string())
            .env("RAYON_NUM_THREADS", threads().to_string())
            // Of the static program: memory then counts when it is used, not when it is reserved.
            .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }

    fn read(&self, status: ExitStatus, said: &str) -> Compiled {
        let (code, signal) = (status.code(), status.signal());
        let has = |text: &str| said.contains(text);
        if status.success() {
            return Compiled::Done;
        }
        // What a refusal says are the module's own words: they are not read.
        if code == Some(REFUSED.into()) {
            return Compiled::Refused(said.to_owned());
        }
        if code == Some(FULL.into()) {
            return Compiled::Full { folder: self.folder.clone(), why: said.to_owned() };
        }
        // A process that the system does not give is no property of the module.
        if code == Some(UNAVAILABLE.into()) || has("Resource temporarily unavailable") {
            return Compiled::Interrupted(said.to_owned());
        }
        if signal.is_some_and(|signal| FROM_OUTSIDE.contains(&signal)) {
            return Compiled::Interrupted(format!("the compiler was ended from outside: {status}"));
        }
        // What Rust's runtime and the system say when the limit of memory holds.
        let is_said = ["memory allocation of", "Cannot allocate memory", "Out of memory"];
        if code == Some(OUT_OF_MEMORY.into()) || is_said.into_iter().any(has) {
            return Compiled::OutOfMemory { mebibytes: self.mebibytes };
        }
        if signal == Some(SIGXCPU) {
            return Compiled::Refused(format!(
                "to compile the module takes more than {PROCESSOR_SECONDS} s of processor time"
            ));
        }
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        Compiled::Refused(format!("the compiler ended with {status} on this module{said}"))
    }
}

fn not_started(error: &io::Error) -> Compiled {
    Compiled::Interrupted(format!("the compiler could not be started: {error}"))
}

fn not_ended() -> Compiled {
    let seconds = COMPILE_TIMEOUT.as_secs();
    Compiled::Interrupted(format!("the compiler did not end within {seconds} s"))
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(THREADS)
}

/// How it ended, and what it said.
async fn feed(child: &mut Child, module: &[u8]) -> io::Result<(ExitStatus, String)> {
    let (input, errors) = (child.stdin.take(), child.stderr.take());
    let write = async {
        let Some(mut input) = input else { return };
        // If it has ended already, its status says more than that it does not read.
        if let Err(error) = input.write_all(module).await {
            tracing::debug!(%error, "failed to write the module to the compiler");
        }
    };
    let read = async {
        let mut said = Vec::new();
        if let Some(errors) = errors {
            errors.take(MAX_SAID).read_to_end(&mut said).await?;
        }
        io::Result::Ok(said)
    };
    let ((), said) = tokio::join!(write, read);
    let said = String::from_utf8_lossy(&said?).trim().to_owned();
    Ok((child.wait().await?, cut(&said, MAX_TEXT_BYTES).into_owned()))
}

/// What this process is to do if it is to be the compiler.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CompileRequest {
    folder: PathBuf,
    mebibytes: u64,
}

/// The request, if this process is to be the compiler.
pub(crate) fn compile_request(
    arguments: impl IntoIterator<Item = OsString>,
) -> Option<CompileRequest> {
    let mut arguments = arguments.into_iter().skip(1);
    let is_compiler = arguments.next()? == COMPILE;
    let folder = arguments.next().filter(|_| is_compiler).map(PathBuf::from)?;
    let mebibytes = arguments.next().and_then(|text| text.to_str()?.parse().ok());
    Some(CompileRequest { folder, mebibytes: mebibytes.unwrap_or(DEFAULT_MEBIBYTES) })
}

/// The compiler's process, whole.
pub(crate) fn run(request: &CompileRequest) -> ExitCode {
    lower_priority();
    let outcome = limit(request.mebibytes).and_then(|()| compile_into(&request.folder));
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    // Where nothing reads it, the exit code still says the most.
    let _said = writeln!(io::stderr(), "{}", error_chain(&failure));
    exit_code(&failure).into()
}

fn exit_code(failure: &Failure) -> u8 {
    match failure {
        Failure::Compile(PrecompileError::Module(error)) if error.is_out_of_memory() => {
            OUT_OF_MEMORY
        }
        Failure::Compile(PrecompileError::Module(_)) => REFUSED,
        Failure::Compile(PrecompileError::Cache(error)) | Failure::Cache(error)
            if error.is_full() =>
        {
            FULL
        }
        _ => UNAVAILABLE,
    }
}

/// Reviews get the processor first, and when the container's memory is used up all the same, the
/// kernel takes the compiler first where it can. Where the system refuses, it compiles all the same.
fn lower_priority() {
    let _niceness = rustix::process::nice(NICENESS);
    let _score = fs::write("/proc/self/oom_score_adj", "1000");
}

/// Memory that is only reserved does not count, as the engine reserves gigabytes; what could be
/// written to does. A compiler that takes more dies of it, so there are no core files.
fn limit(mebibytes: u64) -> Result<(), Failure> {
    let limits = [
        (Resource::Data, mebibytes << 20, mebibytes << 20),
        // At the first it gets a signal, which says why it died.
        (Resource::Cpu, PROCESSOR_SECONDS, PROCESSOR_SECONDS + 10),
        (Resource::Core, 0, 0),
    ];
    for (resource, soft, hard) in limits {
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
        setrlimit(resource, limit).map_err(|error| Failure::Limit(error.into()))?;
    }
    Ok(())
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("limit what the compiler may take")]
    Limit(#[source] io::Error),
    #[error("read the module")]
    Read(#[source] io::Error),
    #[error("start the runtime of the compiler")]
    Runtime(#[source] io::Error),
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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(Failure::Runtime)?;
    Ok(runtime.block_on(Policy::precompile(&engine, module, &cache))?)
}

#[cfg(test)]
mod tests {
    use opensdn_policy_host::CacheError;

    use super::*;

    #[test]
    fn a_full_disk_is_another_answer_than_any_other_trouble_with_the_cache() {
        let of_cache = |kind: io::ErrorKind| CacheError::Write("code".into(), kind.into());
        let of_compilation = |kind| Failure::Compile(PrecompileError::Cache(of_cache(kind)));
        assert_eq!(exit_code(&of_compilation(io::ErrorKind::StorageFull)), FULL);
        assert_eq!(exit_code(&Failure::Cache(of_cache(io::ErrorKind::QuotaExceeded))), FULL);
        assert_eq!(exit_code(&of_compilation(io::ErrorKind::PermissionDenied)), UNAVAILABLE);
    }
}
