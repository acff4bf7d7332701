//! The command line: every flag can also be given by the environment variable that `--help`
//! names. Nothing is started here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use opensdn_pki::LeafProfile;
use opensdn_runtime::admin::AdminArgs;
use opensdn_runtime::log::LogArgs;
use opensdn_runtime::serve::ConnectionLimits;

use crate::audit::args::AuditArgs;
use crate::certificates::leaf_profile;
use crate::claims::args::ClaimArgs;
use crate::configuration::args::ConfigurationArgs;
use crate::lookup::LookupArgs;
use crate::memory::Share;
use crate::path_tokens::args::PathTokenArgs;
use crate::policies::args::PolicyArgs;
use crate::server::Limits;
use crate::tls::{MinVersion, Settings, files::Files};

/// What of the webhook a process does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Run {
    /// All of it.
    #[default]
    All,
    /// Answers reviews, and what belongs to that; writes no webhook configuration.
    Reviews,
    /// Writes the webhook configurations; answers no reviews.
    Configuration,
}

/// Validates and mutates OpenSDN resources at admission.
///
/// It serves reviews by HTTPS on one port, and liveness, readiness and metrics by plain HTTP on a
/// second one. On SIGTERM it becomes unready, serves on for the drain delay, finishes what is in
/// flight and ends with code 0.
#[derive(Clone, Debug, Parser)]
#[command(name = "opensdn-webhook", version)]
pub struct Args {
    /// What of the webhook this process does. Apart, the process that parses what is sent to it needs no
    /// right to say what is sent.
    #[arg(long, env = "OPENSDN_WEBHOOK_RUN", value_name = "PART", value_enum, default_value_t)]
    pub run: Run,

    /// Address of the HTTPS port (/validate/TOKEN, /mutate/TOKEN).
    #[arg(long, env = "OPENSDN_WEBHOOK_LISTEN", default_value = "[::]:8443")]
    pub listen: SocketAddr,

    /// Where the admin port is.
    #[command(flatten)]
    pub admin: AdminArgs,

    /// Namespace of this process: of its Service, its Leases and its CA's Secret.
    #[arg(long, env = "POD_NAMESPACE", default_value = "opensdn-system")]
    pub namespace: String,

    /// Name of this replica, different from the others'.
    #[arg(long, env = "POD_NAME", default_value_t = default_replica())]
    pub replica: String,

    /// Where the certificate comes from, and who may connect.
    #[command(flatten)]
    pub certificate: CertificateArgs,

    /// By what callers are known.
    #[command(flatten)]
    pub callers: PathTokenArgs,

    /// Where policies come from, and what an evaluation may take.
    #[command(flatten)]
    pub policies: PolicyArgs,

    /// How lookups are answered.
    #[command(flatten)]
    pub lookup: LookupArgs,

    /// What the webhook configurations say.
    #[command(flatten)]
    pub configuration: ConfigurationArgs,

    /// How long claims are kept.
    #[command(flatten)]
    pub claims: ClaimArgs,

    /// When what is stored is audited.
    #[command(flatten)]
    pub audit: AuditArgs,

