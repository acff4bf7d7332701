//! The flags of what goes on in the background, in the replica that holds the Lease: claims that
//! are kept in order, and the audit. What they do is in `claims::keeper` and `audit`.

use std::time::Duration;

use crate::audit::Timing;

/// When the background work does what.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Background")]
pub struct BackgroundArgs {
    /// Seconds for which a claim without a stored holder is kept. Less than the longest request
    /// of the API server (60 s) breaks uniqueness for creates that take that long.
    #[arg(
        long,
        env = "OPENSDN_WEBHOOK_CLAIM_GRACE",
        value_name = "SECONDS",
        default_value_t = crate::claims::GRACE.as_secs(),
        value_parser = clap::value_parser!(u64).range(1..=86400)
    )]
    pub claim_grace: u64,

    /// Seconds from winning the Lease to the first audit of what is stored.
    #[arg(
        long,
        env = "OPENSDN_WEBHOOK_AUDIT_DELAY",
        value_name = "SECONDS",
        default_value_t = Timing::default().first.as_secs()
    )]
    pub audit_delay: u64,

    /// Seconds from the end of one audit to the next.
    #[arg(
        long,
        env = "OPENSDN_WEBHOOK_AUDIT_INTERVAL",
        value_name = "SECONDS",
        default_value_t = Timing::default().interval.as_secs(),
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub audit_interval: u64,
}

impl BackgroundArgs {
    /// How long a claim without a stored holder is kept.
    #[must_use]
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.claim_grace)
    }

    /// When an audit runs.
    #[must_use]
    pub fn timing(&self) -> Timing {
        Timing {
            first: Duration::from_secs(self.audit_delay),
            interval: Duration::from_secs(self.audit_interval),
        }
    }
}
