//! The limits that a process sets itself before it reads a stranger's bytes.

use std::fs;
use std::io;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

/// No usable module takes so much of all processors.
pub const PROCESSOR_SECONDS: u64 = 240;
/// What else the machine does goes first.
const NICENESS: i32 = 10;

/// Memory that is only reserved does not count, as the engine reserves gigabytes; what could be
/// written to does. A process that takes more dies of it, so there are no core files.
///
/// # Errors
/// The system refuses a limit.
pub fn restrict(mebibytes: u64) -> io::Result<()> {
    // Nothing reads the answer of a process whose parent was killed.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    lower_priority();
    let limits = [
        (Resource::Data, mebibytes << 20, mebibytes << 20),
        // At the first it gets a signal, which says why it died.
        (Resource::Cpu, PROCESSOR_SECONDS, PROCESSOR_SECONDS + 10),
        (Resource::Core, 0, 0),
    ];
    for (resource, soft, hard) in limits {
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
        setrlimit(resource, limit)?;
    }
    Ok(())
}

/// Others get the processor first, and when the container's memory is used up all the same, the
/// kernel takes this process first where it can. Where the system refuses, it works all the same.
fn lower_priority() {
    let _niceness = rustix::process::nice(NICENESS);
    let _score = fs::write("/proc/self/oom_score_adj", "1000");
}
