//! `nested plan`: what would be written into the cloud for a nested cluster, and what speaks against it.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use opensdn_config_api::ConfigApi;
use opensdn_nested::{Input, plan};
use opensdn_validate::report::printable;

use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::nested::cluster::NestedFacts;
use crate::nested::connection::ConfigApiFlags;
use crate::nested::flags::SpecFlags;
use crate::nested::plan_file::NestedPlan;
use crate::nested::surroundings::SurroundingsFlags;
use crate::nested::waited::waited;
use crate::nested::{discover, text, world};
use crate::output::Output;
use crate::runtime::Runtime;
use crate::snapshot::ask::Asker;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # By a file
  kubectl opensdn nested plan -f nested-cluster.yaml

  # With link-local services alone; read first who reaches them then
  kubectl opensdn nested plan -f nested-cluster.yaml --connectivity link-local

  # With the nodes of the cloud's services as the Config API knows them
  kubectl opensdn nested plan -f nested-cluster.yaml --discover

  # For review, and to be carried out only if the cloud is still the same
  kubectl opensdn nested plan -f nested-cluster.yaml --out plan.json
  kubectl opensdn nested apply -f nested-cluster.yaml --plan plan.json

The kubeconfig is that of the nested cluster; from it come the nodes and the uid by which its
record in the cloud is known. Nothing is written.

Login: by OpenStack's variables OS_AUTH_URL, OS_USERNAME, OS_PASSWORD, OS_PROJECT_NAME,
OS_USER_DOMAIN_NAME and OS_PROJECT_DOMAIN_NAME, as an openrc file sets them. Without OS_AUTH_URL
no token is sent, as is right where the Config API runs with aaa_mode no-auth.

Exit codes: 0 it can be applied, 1 it cannot, as the errors say, 2 the arguments or the file,
3 the cluster or the Config API cannot be asked.";

/// Arguments of `nested plan`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct PlanCommand {
    #[command(flatten)]
    sources: Sources,
    /// Write the plan to a file as well, for nested apply --plan.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    #[command(flatten)]
    _output: Output,
}

/// From what a plan is made.
#[derive(Debug, Args)]
pub(super) struct Sources {
    #[command(flatten)]
    pub(super) spec: SpecFlags,
    /// Take the nodes of config, analytics and the config database that are not named as the Config API knows them.
    #[arg(long, help_heading = "Nested cluster")]
    discover: bool,
    #[command(flatten)]
    surroundings: SurroundingsFlags,
    #[command(flatten)]
    pub(super) config_api: ConfigApiFlags,
    #[command(flatten)]
    pub(super) cluster: AsksCluster,
}

/// A plan, and what it was made of.
pub(super) struct Made {
    /// The client by which it can be carried out.
    api: ConfigApi,
    /// What the cluster wants.
    pub(super) input: Input,
    /// The plan.
    pub(super) plan: NestedPlan,
}

impl Sources {
    /// Makes the plan, with the client by which it can be carried out.
    pub(super) async fn plan(
        &self,
        global: &Global,
        ui: &mut Ui,
    ) -> Result<(ConfigApi, NestedPlan), Failure> {
        let made = self.made(global, ui).await?;
        Ok((made.api, made.plan))
    }

    /// The same, with what it was made of.
    pub(super) async fn made(&self, global: &Global, ui: &mut Ui) -> Result<Made, Failure> {
        let mut spec = match self.discover {
            true => self.spec.spec_to_discover()?,
            false => self.spec.spec()?,
        };
        // As it was given: what is found there says nothing of where the Config API is.
        let addresses = self.config_api.addresses(&spec);
        if addresses.is_empty() {
            let message = "--discover asks the Config API, and it is not known where that is";
            return Err(Failure::usage(message, "--config-api http://192.168.1.100:8082"));
        }
        let api = self.config_api.client(&spec, self.spec.said_by())?;
        let (client, server) = global.client_and_server().await?;
        ui.progress(&format!("asking {server}"));
        let asker = Asker::new(client);
        let facts = NestedFacts::ask(&asker, &server).await?;
        // Before a token is sent: the file may say where to.
        ui.progress(&format!("asking the Config API at {}", addresses.join(", ")));
        if self.discover {
            let filled = discover::fill(&api, &mut spec);
            let found = waited(ui, "waiting for the Config API", filled).await?;
            for flag in found {
                ui.note(&printable(&format!("discovered: {flag}")));
            }
        }
        let mut input = world::input(&spec, self.spec.choices(), facts);
        let namespace = global.cluster.namespace.as_deref();
        self.surroundings.look(&mut input, &asker, namespace, &addresses).await;
        let live = waited(ui, "waiting for the Config API", world::cloud(&api, &input)).await?;
        let plan = plan(&input, &live);
        Ok(Made { api, input, plan: NestedPlan { config_api: addresses, plan } })
    }
}

impl PlanCommand {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let (_, answer) = Runtime::start(global)?.block_on(self.sources.plan(global, ui))?;
        if let Some(path) = &self.out {
            answer.write(path)?;
        }
        let layout = ui.layout();
        ui.answer(&answer, |out| text::write(&answer.plan, layout, out))?;
        if answer.plan.is_applicable() {
            return Ok(Exit::Done);
        }
        ui.hint("nothing can be applied until the errors are gone");
        Ok(Exit::Findings)
    }
}
