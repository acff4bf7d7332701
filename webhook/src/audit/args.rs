//! The flags of the audit.

use std::time::Duration;

use super::Timing;

/// When what is stored is audited.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Audit")]
pub struct AuditArgs {
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

impl AuditArgs {
    /// When an audit runs.
    #[must_use]
    pub fn timing(&self) -> Timing {
        Timing {
            first: Duration::from_secs(self.audit_delay),
            interval: Duration::from_secs(self.audit_interval),
        }
    }
}
