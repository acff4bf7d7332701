//! The flags of claims.

use std::time::Duration;

/// How long claims are kept.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Claims")]
pub struct ClaimArgs {
    /// Seconds for which a claim without a stored holder is kept. Less than the longest request
    /// of the API server (60 s) breaks uniqueness for creates that take that long.
    #[arg(
        long,
        env = "OPENSDN_WEBHOOK_CLAIM_GRACE",
        value_name = "SECONDS",
        default_value_t = super::GRACE.as_secs(),
        value_parser = clap::value_parser!(u64).range(1..=86400)
    )]
    pub claim_grace: u64,
}

impl ClaimArgs {
    /// How long a claim without a stored holder is kept.
    #[must_use]
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.claim_grace)
    }
}
