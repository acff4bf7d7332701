//! The kubectl plugin. A command is one file in `commands`: its arguments, and a `run` that writes
//! the answer to [`Ui`] and returns an [`Exit`] or a [`Failure`]. What several commands need is
//! beside them, each in a module named after what it holds.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

mod cli;
mod commands;
mod exit;
mod ui;

pub use cli::Cli;
pub use exit::{Exit, Failure};
pub use ui::Ui;

/// Runs one command line and says how the process ends.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing is left to do where even this cannot be printed.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    let mut ui = Ui::new(&cli.global);
    match cli.command.run(&cli.global, &mut ui) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            ui.failure(&failure);
            failure.exit.into()
        }
    }
}
