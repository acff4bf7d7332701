//! The admission webhook that enforces OpenSDN policies: its parts, and how they start and stop
//! together.

pub mod admission;
mod allocator;
pub mod args;
pub mod audit;
pub mod background;
pub mod certificates;
pub mod claims;
pub mod cluster;
pub mod configuration;
pub mod metrics;
mod policies;
pub mod process;
pub mod related;
mod replicas;
pub mod reviewing;
pub mod server;
pub mod serving;
pub mod tls;

use std::process::ExitCode;

use clap::Parser as _;
use opensdn_runtime::{error_chain, log};

pub use args::Args;

/// Why the webhook could not start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(transparent)]
    Process(#[from] process::Error),
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
}

/// What the binary does: it is the webhook or, asked by the webhook, its compiler.
pub fn main() -> ExitCode {
    match policies::compiler::asked(std::env::args_os()) {
        Some(folder) => policies::compiler::run(&folder),
        None => run_to_the_end(Args::parse()),
    }
}

/// The whole webhook: begins to log and [`run`]s to the end. Not in the binary, because what the
/// runtime drives would be compiled there once more (2 MB).
#[tokio::main]
async fn run_to_the_end(args: Args) -> ExitCode {
    log::start(&args.log);
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = error_chain(&error), "failed to start");
            ExitCode::FAILURE
        }
    }
}

/// Starts everything, serves until a signal says to stop, and finishes what is in flight.
///
/// # Errors
/// Something that is needed from the start is missing: a port, a file, a way to the API server.
pub async fn run(args: Args) -> Result<(), Error> {
    let mut engines = cluster::Engines::start(&args.cluster)?;
    match std::env::current_exe() {
        Ok(program) => engines = engines.compiled_by(program),
        Err(error) => tracing::warn!(%error, "policies are compiled in this process"),
    }
    let client = process::client().await?;
    process::run(args, client, async |parts| reviewing::start(parts, engines)).await?;
    Ok(())
}
