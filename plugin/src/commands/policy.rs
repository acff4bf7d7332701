//! `policy`: write, test, measure, review and ship policies of your own.

use clap::{Args, Subcommand};

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::ui::Ui;

pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod manifest;
pub(crate) mod new;
pub(crate) mod run;
pub(crate) mod test;

const EXAMPLES: &str = "\
Examples:
  # A policy of your own, from nothing
  kubectl opensdn policy new no-owner --kinds example.io/v1/Widget
  cd no-owner
  kubectl opensdn policy build
  kubectl opensdn policy test
  kubectl opensdn policy manifest | kubectl apply --server-side -f -";

/// Arguments of `policy`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Policy {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do with a policy.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Begin the project of a policy, which builds and passes its cases at once.
    New(new::New),
    /// Build the policy of a project to a component, and print its digest.
    Build(build::BuildPolicy),
    /// Run a policy's cases against its component.
    Test(test::Test),
    /// Judge one object, and show everything that the policy saw and said.
    Run(run::Run),
    /// Measure a policy: time, fuel and memory, against its limits and an earlier result.
    Bench(bench::Bench),
    /// Show what a module is, knows and can do, before you trust it.
    Inspect(inspect::Inspect),
    /// Say why a policy says what it says, with an example.
    Explain(explain::Explain),
    /// Print the objects that put a policy in force.
    Manifest(manifest::Manifest),
}

impl Policy {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        match &self.verb {
            Verb::New(command) => command.run(ui),
            Verb::Build(command) => command.run(global, ui),
            Verb::Test(command) => command.run(global, ui),
            Verb::Run(command) => command.run(global, ui),
            Verb::Bench(command) => command.run(global, ui),
            Verb::Inspect(command) => command.run(global, ui),
            Verb::Explain(command) => command.run(global, ui),
            Verb::Manifest(command) => command.run(global, ui),
        }
    }

    pub(crate) fn asks_cluster(&self) -> bool {
        matches!(&self.verb, Verb::Run(command) if command.asks_cluster())
    }
}
