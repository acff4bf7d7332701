//! `man`: the manual pages, for packagers.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::exit::{Exit, Failure};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # Read the manual of a command
  kubectl opensdn man --out /tmp/man && man /tmp/man/kubectl-opensdn-explain.1";

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// The folder to write to; it is made if it is not there.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: PathBuf,
}

impl Man {
    pub(crate) fn run(&self, ui: &mut Ui) -> Result<Exit, Failure> {
        let mut command = crate::parse::command()
            .name("kubectl-opensdn")
            .bin_name("kubectl opensdn")
            .disable_help_subcommand(true);
        command.build();
        std::fs::create_dir_all(&self.out).and_then(|()| self.write(&command)).map_err(
            |error| {
                let message = format!("no pages can be written to {}", self.out.display());
                let hint = "name a folder that you may write to";
                Failure::new(Exit::Usage, "unwritable-output", message, hint).because(&error)
            },
        )?;
        ui.note(&format!("wrote the manual pages to {}", self.out.display()));
        Ok(Exit::Done)
    }

    fn write(&self, command: &clap::Command) -> std::io::Result<()> {
        for within in command.get_subcommands().filter(|within| !within.is_hide_set()) {
            self.write(within)?;
        }
        let source = concat!("kubectl-opensdn ", env!("CARGO_PKG_VERSION"));
        clap_mangen::Man::new(command.clone())
            .source(source)
            .manual("OpenSDN on Kubernetes")
            .generate_to(&self.out)
            .map(drop)
    }
}
