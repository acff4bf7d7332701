//! The admission webhook that enforces OpenSDN policies: its parts, and how they start and stop
//! together.

pub mod active;
pub mod admission;
mod allocator;
pub mod args;
pub mod audit;
pub mod certificates;
pub mod claims;
pub mod configuration;
pub mod evaluate;
pub mod lookup;
mod memory;
pub mod metrics;
pub mod path_tokens;
pub mod policies;
mod poll_file;
mod replicas;
pub mod server;
pub mod startup;
pub mod tls;
pub mod wiring;

use std::process::ExitCode;

use clap::Parser as _;
use opensdn_runtime::{error_chain, log};

pub use args::{Args, Run};
use policies::engines::Engines;

/// Why the webhook could not start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(transparent)]
    Startup(#[from] startup::Error),
    #[error(transparent)]
    Engines(#[from] policies::engines::Error),
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Startup(error) => error.hint(),
            Self::Engines(_) => None,
        }
    }
}

/// What the binary does: it is the webhook or, asked by the webhook, its compiler.
pub fn main() -> ExitCode {
    match opensdn_module_process::compile_request(std::env::args_os()) {
        Some(request) => opensdn_module_process::run(&request),
        None => run_to_completion(Args::parse()),
    }
}

/// The whole webhook: starts the log and [`run`]s to the end. Not in the binary, because what the
/// runtime drives would be compiled there again (2 MB).
#[tokio::main]
async fn run_to_completion(args: Args) -> ExitCode {
    log::start(&args.log);
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = error_chain(&error), hint = error.hint(), "failed to start");
            ExitCode::FAILURE
        }
    }
}

/// Starts what this process is to do, does it until a signal says to stop, and finishes what is in flight.
///
/// # Errors
/// Something that is needed from the start is missing: a port, a file, a way to the API server.
pub async fn run(args: Args) -> Result<(), Error> {
    let mut engines = Engines::start(&args.policies, args.evaluations())?;
    match std::env::current_exe() {
        Ok(program) => engines = engines.compiled_by(program),
        Err(error) => tracing::warn!(
            %error,
            "failed to find the program of the compiler; modules from outside are refused"
        ),
    }
    let client = opensdn_runtime::client::client().await.map_err(startup::Error::from)?;
    match args.run {
        Run::All | Run::Reviews => {
            startup::run(args, client, async |context| wiring::start(context, engines)).await?;
        }
        Run::Configuration => {
            let start = |context| wiring::start_configuration_only(context, engines);
            startup::configuration_only::run(args, client, start).await?;
        }
    }
    Ok(())
}
