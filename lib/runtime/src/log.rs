//! The log, which goes to stderr, and its flags.

use std::io;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// What is logged, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct LogArgs {
    /// Format of the log, which goes to stderr.
    #[arg(long, env = "OPENSDN_LOG_FORMAT", value_enum, default_value = "json")]
    pub log_format: LogFormat,

    /// What is logged: a level, or levels by module (`info,opensdn_runtime::leader=debug`).
    #[arg(
        long,
        env = "OPENSDN_LOG",
        default_value = "info,kube=warn",
        value_parser = filter
    )]
    pub log: String,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Starts the log. Once per process: later calls change nothing.
pub fn start(args: &LogArgs) {
    // An unreadable filter was refused with the other arguments.
    let filter = EnvFilter::try_new(&args.log).unwrap_or_default();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // An error means that the log has been started already.
    let _ = match args.log_format {
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
        LogFormat::Text => builder.try_init(),
    };
}

/// A filter is parsed here only to be refused early; it cannot be kept, as it cannot be cloned.
fn filter(text: &str) -> Result<String, String> {
    EnvFilter::try_new(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}
