//! `opensdn-link-local-agent --config-api ADDRESS:PORT`: everything is in the library.

use std::process::ExitCode;

use clap::Parser;
use opensdn_stand_in::link_local::{Arguments, run};

fn main() -> ExitCode {
    run(&Arguments::parse())
}
