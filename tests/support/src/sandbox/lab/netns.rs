//! A thread that works in the network of a machine: sockets belong to the network of the thread
//! that makes them. Deliberately not here: what it does there.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

/// Starts a thread in the network of that process, lets it prepare there, and returns when
/// that has worked; then the thread runs with what it has prepared.
pub(super) fn spawn<T: 'static>(
    name: &str,
    process: u32,
    prepare: impl FnOnce() -> io::Result<T> + Send + 'static,
    go_on: impl FnOnce(T) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let network = File::open(format!("/proc/{process}/ns/net"))?;
    let (sender, receiver) = channel();
    let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
        match enter(&network).and_then(|()| prepare()) {
            Ok(prepared) => {
                // The starter of the thread waits for this.
                let _ = sender.send(Ok(()));
                go_on(prepared);
            }
            Err(error) => drop(sender.send(Err(error))),
        }
    })?;
    receiver.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))??;
    Ok(thread)
}

#[allow(unsafe_code, reason = "a thread enters a network by a system call that std lacks")]
fn enter(network: &File) -> io::Result<()> {
    // SAFETY: setns changes the network of the calling thread only, which is ours alone and
    // has no sockets of its own yet; the descriptor is open for the whole call.
    match unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
