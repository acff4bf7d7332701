//! The flags of an election, by the names that client-go's components have for them. They are for API servers that
//! are slow at times: a leader that cannot renew its Lease in time stops acting as one.

use std::time::Duration;

use super::Timing;

/// When the Lease is renewed and lost.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Leader election")]
pub struct ElectionArgs {
    /// How long a replica that does not renew the Lease any more is waited for, before another one takes it.
    #[arg(
        long,
        env = "OPENSDN_LEADER_ELECT_LEASE_DURATION",
        value_name = "TIME",
        default_value = "15s",
        value_parser = opensdn_duration::parse
    )]
    pub leader_elect_lease_duration: Duration,

    /// How long the leader tries to renew the Lease before it stops acting as one; less than the lease duration.
    #[arg(
        long,
        env = "OPENSDN_LEADER_ELECT_RENEW_DEADLINE",
        value_name = "TIME",
        default_value = "10s",
        value_parser = opensdn_duration::parse
    )]
    pub leader_elect_renew_deadline: Duration,

    /// How long is waited between two tries to take or to renew the Lease; less than half of the renew deadline.
    #[arg(
        long,
        env = "OPENSDN_LEADER_ELECT_RETRY_PERIOD",
        value_name = "TIME",
        default_value = "2s",
        value_parser = opensdn_duration::parse
    )]
    pub leader_elect_retry_period: Duration,
}

/// Durations by which two replicas could act at once, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TimingError {
    #[error(
        "--leader-elect-renew-deadline ({} ms) must be less than --leader-elect-lease-duration ({} ms)",
        deadline.as_millis(), lease.as_millis()
    )]
    Deadline { deadline: Duration, lease: Duration },
    #[error(
        "--leader-elect-retry-period ({} ms) must be less than half of --leader-elect-renew-deadline ({} ms), and not 0",
        retry.as_millis(), deadline.as_millis()
    )]
    Retry { retry: Duration, deadline: Duration },
    #[error("--leader-elect-lease-duration ({} ms) must be whole seconds: a Lease has no smaller unit", lease.as_millis())]
    Lease { lease: Duration },
}

impl ElectionArgs {
    /// The durations of the election.
    ///
    /// # Errors
    /// By these a Lease would be lost while its holder still acts, or could not be renewed at all.
    pub fn timing(&self) -> Result<Timing, TimingError> {
        let (lease, deadline, retry) = (
            self.leader_elect_lease_duration,
            self.leader_elect_renew_deadline,
            self.leader_elect_retry_period,
        );
        if lease.is_zero() || lease.subsec_nanos() != 0 {
            return Err(TimingError::Lease { lease });
        }
        if deadline >= lease {
            return Err(TimingError::Deadline { deadline, lease });
        }
        if retry.is_zero() || retry >= deadline / 2 {
            return Err(TimingError::Retry { retry, deadline });
        }
        Ok(Timing {
            lease_duration: lease,
            renew_deadline: deadline,
            // So that one renewal may fail.
            renew_period: deadline / 2,
            retry_period: retry,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        election: ElectionArgs,
    }

    fn timing(flags: &[&str]) -> Result<Timing, TimingError> {
        let flags = flags.iter().map(|flag| format!("--leader-elect-{flag}"));
        let flags = std::iter::once("program".to_owned()).chain(flags);
        Program::try_parse_from(flags).unwrap().election.timing()
    }

    #[test]
    fn without_flags_the_durations_are_those_of_every_election() {
        assert_eq!(timing(&[]), Ok(Timing::default()));
    }

    #[test]
    fn a_slow_api_server_gets_more_time() {
        let timing = timing(&["lease-duration=1m", "renew-deadline=40s"]).unwrap();
        assert_eq!(timing.lease_duration, Duration::from_secs(60));
        assert_eq!(timing.renew_deadline, Duration::from_secs(40));
        assert_eq!(timing.renew_period, Duration::from_secs(20));
    }

    #[test]
    fn durations_by_which_two_could_act_at_once_are_refused() {
        for flags in [
            &["lease-duration=10s"][..],
            &["renew-deadline=15s"],
            &["renew-deadline=4s"],
            &["retry-period=5s"],
            &["retry-period=0"],
            &["lease-duration=20500ms"],
            &["lease-duration=0", "renew-deadline=0"],
        ] {
            let error = timing(flags).unwrap_err().to_string();
            assert!(error.contains("--leader-elect-"), "{flags:?}: {error}");
        }
    }
}
