//! `nested`: a cluster on virtual machines of a cloud whose network OpenSDN makes. What a plan is, is opensdn-nested's.

use clap::{Args, Subcommand};

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::ui::Ui;

pub(crate) mod apply;
mod manifest;
mod plan;
pub(crate) mod remove;
mod writing;

const EXAMPLES: &str = "\
Examples:
  # What would be written into the cloud, and what speaks against it?
  kubectl opensdn nested plan -f nested-cluster.yaml

  # The same by flags, without a file
  kubectl opensdn nested plan --cluster-name k8s-a --cluster-network admin:vms \\
    --config-nodes 192.168.1.100 --service-addresses 10.10.10.0/24

  # Write it
  kubectl opensdn nested apply -f nested-cluster.yaml

  # What runs in the nested cluster itself
  kubectl opensdn nested manifest --plan plan.json --api-server 10.0.0.10 --tag R25.1 \\
    --keystone-secret keystone | kubectl apply --server-side -f -";

/// Arguments of `nested`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Nested {
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show what a nested cluster needs of its cloud, and what speaks against it; nothing is written.
    Plan(plan::PlanCommand),
    /// Write into the cloud what a nested cluster needs there.
    Apply(apply::ApplyCommand),
    /// Print the objects that run in a nested cluster: kube-manager and the CNI agent.
    Manifest(Box<manifest::ManifestCommand>),
    /// Take away from the cloud what was written for a nested cluster.
    Remove(remove::RemoveCommand),
}

impl Nested {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        match &self.command {
            What::Plan(command) => command.run(global, ui),
            What::Apply(command) => command.run(global, ui),
            What::Manifest(command) => command.run(ui),
            What::Remove(command) => command.run(global, ui),
        }
    }

    /// Whether this very command line asks a cluster.
    pub(crate) fn asks_cluster(&self) -> bool {
        !matches!(self.command, What::Manifest(_))
    }
}
