//! The command line: what every command has, and which commands there are.

use anstream::ColorChoice;
use clap::{Args, Parser, ValueEnum};

use crate::commands::Command;

/// OpenSDN on Kubernetes: check manifests before they reach a cluster, write your own policies.
#[derive(Debug, Parser)]
#[command(name = "kubectl opensdn", bin_name = "kubectl opensdn", version, max_term_width = 100)]
pub struct Cli {
    /// What every command has.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command has.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// How the answer is written.
    #[arg(short, long, global = true, value_enum, default_value_t)]
    pub output: Format,
    /// Whether to use colours.
    #[arg(long, global = true, value_enum, default_value_t)]
    pub color: Color,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// Whether to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// Where somebody sees them: on a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    pub(crate) fn choice(self) -> Option<ColorChoice> {
        match self {
            Self::Auto => None,
            Self::Always => Some(ColorChoice::Always),
            Self::Never => Some(ColorChoice::Never),
        }
    }
}
