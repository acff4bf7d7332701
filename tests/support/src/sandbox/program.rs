//! One program of the sandbox as a child process: started, watched, ended, and never
//! outliving the process that started it. Deliberately not here: which programs there are
//! and with which flags.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::future::Future;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::surroundings::Surroundings;
use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal,
};

/// How long a program may take to end by itself before it is killed. One that needs longer
/// waits for its clients' watches, etcd for seven seconds; it has stored everything by then.
const GRACE: Duration = Duration::from_secs(3);
/// How long it may take to become ready on a machine that is busy with a build.
const READY: Duration = Duration::from_secs(90);
/// How often a condition is looked at again.
const POLL: Duration = Duration::from_millis(50);
/// How many lines of a log an error shows.
const TAIL_LINES: usize = 12;

/// Why a program does not run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The operating system did not start it.
    #[error("start {name} ({})", path.display())]
    Spawn {
        /// Which program.
        name: String,
        /// Its file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// Its log file could not be opened.
    #[error("open the log {}", log.display())]
    Log {
        /// The file.
        log: PathBuf,
        /// What the file system said.
        #[source]
        source: io::Error,
    },
    /// It ended without being asked to.
    #[error("keep {name} running: it ended with {status}; {log}")]
    Died {
        /// Which program.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// What it has logged.
        log: Box<LogTail>,
    },
    /// It runs, but is not ready in time.
    #[error("see {name} ready within {} s (last answer: {last}); {log}", waited.as_secs())]
    NotReady {
        /// Which program.
        name: String,
        /// How long was waited.
        waited: Duration,
        /// What it said when it was last asked.
        last: String,
        /// What it has logged.
        log: Box<LogTail>,
    },
}

/// The end of a program's log, shown as lines also in a failed test's `Debug` output.
#[derive(Clone, PartialEq, Eq)]
pub struct LogTail {
    path: PathBuf,
    lines: Vec<String>,
}

impl LogTail {
    fn read(path: &Path) -> Self {
        // A log that cannot be read must not hide the error that it would have explained.
        let bytes = fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let mut lines: Vec<String> =
            text.lines().rev().take(TAIL_LINES).map(String::from).collect();
        lines.reverse();
        Self { path: path.to_owned(), lines }
    }
}

impl fmt::Display for LogTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the end of {}:", self.path.display())?;
        self.lines.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

impl fmt::Debug for LogTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{self}")
    }
}

/// A program and, while it runs, its process. Dropping it kills the process.
pub(crate) struct Program {
    name: String,
    path: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, OsString)>,
    folder: PathBuf,
    log: PathBuf,
    surroundings: Surroundings,
    process: Mutex<Option<Child>>,
}

impl Program {
    /// `folder` is the sandbox's data folder; the log goes to `logs/NAME.log` in it.
    pub(crate) fn new(
        name: impl Into<String>,
        path: PathBuf,
        arguments: Vec<String>,
        folder: &Path,
    ) -> Self {
        let name = name.into();
        let log = folder.join("logs").join(format!("{name}.log"));
        Self {
            name,
            path,
            arguments,
            variables: Vec::new(),
            folder: folder.to_owned(),
            log,
            surroundings: Surroundings::Ours,
            process: Mutex::new(None),
        }
    }

    /// Runs the program in other namespaces than its owner's.
    pub(super) fn surrounded_by(mut self, surroundings: Surroundings) -> Self {
        self.surroundings = surroundings;
        self
    }

    /// An environment variable for the process, which gets none of its owner's.
    pub(crate) fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// The end of what it has logged.
    pub(crate) fn log_tail(&self) -> LogTail {
        LogTail::read(&self.log)
    }

