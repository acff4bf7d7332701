//! `config`: your own defaults of flags. What the file means is in `config.rs` beside `commands`.

use std::ffi::OsStr;

use clap::{Args, Subcommand};
use clap_complete::engine::CompletionCandidate;

use crate::cli::Global;
use crate::config::Location;
use crate::config::keys::KEYS;
use crate::exit::{Exit, Failure};
use crate::ui::Ui;

pub(crate) mod path;
pub(crate) mod set;
pub(crate) mod view;

const EXAMPLES: &str = "\
Examples:
  # What holds, and why?
  kubectl opensdn config view --origin

  # Never colours; and a longer timeout where the cluster of the context prod is asked
  kubectl opensdn config set color never
  kubectl opensdn config set request-timeout 2m --context prod

  # The file, to edit it
  $EDITOR \"$(kubectl opensdn config path)\"

The file:
  defaults:
    color: never
    validate.fail-on: warning
  contexts:
    prod:
      request-timeout: 2m

A flag wins over its variable (KUBECTL_OPENSDN_VALIDATE_FAIL_ON), that over the file. What is
for a context holds where a command asks its cluster. To take a value back, delete its line.";

/// Arguments of `config`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Config {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Show the value of every key, and with --origin where it comes from.
    View(view::View),
    /// Give a key a value, in general or for one context.
    Set(set::Set),
    /// Print where the file is, or would be.
    Path(path::Path),
}

impl Config {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        match &self.verb {
            Verb::View(command) => command.run(global, ui),
            Verb::Set(command) => command.run(global, ui),
            Verb::Path(command) => command.run(global, ui),
        }
    }
}

fn location(global: &Global) -> Result<Location, Failure> {
    Location::of(global).ok_or_else(|| {
        let message = "there is no place for a configuration: HOME and XDG_CONFIG_HOME are not set";
        Failure::new(Exit::Usage, "no-config", message, "name the file: --config FILE")
    })
}

/// Completes the keys.
fn keys(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let names = KEYS.iter().map(|key| key.name);
    names.filter(|name| name.starts_with(current.as_ref())).map(CompletionCandidate::new).collect()
}
