//! The manifest of the workloads, for the commands that start or stop them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::exit::Failure;
use crate::install::waiting::Deadline;
use crate::nested::running::file::WorkloadFile;

/// The manifest, and how long is waited.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workloads")]
pub(super) struct WorkloadsFlags {
    /// The manifest of kube-manager and the CNI agent, as nested manifest prints it: they are started after the cloud is
    /// written, and stopped before it is cleaned.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    workloads: Option<PathBuf>,
    /// How long to wait for them.
    #[arg(long, value_name = "TIME", default_value = "15m", requires = "workloads", value_parser = opensdn_duration::parse)]
    timeout: Duration,
}

impl WorkloadsFlags {
    /// The manifest, if one is given.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub(super) fn read(&self) -> Result<Option<WorkloadFile>, Failure> {
        self.workloads.as_deref().map(WorkloadFile::read).transpose()
    }

    /// From now on.
    pub(super) fn deadline(&self) -> Deadline {
        Deadline::after(self.timeout)
    }
}