    /// How much is served at once, and how long is waited.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// What is logged, and how.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Where the certificate comes from, and who may connect.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Certificates")]
pub struct CertificateArgs {
    /// PEM file with the certificate chain, leaf first. Read again whenever its content changes.
    /// Without it the webhook makes its own CA and certificates.
    #[arg(long, env = "OPENSDN_WEBHOOK_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// PEM file with the key of the chain's first certificate.
    #[arg(long, env = "OPENSDN_WEBHOOK_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Secret in which the webhook keeps the CA that it made for itself.
    #[arg(
        long,
        env = "OPENSDN_WEBHOOK_CA_SECRET",
        value_name = "NAME",
        default_value = "opensdn-webhook-ca",
        conflicts_with = "tls_cert"
    )]
    pub ca_secret: String,

    /// Service by which the API server reaches the webhook; a name in certificates that the
    /// webhook makes for itself.
    #[arg(
        long,
        env = "OPENSDN_WEBHOOK_SERVICE",
        value_name = "NAME",
        default_value = "opensdn-webhook"
    )]
    pub service: String,

    /// Further DNS name or IP address for certificates that the webhook makes for itself; may be
    /// given several times.
    #[arg(
        long,
        env = "OPENSDN_WEBHOOK_TLS_NAMES",
        value_name = "NAME",
        value_delimiter = ',',
        conflicts_with = "tls_cert"
    )]
    pub tls_name: Vec<String>,

    /// Oldest version of TLS that is spoken.
    #[arg(long, env = "OPENSDN_WEBHOOK_TLS_MIN_VERSION", value_enum, default_value = "1.3")]
    pub tls_min_version: MinVersion,

    /// PEM file with a CA: callers need a certificate of it. Read again whenever it changes.
    #[arg(long, env = "OPENSDN_WEBHOOK_CLIENT_CA", value_name = "FILE", requires = "client_name")]
    pub client_ca: Option<PathBuf>,

    /// Name that a caller's certificate must bear, as common name or DNS name; may be given
    /// several times. A CA alone says little: a cluster's CA signs far more than the API server.
    #[arg(
        long,
        env = "OPENSDN_WEBHOOK_CLIENT_NAME",
        value_name = "NAME",
        value_delimiter = ',',
        requires = "client_ca"
    )]
    pub client_name: Vec<String>,
}

impl Args {
    /// How many evaluations there may be at once.
    #[must_use]
    pub fn evaluations(&self) -> u32 {
        if self.run == Run::Configuration {
            // It asks modules what they are about, and nothing else.
            return 1;
        }
        let share = self.limits.share().evaluations(self.policies.policy_mebibytes);
        let share = u32::try_from(share).unwrap_or(u32::MAX);
        self.limits.evaluations.unwrap_or(share)
    }
}

impl CertificateArgs {
    /// The files, if the certificate comes from files.
    #[must_use]
    pub fn files(&self) -> Option<Files> {
        let (chain, key) = self.tls_cert.clone().zip(self.tls_key.clone())?;
        Some(Files { chain, key })
    }

    /// What TLS is set up by.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let (min_version, client_names) = (self.tls_min_version, self.client_name.clone());
        Settings { min_version, client_names }
    }

    /// What a certificate that the webhook makes for itself is like.
    #[must_use]
    pub fn leaf_profile(&self, namespace: &str) -> LeafProfile {
        leaf_profile(&self.service, namespace, &self.tls_name)
    }
}

/// How much is served at once, and how long is waited.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Memory that the webhook may take, in MiB. What follows below without a number gets an eighth of it
    /// each. Default: the limit of its container, if it has one.
    #[arg(long, env = "OPENSDN_WEBHOOK_MEMORY_MIB")]
    pub memory_mib: Option<u64>,

    /// Open connections, of up to 48 KiB each; beyond that the longest idle one is closed. Default: as
    /// many as its share of the memory has room for, at most 10,000.
    #[arg(long, env = "OPENSDN_WEBHOOK_MAX_CONNECTIONS")]
    pub max_connections: Option<usize>,

    /// Reviews under way at once; beyond that a call is answered 429, which the API server
    /// repeats.
    #[arg(long, env = "OPENSDN_WEBHOOK_MAX_REVIEWS", default_value_t = 1_000)]
    pub max_reviews: usize,

    /// Memory for the bodies of all reviews under way, in MiB; beyond that a call is answered 429.
    /// Default: its share of the memory, at most 256.
    #[arg(long, env = "OPENSDN_WEBHOOK_MAX_BODIES_MIB")]
    pub max_bodies_mib: Option<usize>,

    /// Evaluations at once; others wait for one to end. Default: as many as their share of the memory has
    /// room for, at most 64.
    #[arg(long, env = "OPENSDN_WEBHOOK_EVALUATIONS",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub evaluations: Option<u32>,

    /// Seconds for which an unused connection is kept. Keep it above the 90 seconds of the API
    /// server: who closes first may close on a request that is on its way.
    #[arg(long, env = "OPENSDN_WEBHOOK_IDLE_SECONDS", default_value_t = 180)]
    pub idle_seconds: u64,

    /// Seconds to keep serving after SIGTERM: as long as it takes until no request is sent here any
    /// more.
    #[arg(
        long,
        env = "OPENSDN_WEBHOOK_DRAIN_SECONDS",
        default_value = "5",
        value_parser = seconds
    )]
    pub drain_seconds: Duration,

    /// Seconds for what is in flight after that. Both together must be less than the pod's
    /// terminationGracePeriodSeconds.
    #[arg(
        long,
        env = "OPENSDN_WEBHOOK_GRACE_SECONDS",
        default_value = "20",
        value_parser = seconds
    )]
    pub grace_seconds: Duration,
}

