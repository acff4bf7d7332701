//! Things that break, for tests: each is undone when its [`Fault`] is dropped. Cables and
//! packets are in `network`, programs in `processes`. Deliberately not here: what should happen
//! then, which tests say.

mod delay;
mod network;
mod network_policy;
mod processes;
mod storage;

pub use network::{Link, Party};
pub(in crate::sandbox) use processes::pause;
pub use processes::{Daemon, Signal};

use super::LabError;
use super::machine::MachineError;

/// Why something could not be broken, or not be undone.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// The lab is not as it should be.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A machine did not do what it was asked.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// Both are beyond the reach of one machine.
    #[error("cut {0} off from {1}: one of them must be a node or the control plane")]
    NoMachine(String, String),
    /// The pod's container has no process.
    #[error("find the process of container {container} in {namespace}/{pod}: it does not run")]
    NoProcess {
        /// Where the pod is.
        namespace: String,
        /// Which pod.
        pod: String,
        /// Which container.
        container: String,
    },
    /// The claim has no volume of the lab.
    #[error("fill the volume of claim {namespace}/{claim}: it is not bound to one of the lab's")]
    NoVolume {
        /// Where the claim is.
        namespace: String,
        /// Which claim.
        claim: String,
    },
    /// The kernel does not hand packets over.
    #[error("delay packets on {machine}: the kernel needs CONFIG_NETFILTER_NETLINK_QUEUE")]
    Delay {
        /// Which machine.
        machine: String,
        /// What the kernel said.
        #[source]
        source: std::io::Error,
    },
    /// A pod cannot be kept to a policy.
    #[error("enforce the NetworkPolicy of pod {0}: {1}")]
    NetworkPolicy(String, &'static str),
    /// The program does not run.
    #[error("stop {0}: it does not run")]
    NotRunning(String),
}

type Undo = Box<dyn FnOnce() -> Result<(), FaultError> + Send>;

/// Something that is broken until this is dropped.
#[must_use = "the fault is undone when this is dropped"]
pub struct Fault {
    what: String,
    undo: Option<Undo>,
}

impl Fault {
    fn new(
        what: impl Into<String>,
        undo: impl FnOnce() -> Result<(), FaultError> + Send + 'static,
    ) -> Self {
        Self { what: what.into(), undo: Some(Box::new(undo)) }
    }

    /// Repairs it, and reports when that fails.
    ///
    /// # Errors
    /// When the machine in question is gone.
    pub fn undo(mut self) -> Result<(), FaultError> {
        self.undo.take().map_or(Ok(()), |undo| undo())
    }
}

impl std::fmt::Debug for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.undo.take().map(|undo| undo()) {
            // A machine that has ended since takes its faults along.
            tracing::warn!(error = &error as &dyn std::error::Error, "undo: {}", self.what);
        }
    }
}
