//! This program again, as a process with limits that reads a module from its standard input, answers on
//! its standard output, says why it refuses on standard error, and ends with an exit code.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use opensdn_policy_host::{MAX_TEXT_BYTES, cut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::limits::PROCESSOR_SECONDS;

/// The module is none that can be used.
pub(crate) const REFUSED: u8 = 3;
/// It could not start: no engine, no cache.
pub(crate) const UNAVAILABLE: u8 = 4;
/// There is no room for the code in the cache folder.
pub(crate) const FULL: u8 = 5;
/// The system gave it no more memory.
pub(crate) const OUT_OF_MEMORY: u8 = 6;

/// How long it may take where the processors work for others too.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(600);
/// Each takes memory of its own, and more than these are not much faster.
const THREADS: usize = 4;
/// SIGHUP, SIGINT, SIGKILL and SIGTERM: another process or the kernel has ended it, whatever it
/// was doing.
const FROM_OUTSIDE: [i32; 4] = [1, 2, 9, 15];
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;
/// Bytes of its standard error that are read.
const MAX_SAID: u64 = 4 << 10;
/// Bytes of its answer that are read.
const MAX_ANSWER: u64 = 1 << 20;

/// Starts a program as such a process.
#[derive(Clone, Debug)]
pub struct BoundedProcess {
    program: PathBuf,
    mebibytes: u64,
}

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// Well, with this answer.
    Done(Vec<u8>),
    /// It refuses the module: its answer, and why.
    Refused(Vec<u8>, String),
    /// It takes more memory than it may have.
    OutOfMemory,
    /// It takes more of the processor than it may have.
    OutOfTime,
    /// It died of the module: how.
    Crashed(String),
    /// There is no room for what it made; why.
    Full(String),
    /// The machine is to blame; why.
    Interrupted(String),
}

impl Ended {
    /// Why there is no answer, where the module is to blame by what it did to the process.
    #[must_use]
    pub fn died_of(&self) -> Option<String> {
        match self {
            Self::OutOfTime => {
                Some(format!("takes more than {PROCESSOR_SECONDS} s of processor time"))
            }
            Self::Crashed(how) => Some(how.clone()),
            _ => None,
        }
    }
}

impl BoundedProcess {
    /// By `program`, which may take so many mebibytes of memory.
    #[must_use]
    pub fn new(program: PathBuf, mebibytes: u64) -> Self {
        Self { program, mebibytes }
    }

    /// Mebibytes of memory that it may take.
    #[must_use]
    pub fn mebibytes(&self) -> u64 {
        self.mebibytes
    }

    /// Starts it and waits for its end. None where it was `over` before: its process is gone then, and
    /// what it held with it.
    pub async fn run(
        &self,
        arguments: &[OsString],
        module: &[u8],
        over: impl Future<Output = ()>,
    ) -> Option<Ended> {
        let mut child = match self.start(arguments) {
            Ok(child) => child,
            Err(error) => return Some(not_started(&error)),
        };
        let ended = tokio::select! {
            ended = timeout(PROCESS_TIMEOUT, feed(&mut child, module)) => Some(ended),
            () = over => None,
        };
        let Some(Ok(outcome)) = ended else {
            // Not killed only where it has ended by itself.
            let _killed = child.kill().await;
            return ended.map(|_| not_ended());
        };
        Some(match outcome {
            Ok(said) => said.read(),
            Err(error) => not_started(&error),
        })
    }

    fn start(&self, arguments: &[OsString]) -> io::Result<Child> {
        Command::new(&self.program)
            .args(arguments)
            .env("RAYON_NUM_THREADS", threads().to_string())
            // Of the static program: memory then counts when it is used, not when it is reserved.
            .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }
}

fn not_started(error: &io::Error) -> Ended {
    Ended::Interrupted(format!("the compiler could not be started: {error}"))
}

fn not_ended() -> Ended {
    let seconds = PROCESS_TIMEOUT.as_secs();
    Ended::Interrupted(format!("the compiler did not end within {seconds} s"))
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(THREADS)
}

/// What there is of a process that has ended.
struct Said {
    status: ExitStatus,
    answer: Vec<u8>,
    error: String,
}

async fn feed(child: &mut Child, module: &[u8]) -> io::Result<Said> {
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        let Some(mut input) = input else { return };
        // If it has ended already, its status says more than that it does not read.
        if let Err(error) = input.write_all(module).await {
            tracing::debug!(%error, "failed to write the module to the compiler");
        }
    };
    let ((), answer, said) =
        tokio::join!(write, read_up_to(output, MAX_ANSWER), read_up_to(errors, MAX_SAID));
    let said = String::from_utf8_lossy(&said?).trim().to_owned();
    let (status, error) = (child.wait().await?, cut(&said, MAX_TEXT_BYTES).into_owned());
    Ok(Said { status, answer: answer?, error })
}

/// What there is beyond is not read: the process then ends of writing it.
async fn read_up_to(from: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<Vec<u8>> {
    let mut said = Vec::new();
    if let Some(from) = from {
        from.take(most).read_to_end(&mut said).await?;
    }
    Ok(said)
}

impl Said {
    fn read(self) -> Ended {
        let Self { status, answer, error } = self;
        let (code, signal) = (status.code(), status.signal());
        let has = |text: &str| error.contains(text);
        if status.success() {
            return Ended::Done(answer);
        }
        // What a refusal says are the module's own words: they are not read.
        if code == Some(REFUSED.into()) {
            return Ended::Refused(answer, error);
        }
        if code == Some(FULL.into()) {
            return Ended::Full(error);
        }
        // A process that the system does not give is no property of the module.
        if code == Some(UNAVAILABLE.into()) || has("Resource temporarily unavailable") {
            return Ended::Interrupted(error);
        }
        if signal.is_some_and(|signal| FROM_OUTSIDE.contains(&signal)) {
            return Ended::Interrupted(format!("the compiler was ended from outside: {status}"));
        }
        if signal == Some(SIGXFSZ) {
            return Ended::Full("the system lets no file grow so large: `ulimit -f`".to_owned());
        }
        // What Rust's runtime and the system say when the limit of memory holds.
        let is_said = ["memory allocation of", "Cannot allocate memory", "Out of memory"];
        if code == Some(OUT_OF_MEMORY.into()) || is_said.into_iter().any(has) {
            return Ended::OutOfMemory;
        }
        if signal == Some(SIGXCPU) {
            return Ended::OutOfTime;
        }
        let error = if error.is_empty() { String::new() } else { format!(": {error}") };
        Ended::Crashed(format!("the compiler ended with {status} on this module{error}"))
    }
}
