//! The command line: what every command accepts. Deliberately not here: which commands there are
//! (`commands.rs`), how a cluster is reached with the flags (`clients.rs`), `-o`, which differs from
//! command to command (`output.rs`).

use std::path::PathBuf;

use anstream::ColorChoice;
use clap::builder::FalseyValueParser;
use clap::{Args, Parser, ValueEnum};
use opensdn_policy_host::{Cache, CacheError};

use crate::clients::ClusterFlags;
use crate::commands::Command;
use crate::config::keys::Key;
use crate::exit::Failure;

/// OpenSDN on Kubernetes: install it, check manifests before they reach a cluster, write your own
/// policies.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl opensdn",
    bin_name = "kubectl opensdn",
    version,
    max_term_width = 100,
    subcommand_required = true,
    after_long_help = EXAMPLES
)]
pub struct Cli {
    /// What every command has.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  # Into the cluster of the current context
  kubectl opensdn install

  # What would the cluster refuse, and why?
  kubectl opensdn validate deploy/

  # What does a code mean?
  kubectl opensdn explain OSDN1202

  # A policy of your own, from nothing
  kubectl opensdn policy new no-owner --kinds example.io/v1/Widget

Exit codes:
  0  done, or nothing found
  1  findings, a difference, or a failed case
  2  the command line or an input file cannot be understood
  3  something could not be asked: no cluster, no rights, no registry
  4  waiting took too long
  5  refused by a safety rule, or you said no

Environment:
  KUBECTL_OPENSDN_COLOR, KUBECTL_OPENSDN_PROGRESS, KUBECTL_OPENSDN_NO_HINTS,
  KUBECTL_OPENSDN_CACHE_DIR and KUBECTL_OPENSDN_CONFIG set the flags of these names,
  KUBECTL_OPENSDN_VALIDATE_FAIL_ON and its like for those of one command; a flag wins.
  OPENSDN_NAMESPACE is the namespace of the control plane.

Your own defaults of flags: kubectl opensdn config --help";

/// What every command has.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global flags")]
pub struct Global {
    /// Whether to use colours: auto asks the terminal, NO_COLOR, CLICOLOR_FORCE and TERM.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        env = "KUBECTL_OPENSDN_COLOR",
        hide_env = true
    )]
    pub color: Color,
    /// How progress is shown on standard error.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "HOW",
        env = "KUBECTL_OPENSDN_PROGRESS",
        hide_env = true
    )]
    pub progress: Progress,
    /// Say more on standard error: -v what is done, -vv every request.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Say nothing on standard error but why something failed.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Leave out advice on what to do next.
    #[arg(long, global = true, env = "KUBECTL_OPENSDN_NO_HINTS", hide_env = true, value_parser = FalseyValueParser::new())]
    pub no_hints: bool,
    /// Where compiled policies are kept [default: $XDG_CACHE_HOME/opensdn or ~/.cache/opensdn].
    #[arg(long, global = true, value_name = "DIR", value_hint = clap::ValueHint::DirPath, env = "KUBECTL_OPENSDN_CACHE_DIR", hide_env = true)]
    pub cache_dir: Option<PathBuf>,
    /// The file with your defaults of flags [default: kubectl-opensdn/config.yaml in
    /// $XDG_CONFIG_HOME or ~/.config].
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath, env = "KUBECTL_OPENSDN_CONFIG", hide_env = true)]
    pub config: Option<PathBuf>,
    /// The flags that were given and have a key in the configuration.
    #[arg(skip)]
    pub(crate) given: Vec<(&'static Key, String)>,
    /// Of kubectl; refused with the reason.
    #[arg(short = 'A', long, global = true, hide = true)]
    all_namespaces: bool,
    /// Of kubectl; refused with the reason by commands that wait for nothing, which have none of their own.
    #[arg(long, global = true, hide = true, value_name = "TIME", value_parser = opensdn_duration::parse)]
    timeout: Option<std::time::Duration>,
    /// How a cluster is reached.
    #[command(flatten)]
    pub cluster: ClusterFlags,
}

impl Global {
    /// Refuses flags that kubectl's users know and that could not do here what they do there.
    pub(crate) fn check(&self, command: &Command) -> Result<(), Failure> {
        let refuse = |what: &str, hint: &str| Err(Failure::usage(what, hint));
        if self.all_namespaces && command.is_about_all_namespaces() {
            if self.cluster.namespace.is_some() {
                return refuse(
                    "--all-namespaces and --namespace contradict each other",
                    "leave one of them out",
                );
            }
        } else if self.all_namespaces {
            return refuse(
                "--all-namespaces has no effect: this command lists no objects of a namespace",
                "leave it out: documents name their namespaces, and --live looks things up in all",
            );
        }
        if self.timeout.is_some() && !command.waits() {
            return refuse(
                "--timeout has no effect: this command waits for nothing to happen",
                "to bound each request to the cluster: --request-timeout",
            );
        }
        Ok(())
    }

    /// Where compiled policies are kept: below `--cache-dir`, else where all of this user's programs
    /// keep theirs. Nowhere where there is no home.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub(crate) fn cache(&self) -> Result<Option<Cache>, CacheError> {
        match &self.cache_dir {
            Some(folder) => Cache::below(folder).map(Some),
            None => Cache::of_user(),
        }
    }
}

/// Whether to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    pub(crate) fn choice(self) -> ColorChoice {
        match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        }
    }
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Progress {
    /// One line that changes on a terminal, else lines.
    #[default]
    Auto,
    /// One line that changes.
    Tty,
    /// A line for each step.
    Plain,
    /// A JSON object a line, for programs.
    Json,
    /// Not at all.
    None,
}
