//! A machine of the lab: a process that does nothing, and the namespaces that live and end with
//! it. Deliberately not here: what runs on a machine (`node`), and its cables (`wiring`).

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::sandbox::program::{Program, ProgramError};
use crate::sandbox::surroundings::Surroundings;

/// How long a machine may take to have its namespaces.
const READY: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(5);
/// The program that does nothing.
const PAUSE: &str = "pause";

/// Why a machine is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// Its first process did not start.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// It has not got its namespaces.
    #[error("give {machine} namespaces of its own; see {log}")]
    Namespaces {
        /// Which machine.
        machine: String,
        /// Where `unshare` has said why.
        log: String,
    },
    /// A command could not be run on it.
    #[error("run {what} on {machine}")]
    Run {
        /// Which machine.
        machine: String,
        /// The command.
        what: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// A command failed.
    #[error("run {what} on {machine}: {said}")]
    Failed {
        /// Which machine.
        machine: String,
        /// The command, or what a script was for.
        what: String,
        /// What it wrote.
        said: String,
    },
}

/// A running machine. Dropping it ends every process on it.
pub(crate) struct Machine {
    name: String,
    init: Program,
    process: u32,
}

impl Machine {
    /// Starts the machine of a lab. `folder` is the sandbox's, for its log.
    pub(super) fn start(
        lab: &str,
        name: &str,
        programs: &Path,
        folder: &Path,
    ) -> Result<Self, MachineError> {
        // The arguments identify it in a list of processes.
        let arguments = vec![format!("opensdn-lab-{lab}"), name.to_owned()];
        let log_name = format!("{name}-machine");
        let init = Program::new(&log_name, programs.join(PAUSE), arguments, folder)
            .surrounded_by(Surroundings::New);
        init.start()?;
        let deadline = Instant::now() + READY;
        loop {
            // Before it has become this program, its namespaces are still being made.
            if let Some(process) = init.id().filter(|process| is_pause(*process)) {
                return Ok(Self { name: name.to_owned(), init, process });
            }
            init.check_alive()?;
            if Instant::now() > deadline {
                let log = folder.join("logs").join(format!("{log_name}.log"));
                let log = log.display().to_string();
                return Err(MachineError::Namespaces { machine: name.to_owned(), log });
            }
            thread::sleep(POLL);
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its first process.
    pub(super) fn process(&self) -> u32 {
        self.process
    }

    pub(super) fn program(&self) -> &Program {
        &self.init
    }

    /// In all its namespaces.
    pub(super) fn surroundings(&self) -> Surroundings {
        Surroundings::MachineOf(self.process)
    }

    /// Runs shell lines in its network, beside the files of this machine; `what` they are for
    /// gets an error when one fails.
    pub(super) fn wire(&self, what: &str, script: &str) -> Result<String, MachineError> {
        self.shell(Surroundings::NetworkOf(self.process), what, script)
    }

    /// Runs shell lines in all its namespaces.
    pub(super) fn run(&self, what: &str, script: &str) -> Result<String, MachineError> {
        self.shell(self.surroundings(), what, script)
    }

    fn shell(
        &self,
        surroundings: Surroundings,
        what: &str,
        script: &str,
    ) -> Result<String, MachineError> {
        let mut command = surroundings.command(Path::new("/bin/sh"));
        command.args(["-eu", "-s"]);
        let output = talk(command, script).map_err(|source| MachineError::Run {
            machine: self.name.clone(),
            what: what.to_owned(),
            source,
        })?;
        said(&self.name, what, &output)
    }
}

/// Runs a command with that input to its end.
fn talk(mut command: Command, input: &str) -> io::Result<Output> {
    command
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A shell that has ended at an error reads no further; its exit code is reported.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

/// What a command has written, or that it failed.
pub(super) fn said(machine: &str, what: &str, output: &Output) -> Result<String, MachineError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(MachineError::Failed {
        machine: machine.to_owned(),
        what: what.to_owned(),
        said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// Every process in the process or network namespaces of machines, given by their first.
pub(super) fn inhabitants(machines: &[u32]) -> Vec<u32> {
    let namespace =
        |process: u32, kind: &str| fs::read_link(format!("/proc/{process}/ns/{kind}")).ok();
    let theirs: Vec<PathBuf> = machines
        .iter()
        .flat_map(|machine| [namespace(*machine, "pid"), namespace(*machine, "net")])
        .flatten()
        .collect();
    let is_theirs = |process: &u32| {
        let own = [namespace(*process, "pid"), namespace(*process, "net")];
        own.into_iter().flatten().any(|own| theirs.contains(&own))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // Pods have process namespaces of their own, below their machine's: their parents show it.
    let mut found: Vec<u32> = Vec::new();
    let mut others: Vec<u32> = Vec::new();
    for process in processes {
        if is_theirs(&process) { found.push(process) } else { others.push(process) }
    }
    loop {
        let (children, rest): (Vec<u32>, Vec<u32>) =
            others.into_iter().partition(|id| parent(*id).is_some_and(|id| found.contains(&id)));
        if children.is_empty() {
            return found;
        }
        found.extend(children);
        others = rest;
    }
}

fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn is_pause(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.trim() == PAUSE)
}
