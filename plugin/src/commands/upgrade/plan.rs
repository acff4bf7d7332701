//! `upgrade plan`: what would be done, and what speaks against it.

use clap::{Args, ValueEnum};
use kube::ResourceExt as _;
use opensdn_crds::upgrade::Upgrade;

use super::Place;
use super::target::TargetFlags;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::runtime::Runtime;
use crate::snapshot::name;
use crate::ui::Ui;
use crate::upgrade::attach::comes_first;
use crate::upgrade::next_command::NextCommand;
use crate::upgrade::plan::UpgradePlan;
use crate::upgrade::world::World;

const EXAMPLES: &str = "\
Examples:
  # To a release
  kubectl opensdn upgrade plan R25.1 -n tf

  # One image only
  kubectl opensdn upgrade plan --image redis/redis=registry.example.com/redis:7.2 -n tf

  # Each pod that is replaced, and for what
  kubectl opensdn upgrade plan R25.1 -n tf -o wide

  # Is there anything to do, and may it begin?
  kubectl opensdn upgrade plan R25.1 -n tf -o json | jq '.upToDate, .mayBegin'

Without -n the namespace is that of the context. It reads the Manager, the objects of its
services and their pods, and writes nothing. Codes: kubectl opensdn explain OSDN5008

Exit codes: 0 it may begin, or all services have these images already; 1 something refuses it;
2 the arguments, or there is no such Manager; 3 the cluster cannot be asked.";

/// Arguments of `upgrade plan`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct PlanCommand {
    #[command(flatten)]
    target: TargetFlags,
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

/// How a plan is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Human,
    /// The same with each pod that is replaced, and for what.
    Wide,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

impl PlanCommand {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let answer = Runtime::start(global)?.block_on(Box::pin(self.plan(global, ui)))?;
        let layout = ui.layout();
        ui.answer(&answer, |out| answer.write(self.output == Format::Wide, layout, out))?;
        advise(&answer, ui);
        Ok(if answer.may_begin { Exit::Done } else { Exit::Findings })
    }

    async fn plan(&self, global: &Global, ui: &mut Ui) -> Result<UpgradePlan, Failure> {
        let place = Place::of(global).await?;
        ui.progress(&format!("asking {}", place.target.server));
        let manager = place.requests.manager(self.target.manager.as_deref()).await?;
        match place.requests.upgrades().await {
            Ok(all) => warn_of_the_first(&all, name(&manager), ui),
            Err(failure) => {
                let why = failure.causes.first().unwrap_or(&failure.message);
                ui.warn(&format!("whether another upgrade comes first is not known: {why}"));
            }
        }
        let world = place.requests.world(manager).await?;
        Ok(planned(&world, &self.target, &[], &place.requests.namespace, &place.next))
    }
}

/// The plan of what these flags want, and the command that carries it out, with `more` words.
pub(super) fn planned(
    world: &World,
    target: &TargetFlags,
    more: &[String],
    namespace: &str,
    next: &NextCommand,
) -> UpgradePlan {
    let spec = target.spec(name(&world.manager));
    let plan = world.plan(&spec);
    let command = |hash: &str| {
        let words = [target.words(), more.to_vec(), vec!["--plan".to_owned(), hash.to_owned()]];
        let words = words.concat();
        let words: Vec<&str> =
            std::iter::once("apply").chain(words.iter().map(String::as_str)).collect();
        next.of(&words)
    };
    UpgradePlan::of(plan, &spec, &world.services, namespace, command)
}

/// Says which other Upgrade of the Manager is at work, or waits.
pub(super) fn warn_of_the_first(all: &[Upgrade], manager: &str, ui: &mut Ui) {
    let Some(first) = comes_first(all, manager) else { return };
    let first = first.name_any();
    ui.warn(&format!("the Upgrade {first} of the same Manager comes first"));
    ui.hint(&format!(
        "where {first} changes what this one was planned from, it does not begin (OSDN5010): plan again when that is over"
    ));
}

/// What to do next.
pub(super) fn advise(plan: &UpgradePlan, ui: &mut Ui) {
    if plan.up_to_date {
        return;
    }
    if plan.may_begin {
        ui.hint(&format!("apply with: {}", plan.next));
    } else {
        ui.hint("nothing begins until what refuses it is gone; what is behind a code: kubectl opensdn explain CODE");
    }
}
