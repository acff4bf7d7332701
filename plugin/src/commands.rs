//! The commands, one file each.

use clap::Subcommand;

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::ui::Ui;

pub(crate) mod version;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say which version this is.
    Version(version::Version),
}

impl Command {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        match self {
            Self::Version(command) => command.run(global, ui),
        }
    }
}
