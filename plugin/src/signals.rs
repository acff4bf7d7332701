//! SIGINT and SIGTERM, where more is to be done than to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// The signals by which a user ends a command. From here on they end nothing by themselves.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Catches them from now on.
    ///
    /// # Errors
    /// They cannot be caught.
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next of them; how the command ends by it.
    pub(crate) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }
}
