//! `upgrade`: other images for the services of a Manager. The operator carries an upgrade out; these commands show what it
//! would do, ask for it, and show how far it is. What is shown is in `crate::upgrade`.

use clap::{Args, Subcommand};
use kube::ResourceExt as _;
use opensdn_crds::upgrade::Upgrade as Object;

use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::install::target::Target;
use crate::ui::Ui;
use crate::upgrade::next_command::NextCommand;
use crate::upgrade::requests::Requests;
use crate::upgrade::stage::{self, Want};

mod apply;
mod edit;
mod history;
mod plan;
mod rollback;
mod status;
pub(super) mod target;

use edit::Wish;

const EXAMPLES: &str = "\
Examples:
  # What would an upgrade do, and what speaks against it?
  kubectl opensdn upgrade plan R25.1 -n tf

  # Do what was looked at
  kubectl opensdn upgrade apply R25.1 -n tf --plan 7f3c9a1b2d

  # How far is it?
  kubectl opensdn upgrade status -n tf --watch

  # Back to what ran before
  kubectl opensdn upgrade rollback -n tf";

/// Arguments of `upgrade`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Upgrade {
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show which services would get which images in which order, and what speaks against it; nothing is written.
    Plan(plan::PlanCommand),
    /// Upgrade, or attach to an upgrade that is at work, and show how far it is.
    Apply(Box<apply::ApplyCommand>),
    /// Show how far an upgrade is, or how it went.
    Status(status::StatusCommand),
    /// Have nothing more changed when what is at work has finished.
    #[command(after_long_help = edit::PAUSE)]
    Pause(edit::WishCommand),
    /// Have an upgrade continue that is paused.
    #[command(after_long_help = edit::RESUME)]
    Resume(edit::WishCommand),
    /// Have an upgrade that has stopped try again.
    #[command(after_long_help = edit::RETRY)]
    Retry(edit::WishCommand),
    /// Have a step left out, with the reason.
    Skip(edit::SkipCommand),
    /// Have services get their earlier images, as far as there is a way back.
    Rollback(rollback::RollbackCommand),
    /// List all upgrades of a namespace.
    History(history::HistoryCommand),
}

impl Upgrade {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        match &self.command {
            What::Plan(command) => command.run(global, ui),
            What::Apply(command) => command.run(global, ui),
            What::Status(command) => command.run(global, ui),
            What::Pause(command) => command.run(Wish::Pause, global, ui),
            What::Resume(command) => command.run(Wish::Resume, global, ui),
            What::Retry(command) => command.run(Wish::Retry, global, ui),
            What::Skip(command) => command.run(global, ui),
            What::Rollback(command) => command.run(global, ui),
            What::History(command) => command.run(global, ui),
        }
    }

    /// Whether this very command line waits, and so has a `--timeout` of its own.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.command, What::Apply(_) | What::Status(_))
    }
}

/// The names of Upgrades, for completion.
const NAMES: &str = "/apis/opensdn.io/v1alpha1/upgrades";

/// The Upgrade that is meant, where only one is.
#[derive(Debug, Args)]
struct OneUpgrade {
    /// The Upgrade [default: the one that is at work, else the newest].
    #[arg(value_name = "NAME", add = crate::completion::objects::completer(NAMES))]
    name: Option<String>,
    #[command(flatten)]
    cluster: AsksCluster,
}

/// A namespace of a cluster.
struct Place {
    requests: Requests,
    target: Target,
    next: NextCommand,
}

impl Place {
    /// That of the flags, else of the context.
    async fn of(global: &Global) -> Result<Self, Failure> {
        let (client, server) = global.client_and_server().await?;
        let given = global.cluster.namespace.clone();
        let namespace = given.clone().unwrap_or_else(|| client.default_namespace().to_owned());
        Ok(Self {
            requests: Requests::new(client, namespace),
            target: Target { context: global.cluster.context_in_use(), server },
            next: NextCommand::new(given),
        })
    }

    /// The Upgrade that is meant.
    async fn upgrade(&self, name: Option<&str>, want: Want) -> Result<Object, Failure> {
        let all = self.requests.upgrades().await?;
        stage::chosen(all, name, want, &self.requests.namespace)
    }

    /// The same, read again.
    async fn again(&self, upgrade: &Object) -> Result<Object, Failure> {
        let name = upgrade.name_any();
        self.upgrade(Some(&name), Want::Changed).await
    }
}
