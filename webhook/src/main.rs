//! The binary; everything is in the library.

use std::process::ExitCode;

use clap::Parser;
use opensdn_webhook::{Args, process};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    process::log(&args);
    match opensdn_webhook::run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = opensdn_webhook::chain(&error), "failed to start");
            ExitCode::FAILURE
        }
    }
}
