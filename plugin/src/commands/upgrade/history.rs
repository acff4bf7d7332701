//! `upgrade history`: all upgrades of a namespace.

use clap::Args;
use k8s_openapi::jiff::Timestamp;

use super::Place;
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::exit::{Exit, Failure};
use crate::output::ObjectsOutput;
use crate::runtime::Runtime;
use crate::ui::Ui;
use crate::upgrade::history::UpgradeHistory;

const EXAMPLES: &str = "\
Examples:
  # What was upgraded when, by whom, and how did it end?
  kubectl opensdn upgrade history -n tf

An upgrade is in it as long as its object is: kubectl get upgrades.opensdn.io -n tf

Exit codes: 0 listed, also where there is none, 3 the cluster cannot be asked.";

/// Arguments of `upgrade history`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct HistoryCommand {
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    output: ObjectsOutput,
}

impl HistoryCommand {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let answer = Runtime::start(global)?.block_on(Box::pin(async {
            let place = Place::of(global).await?;
            let all = place.requests.upgrades().await?;
            Ok::<_, Failure>(UpgradeHistory::of(&place.requests.namespace, all))
        }))?;
        let layout = ui.layout();
        ui.answer_objects(self.output.output, &answer, answer.names(), |out| {
            answer.write(Timestamp::now(), layout, out)
        })?;
        Ok(Exit::Done)
    }
}
