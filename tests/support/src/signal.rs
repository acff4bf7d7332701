//! Signals to processes, by their numbers: there may be no program `kill`.

use std::io;

use rustix::process::{Pid, kill_process};

pub use rustix::process::Signal;

/// Sends it.
///
/// # Errors
/// There is no such process.
pub fn send(signal: Signal, process: u32) -> io::Result<()> {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| io::Error::other("the number of no process"))?;
    Ok(kill_process(process, signal)?)
}
