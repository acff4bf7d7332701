//! The binary; everything is in the library.

use std::process::ExitCode;

use clap::Parser;
use opensdn_webhook::Args;

fn main() -> ExitCode {
    opensdn_webhook::run_to_the_end(Args::parse())
}
