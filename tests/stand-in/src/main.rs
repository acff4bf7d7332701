//! `opensdn-stand-in COMPONENT --config FILE…`: everything is in the library.

use std::process::ExitCode;

use clap::Parser;
use opensdn_stand_in::{Arguments, run};

fn main() -> ExitCode {
    run(&Arguments::parse())
}
