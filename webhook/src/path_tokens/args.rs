//! The flags of the path tokens.

use std::path::PathBuf;
use std::time::Duration;

use opensdn_deploy::names::webhook::PATH_SECRET;

/// By what callers are known.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Callers")]
pub struct PathTokenArgs {
    /// Secret in which the replicas keep the tokens of their paths (/validate/TOKEN, /mutate/TOKEN).
    #[arg(
        long,
        env = "OPENSDN_WEBHOOK_PATH_SECRET",
        value_name = "NAME",
        default_value = PATH_SECRET
    )]
    pub path_secret: String,

    /// File with the tokens instead, one a line, the first of which webhook configurations are given:
    /// for one who writes the configurations himself. Read again whenever it changes.
    #[arg(
        long,
        env = "OPENSDN_WEBHOOK_PATH_TOKENS",
        value_name = "FILE",
        conflicts_with = "path_secret"
    )]
    pub path_tokens: Option<PathBuf>,

    /// How often the tokens of the Secret are replaced, in minutes. An API server shows the path to its
    /// users when a call fails; and up to Kubernetes 1.35 it keeps some memory for each path that it has
    /// called, until it ends.
    #[arg(
        long,
        env = "OPENSDN_WEBHOOK_PATH_ROTATION_MINUTES",
        value_name = "MINUTES",
        default_value_t = 60 * 24,
        value_parser = clap::value_parser!(u64).range(1..=60 * 24 * 365)
    )]
    pub path_rotation_minutes: u64,
}

impl PathTokenArgs {
    /// How often the tokens of the Secret are replaced.
    #[must_use]
    pub fn rotation(&self) -> Duration {
        Duration::from_secs(self.path_rotation_minutes * 60)
    }
}
