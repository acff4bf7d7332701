//! The flags of policies: where their modules come from, and what an evaluation may take.

use std::path::PathBuf;
use std::time::Duration;

use opensdn_module_process::DEFAULT_MEBIBYTES;
use opensdn_policy_host::Limits;

/// Where policies come from, and what an evaluation may take.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Policies")]
pub struct PolicyArgs {
    /// Folder below which AdmissionPolicies may name modules (`module.folder.path`). Without it
    /// they cannot.
    #[arg(long, env = "OPENSDN_WEBHOOK_POLICY_FOLDER", value_name = "FOLDER")]
    pub policy_folder: Option<PathBuf>,

    /// Folder for compiled policies, which no other user may write to. With it, modules are compiled
    /// by a process of their own, with a limit of memory, and a restart is fast. Without it, modules from
    /// ConfigMaps and folders are refused.
    #[arg(long, env = "OPENSDN_WEBHOOK_CACHE_FOLDER", value_name = "FOLDER")]
    pub cache_folder: Option<PathBuf>,

    /// Mebibytes of compiled policies in that folder; beyond, those that have not been used for
    /// longest are removed, but none that is active.
    #[arg(long, env = "OPENSDN_WEBHOOK_CACHE_MEBIBYTES", default_value_t = 96,
        value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub cache_mebibytes: u64,

    /// Mebibytes of memory that the process that compiles a module may take; a module that needs
    /// more is refused.
    #[arg(long, env = "OPENSDN_WEBHOOK_COMPILER_MEBIBYTES", default_value_t = DEFAULT_MEBIBYTES,
        value_parser = clap::value_parser!(u64).range(32..=65_536))]
    pub compiler_mebibytes: u64,

    /// Milliseconds that one evaluation of a policy may take, unless its AdmissionPolicy says
    /// otherwise.
    #[arg(long, env = "OPENSDN_WEBHOOK_POLICY_MILLISECONDS", default_value_t = 50,
        value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub policy_milliseconds: u64,

    /// Mebibytes of memory that one evaluation may take, unless its AdmissionPolicy says
    /// otherwise.
    #[arg(long, env = "OPENSDN_WEBHOOK_POLICY_MEBIBYTES", default_value_t = 16,
        value_parser = clap::value_parser!(u64).range(1..=256))]
    pub policy_mebibytes: u64,
}

impl PolicyArgs {
    /// What one evaluation may take, unless its AdmissionPolicy says otherwise.
    pub(crate) fn limits(&self) -> Limits {
        let memory = usize::try_from(self.policy_mebibytes << 20);
        let default = Limits::default();
        Limits {
            time: Duration::from_millis(self.policy_milliseconds),
            memory: memory.unwrap_or(default.memory),
            ..default
        }
    }
}
