//! The commands, one file each.

use clap::Subcommand;

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::ui::Ui;

pub(crate) mod audit;
pub(crate) mod certs;
pub(crate) mod check;
pub(crate) mod completion;
pub(crate) mod config;
pub(crate) mod connectivity;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod images;
pub(crate) mod install;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod nested;
pub(crate) mod policy;
pub(crate) mod prune;
pub(crate) mod render;
pub(crate) mod status;
pub(crate) mod support_bundle;
pub(crate) mod uninstall;
pub(crate) mod upgrade;
pub(crate) mod validate;
pub(crate) mod version;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Install OpenSDN in a cluster, or change what is installed.
    Install(install::Install),
    /// Print the objects that install would apply.
    Render(render::Render),
    /// Show what install, or an apply of manifests, would change.
    Diff(diff::Diff),
    /// Remove OpenSDN from a cluster; its CRDs and data are kept unless --purge is given.
    Uninstall(uninstall::Uninstall),
    /// Delete what an earlier install has left and the present one does not have.
    Prune(prune::Prune),
    /// Give the services of a Manager other images, wave by wave, with a way back.
    Upgrade(Box<upgrade::Upgrade>),
    /// List, save, load and copy the images that an installation needs.
    Images(images::Images),
    /// Plan and write what a cluster on virtual machines needs of the OpenSDN below it.
    Nested(Box<nested::Nested>),
    /// Check manifests as a cluster would: schema, rules, policies, and duplicates between files.
    #[command(visible_alias = "lint")]
    Validate(validate::Validate),
    /// Convert manifests of contrail-operator and of release 2011 to those of OpenSDN.
    Convert(convert::Convert),
    /// Check whether OpenSDN can be installed in a cluster, and works there.
    #[command(visible_alias = "doctor")]
    Check(check::CheckCommand),
    /// Try whether pods in a cluster have a network.
    Connectivity(connectivity::Connectivity),
    /// Show how OpenSDN is in a cluster, the cause of what is wrong first.
    Status(status::Status),
    /// Show what the pods of a component have written, as one log.
    Logs(logs::Logs),
    /// Show the certificates of OpenSDN in a cluster, and have them renewed.
    Certs(certs::Certs),
    /// Collect what a person who helps needs of a cluster, in one archive without secrets.
    SupportBundle(support_bundle::SupportBundleCommand),
    /// Show what the policies say of what a cluster has stored, or what one would say if enforced.
    Audit(audit::Audit),
    /// Write, test, measure, review and ship policies of your own.
    Policy(Box<policy::Policy>),
    /// Say what a code means or a field of our kinds is, and what to do; without either, list all codes.
    Explain(explain::Explain),
    /// Show and change your own defaults of flags, in general and for a context.
    Config(config::Config),
    /// Say which version this is, and which one runs in the cluster.
    Version(version::VersionCommand),
    /// Print what lets a shell, or kubectl, complete our commands.
    Completion(completion::Completion),
    /// Write the manual pages.
    #[command(hide = true)]
    Man(man::Man),
}

impl Command {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        match self {
            Self::Install(command) => command.run(global, ui),
            Self::Render(command) => command.run(ui),
            Self::Diff(command) => command.run(global, ui),
            Self::Uninstall(command) => command.run(global, ui),
            Self::Prune(command) => command.run(global, ui),
            Self::Upgrade(command) => command.run(global, ui),
            Self::Images(command) => command.run(global, ui),
            Self::Nested(command) => command.run(global, ui),
            Self::Validate(command) => command.run(global, ui),
            Self::Convert(command) => command.run(ui),
            Self::Check(command) => command.run(global, ui),
            Self::Connectivity(command) => command.run(global, ui),
            Self::Status(command) => command.run(global, ui),
            Self::Logs(command) => command.run(global, ui),
            Self::Certs(command) => command.run(global, ui),
            Self::SupportBundle(command) => command.run(global, ui),
            Self::Audit(command) => command.run(global, ui),
            Self::Policy(command) => command.run(global, ui),
            Self::Explain(command) => command.run(ui),
            Self::Config(command) => command.run(global, ui),
            Self::Version(command) => command.run(global, ui),
            Self::Completion(command) => command.run(ui),
            Self::Man(command) => command.run(ui),
        }
    }

    /// Whether this very command line asks a cluster, and so uses a context of the kubeconfig.
    pub(crate) fn asks_cluster(&self) -> bool {
        match self {
            Self::Validate(command) => command.asks_cluster(),
            Self::Audit(_)
            | Self::Certs(_)
            | Self::Connectivity(_)
            | Self::Logs(_)
            | Self::Status(_)
            | Self::SupportBundle(_) => true,
            Self::Check(command) => command.asks_cluster(),
            Self::Policy(command) => command.asks_cluster(),
            Self::Version(command) => command.asks_cluster(),
            Self::Explain(_) | Self::Config(_) | Self::Completion(_) | Self::Man(_) => false,
            Self::Render(_) | Self::Images(_) | Self::Convert(_) => false,
            Self::Install(command) => command.asks_cluster(),
            Self::Nested(command) => command.asks_cluster(),
            Self::Diff(_) | Self::Uninstall(_) | Self::Prune(_) | Self::Upgrade(_) => true,
        }
    }

    /// Whether it waits for something to happen, and so has a `--timeout` of its own.
    pub(crate) fn waits(&self) -> bool {
        match self {
            Self::Install(_) | Self::Uninstall(_) | Self::Prune(_) => true,
            Self::Upgrade(command) => command.waits(),
            Self::Nested(command) => command.waits(),
            _ => false,
        }
    }

    /// Whether it shows what is in all namespaces, so that kubectl's -A asks for what is done anyway.
    pub(crate) fn is_about_all_namespaces(&self) -> bool {
        matches!(
            self,
            Self::Audit(_)
                | Self::Certs(_)
                | Self::Check(_)
                | Self::Connectivity(_)
                | Self::Logs(_)
                | Self::Status(_)
                | Self::SupportBundle(_)
        )
    }

    /// Whether it reads the configuration as its own subject.
    pub(crate) fn is_about_configuration(&self) -> bool {
        matches!(self, Self::Config(_))
    }
}
