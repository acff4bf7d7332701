//! The flags of policies: where their modules come from, and what an evaluation may take.

use std::path::PathBuf;
use std::time::Duration;

use opensdn_policy_host::Limits;

/// Where policies come from, and what an evaluation may take.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Policies")]
pub struct PolicyArgs {
    /// Folder below which AdmissionPolicies may name modules (`module.folder.path`). Without it
    /// they cannot.
    #[arg(long, env = "OPENSDN_WEBHOOK_POLICY_FOLDER", value_name = "FOLDER")]
    pub policy_folder: Option<PathBuf>,

    /// Folder for compiled policies, which no other user may write to; makes a restart fast.
    #[arg(long, env = "OPENSDN_WEBHOOK_CACHE_FOLDER", value_name = "FOLDER")]
    pub cache_folder: Option<PathBuf>,

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