impl LimitArgs {
    /// What connections, bodies and evaluations get of the memory each.
    fn share(&self) -> Share {
        let given = self.memory_mib.map(|mib| mib.saturating_mul(1 << 20));
        Share::of(given.or_else(opensdn_runtime::memory::limit))
    }

    /// The server's limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let default = Limits::default();
        let share = self.share();
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let connection = ConnectionLimits {
            connections: self.max_connections.unwrap_or(count(share.connections())),
            idle: Duration::from_secs(self.idle_seconds),
            grace: self.grace_seconds,
            ..default.connection
        };
        Limits {
            connection,
            reviews: self.max_reviews,
            buffered: self
                .max_bodies_mib
                .unwrap_or(count(share.bodies_mib()))
                .saturating_mul(1 << 20),
            ..default
        }
    }
}

/// Reads seconds, also fractions.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// A pod's host name is its name.
fn default_replica() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "opensdn-webhook".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn half_of_a_pair_and_a_log_filter_that_is_none_are_refused() {
        for half in ["--tls-cert", "--tls-key", "--client-ca", "--client-name"] {
            let parsed = Args::try_parse_from(["opensdn-webhook", half, "x"]);
            assert!(parsed.is_err(), "{half}");
        }
        assert!(Args::try_parse_from(["opensdn-webhook", "--log", "a=b=c"]).is_err());
        let pair = ["opensdn-webhook", "--tls-cert", "a", "--tls-key", "b"];
        let files = Args::try_parse_from(pair).unwrap().certificate.files().unwrap();
        assert_eq!((files.chain, files.key), ("a".into(), "b".into()));
    }

    #[test]
    fn what_may_be_held_at_once_fits_the_memory_unless_it_is_said_otherwise() {
        let limits = |flags: &[&str]| {
            let args =
                Args::try_parse_from(["opensdn-webhook", "--memory-mib=512"].iter().chain(flags));
            let args = args.unwrap();
            let limits = args.limits.limits();
            (limits.connection.connections, limits.buffered >> 20, args.evaluations())
        };
        assert_eq!(limits(&[]), (1_365, 64, 4));
        assert_eq!(limits(&["--policy-mebibytes=8"]), (1_365, 64, 8));
        let given = ["--max-connections=7", "--max-bodies-mib=8", "--evaluations=9"];
        assert_eq!(limits(&given), (7, 8, 9));
    }

    #[test]
    fn a_process_does_everything_unless_a_flag_says_what() {
        let run = |flags: &[&str]| {
            let args = ["opensdn-webhook", "--memory-mib=512"].iter().chain(flags);
            let args = Args::try_parse_from(args).unwrap();
            (args.run, args.evaluations())
        };
        assert_eq!(run(&[]), (Run::All, 4));
        assert_eq!(run(&["--run=reviews"]), (Run::Reviews, 4));
        let bundle_alone = ["--run=configuration", "--ca-bundle=f"];
        assert_eq!(run(&bundle_alone), (Run::Configuration, 1));
    }

    #[test]
    fn the_defaults_are_those_of_the_server() {
        let much = ["opensdn-webhook", "--memory-mib=1000000"];
        let args = Args::try_parse_from(much).unwrap();
        assert_eq!(format!("{:?}", args.limits.limits()), format!("{:?}", Limits::default()));
        assert_eq!(args.evaluations(), 64);
        assert!(args.certificate.files().is_none());
        assert_eq!(args.certificate.tls_min_version, MinVersion::Tls13);
    }
}
