//! `nested`: a cluster on virtual machines of a cloud whose network OpenSDN makes. What a plan is, is opensdn-nested's.

use clap::{Args, Subcommand};

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::ui::Ui;

pub(crate) mod apply;
pub(crate) mod hosts;
mod import;
pub(crate) mod insecure_registry;
mod manifest;
mod plan;
pub(crate) mod registry_secret;
pub(crate) mod remove;
mod verify;
mod workloads_flags;
mod writing;

const EXAMPLES: &str = "\
Examples:
  # What would be written into the cloud, and what speaks against it?
  kubectl opensdn nested plan -f nested-cluster.yaml

  # The same by flags, without a file
  kubectl opensdn nested plan --cluster-name k8s-a --cluster-network admin:vms \\
    --config-nodes 192.168.1.100 --service-addresses 10.10.10.0/24

  # What runs in the nested cluster itself
  kubectl opensdn nested manifest --plan plan.json --api-server 10.0.0.10 --tag R25.1 \\
    --registry registry.example.com/opensdn --keystone-secret keystone > workloads.yaml

  # Write the one, and start the other
  kubectl opensdn nested apply -f nested-cluster.yaml --workloads workloads.yaml

  # Does it work?
  kubectl opensdn nested verify -f nested-cluster.yaml";

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
    /// Write into the cloud what a nested cluster needs there, and start what runs in the cluster.
    Apply(apply::ApplyCommand),
    /// Print a common.env of the old scripts as a NestedCluster, with the commands that follow from it.
    Import(import::ImportCommand),
    /// Print the objects that run in a nested cluster: kube-manager and the CNI agent.
    Manifest(Box<manifest::ManifestCommand>),
    /// Look whether a nested cluster works: its cloud, services from its nodes, and pods that reach each other.
    Verify(Box<verify::VerifyCommand>),
    /// Make the Secret by which pods pull from the registry of the images, or look whether they can pull by it.
    RegistrySecret(Box<registry_secret::RegistrySecretCommand>),
    /// Print what the runtimes of the nodes need for a registry without TLS, or with an unknown certificate.
    InsecureRegistry(insecure_registry::InsecureRegistryCommand),
    /// Print the lines of /etc/hosts for the nodes, or put them into a file.
    Hosts(hosts::HostsCommand),
    /// Stop what runs in a nested cluster, and take away from the cloud what was written for it.
    Remove(remove::RemoveCommand),
}

impl Nested {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        match &self.command {
            What::Plan(command) => command.run(global, ui),
            What::Apply(command) => command.run(global, ui),
            What::Import(command) => command.run(ui),
            What::Manifest(command) => command.run(ui),
            What::Verify(command) => command.run(global, ui),
            What::RegistrySecret(command) => command.run(global, ui),
            What::InsecureRegistry(command) => command.run(global, ui),
            What::Hosts(command) => command.run(global, ui),
            What::Remove(command) => command.run(global, ui),
        }
    }

    /// Whether it has a `--timeout` of its own.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.command, What::Apply(_) | What::Remove(_))
    }

    /// Whether this very command line asks a cluster.
    pub(crate) fn asks_cluster(&self) -> bool {
        match &self.command {
            What::Import(_) | What::Manifest(_) => false,
            What::RegistrySecret(command) => command.asks_cluster(),
            _ => true,
        }
    }
}
