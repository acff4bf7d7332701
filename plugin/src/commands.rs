//! The commands, one file each.

use clap::Subcommand;

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::ui::Ui;

pub(crate) mod completion;
pub(crate) mod explain;
pub(crate) mod man;
pub(crate) mod policy;
pub(crate) mod validate;
pub(crate) mod version;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check manifests as a cluster would: schema, rules, policies, and duplicates between files.
    #[command(visible_alias = "lint")]
    Validate(validate::Validate),
    /// Write, test, measure, review and ship policies of your own.
    Policy(policy::Policy),
    /// Say what a code means, why, and what to do; without a code, list all.
    Explain(explain::Explain),
    /// Say which version this is, and which one runs in the cluster.
    Version(version::Version),
    /// Print what lets a shell, or kubectl, complete our commands.
    Completion(completion::Completion),
    /// Write the manual pages.
    #[command(hide = true)]
    Man(man::Man),
}

impl Command {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        match self {
            Self::Validate(command) => command.run(global, ui),
            Self::Policy(command) => command.run(global, ui),
            Self::Explain(command) => command.run(ui),
            Self::Version(command) => command.run(global, ui),
            Self::Completion(command) => command.run(ui),
            Self::Man(command) => command.run(ui),
        }
    }
}