    /// Starts the process unless it runs already. Output is appended to the log.
    pub(crate) fn start(&self) -> Result<(), ProgramError> {
        if self.lock().as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
            return Ok(());
        }
        let (out, err) = self.open_log()?;
        let mut command = self.surroundings.command(&self.path);
        command
            .args(&self.arguments)
            // A stray ETCD_NAME or HTTPS_PROXY of the caller would change what the programs
            // do; a proxy would be between the API server and our webhook.
            .env_clear()
            .env("HOME", &self.folder)
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            // Ctrl-C in a terminal is for the owner, which then ends its programs in order.
            .process_group(0);
        let child = spawn_bound(command).map_err(|source| ProgramError::Spawn {
            name: self.name.clone(),
            path: self.path.clone(),
            source,
        })?;
        *self.lock() = Some(child);
        Ok(())
    }

    /// Starts the process again when it has ended without being asked to, as an init system
    /// would. One that was ended by us stays so.
    pub(super) fn start_if_ended(&self) -> Result<(), ProgramError> {
        match self.check_alive() {
            Ok(()) => Ok(()),
            Err(_) => self.start(),
        }
    }

    fn open_log(&self) -> Result<(File, File), ProgramError> {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .and_then(|file| Ok((file.try_clone()?, file)))
            .map_err(|source| ProgramError::Log { log: self.log.clone(), source })
    }

    /// The process id, while it runs. One that a go-between is about to start has none yet.
    pub(crate) fn id(&self) -> Option<u32> {
        let mut process = self.lock();
        let child = process.as_mut()?;
        matches!(child.try_wait(), Ok(None)).then(|| self.surroundings.main_process(child.id()))?
    }

    /// Sends a signal to the process. One that has ended is left alone.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.id().and_then(as_pid) {
            // It has ended meanwhile.
            let _ = kill_process(pid, signal);
        }
    }

    /// Fails with the end of the log when the process has ended by itself.
    pub(crate) fn check_alive(&self) -> Result<(), ProgramError> {
        let ended = self.lock().as_mut().map(Child::try_wait);
        match ended {
            Some(Ok(Some(status))) => Err(ProgramError::Died {
                name: self.name.clone(),
                status,
                log: Box::new(LogTail::read(&self.log)),
            }),
            // Not started, running, or in an unknown state: readiness will show.
            _ => Ok(()),
        }
    }

    /// The error of a program that runs but does not become ready.
    pub(crate) fn not_ready(&self, waited: Duration, last: String) -> ProgramError {
        ProgramError::NotReady {
            name: self.name.clone(),
            waited,
            last,
            log: Box::new(LogTail::read(&self.log)),
        }
    }

    /// Resumes a process that was stopped by a signal.
    pub(super) fn resume(&self) {
        self.wake_go_between();
        self.signal(Signal::CONT);
    }

    /// `nsenter` and `unshare` stop themselves when their child is stopped.
    fn wake_go_between(&self) {
        if let Some(pid) = self.lock().as_ref().and_then(|child| as_pid(child.id())) {
            // It has ended: nothing to wake.
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// Ends the process with SIGTERM, and with SIGKILL when that is not heeded.
    pub(crate) async fn stop(&self) {
        self.stop_within(GRACE).await;
    }

    /// Ends the process with SIGTERM, and with SIGKILL when it takes longer than `grace`.
    pub(crate) async fn stop_within(&self, grace: Duration) {
        self.signal(Signal::TERM);
        let deadline = Instant::now() + grace;
        while self.id().is_some() && Instant::now() < deadline {
            tokio::time::sleep(POLL).await;
        }
        self.kill();
    }

    /// Ends the process with SIGKILL and waits until it is gone.
    pub(crate) fn kill(&self) {
        // A wrapper between us and the process ends with it, and only then it is gone.
        if self.surroundings.has_go_between() {
            self.signal(Signal::KILL);
            self.wake_go_between();
        }
        if let Some(mut child) = self.lock().take() {
            // Both fail only when the process has ended and been waited for.
            if !self.surroundings.has_go_between() || !ends_soon(&mut child) {
                let _ = child.kill();
            }
            let _ = child.wait();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        // The guarded value is replaced as a whole, so a panic elsewhere cannot break it.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Asks until the answer is good. Ends early when a program that is needed has ended, late
/// with the error of `program`.
pub(crate) async fn wait_until<F, A>(
    program: &Program,
    needed: &[&Program],
    mut ask: F,
) -> Result<(), ProgramError>
where
    F: FnMut() -> A,
    A: Future<Output = Result<(), String>>,
{
    let started = Instant::now();
    loop {
        for program in needed {
            program.check_alive()?;
        }
        match tokio::time::timeout(Duration::from_secs(5), ask()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(answer)) if started.elapsed() > READY => {
                return Err(program.not_ready(started.elapsed(), answer));
            }
            Err(_) if started.elapsed() > READY => {
                return Err(program.not_ready(started.elapsed(), "none within 5 s".into()));
            }
            Ok(Err(_)) | Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}

fn as_pid(id: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(id).ok()?)
}

/// Waits a moment for a process that has no reason to live on.
fn ends_soon(child: &mut Child) -> bool {
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}

type Order = (Command, Sender<io::Result<Child>>);

/// Starts a child that the kernel kills when this process ends, however it ends.
///
/// The kernel ties that promise to the *thread* that forked, so all children are forked by
/// one thread that lives as long as the process. A test's or runtime's thread would take
/// its children with it.
fn spawn_bound(mut command: Command) -> io::Result<Child> {
    static SPAWNER: Mutex<Option<Sender<Order>>> = Mutex::new(None);
    die_with_this_process(&mut command);
    let orders = {
        let mut spawner = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
        match spawner.as_ref() {
            Some(orders) => orders.clone(),
            None => spawner.insert(start_spawner()?).clone(),
        }
    };
    let (answer, answered) = channel();
    let gone = |_| io::Error::other("the thread that starts programs is gone");
    orders.send((command, answer)).map_err(|_| gone(()))?;
    answered.recv().map_err(|_| gone(()))?
}

fn start_spawner() -> io::Result<Sender<Order>> {
    let (orders, received): (Sender<Order>, Receiver<Order>) = channel();
    thread::Builder::new().name("sandbox-spawner".into()).spawn(move || {
        for (mut command, answer) in received {
            // The asker waits for the answer; if it is gone, the child is dropped and ends
            // with this process.
            let _ = answer.send(command.spawn());
        }
    })?;
    Ok(orders)
}

#[allow(unsafe_code, reason = "a child can only ask for its own death signal before exec")]
fn die_with_this_process(command: &mut Command) {
    let owner = getpid();
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The owner may have died before the line above: then no signal would ever come.
        if getppid() == Some(owner) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: between fork and exec the closure makes two system calls through rustix, which
    // neither allocates nor locks; it captures one integer.
    unsafe {
        command.pre_exec(ask);
    }
}
