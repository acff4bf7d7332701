//! `prune`: what the inventory names and the present installation does not have. Namespaces and CRDs stay: they have data.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::install::{ControlNamespace, DryRun};
use super::uninstall::{KeptObject, Uninstallation, reason};
use crate::cli::Global;
use crate::clients::{AsksCluster, unanswered};
use crate::exit::{Exit, Failure};
use crate::install::deleting::Deleting;
use crate::install::inventory::{Inventory, installation};
use crate::install::network_loss::NetworkLoss;
use crate::install::object::{ObjectKey, is_member};
use crate::install::removal::Kept;
use crate::install::requests::{Apply, Requests};
use crate::install::survey::{inventory, rendered};
use crate::install::target::Target;
use crate::install::waiting::Deadline;
use crate::output::ObjectsOutput;
use crate::runtime::Runtime;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # List what is left of earlier values or versions, and delete it after a yes
  kubectl opensdn prune

  # Only list it
  kubectl opensdn prune --dry-run=server";

/// Arguments of `prune`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Prune {
    /// How long to wait until it is gone.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = opensdn_duration::parse)]
    timeout: Duration,
    /// Only list it.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    dry_run: DryRun,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    place: ControlNamespace,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    output: ObjectsOutput,
}

impl Prune {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        ControlNamespace::check(global)?;
        if self.dry_run == DryRun::Client {
            let message = "--dry-run=client: what is left is known by the cluster alone";
            return Err(Failure::usage(message, "use --dry-run=server"));
        }
        Runtime::start(global)?.block_on(self.prune(global, ui))
    }

    async fn prune(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let (target, requests) = Target::of(global).await?;
        let namespace = &self.place.control_namespace;
        let Some(inventory) = inventory(&requests, namespace).await? else {
            let message = format!("there is no inventory of OpenSDN in the namespace {namespace}");
            return Err(Failure::new(
                Exit::Usage,
                "not-installed",
                message,
                "kubectl opensdn install makes one",
            ));
        };
        let (obsolete, wanted) = obsolete(&requests, &inventory).await?;
        let is_kept = |stored: &&Value| {
            ["Namespace", "CustomResourceDefinition"].contains(&ObjectKey::of(stored).kind.as_str())
        };
        let (kept, removed): (Vec<&Value>, Vec<&Value>) = obsolete.iter().partition(is_kept);
        let removed: Vec<Value> = removed.into_iter().cloned().collect();
        let answer = Uninstallation {
            server: target.server.clone(),
            namespace: namespace.clone(),
            dry_run: self.dry_run != DryRun::None,
            removed: removed.iter().map(ObjectKey::of).collect(),
            kept: kept
                .into_iter()
                .map(|stored| KeptObject { key: ObjectKey::of(stored), reason: reason(Kept::Data) })
                .collect(),
            kept_custom_resources: 0,
            network_loss: Some(NetworkLoss::default()),
        };
        if !removed.is_empty() {
            ui.note(&format!("{}, namespace {namespace}", target.described()));
            answer.removed.iter().for_each(|key| ui.note(&format!("  removes  {key}")));
        }
        if !answer.dry_run && !removed.is_empty() {
            if !self.yes {
                ui.confirm(&format!("delete these from {}", target.name()))?;
            }
            let deadline = Deadline::after(self.timeout);
            let work = Deleting { requests: &requests, deadline, namespace };
            work.delete(&removed, ui).await?;
            work.gone("what is not part of it any more", &removed, ui).await?;
        }
        if !answer.dry_run {
            forget(&requests, inventory, &wanted, &answer).await?;
        }
        let names = answer.removed.iter().map(ObjectKey::kubectl_name);
        ui.answer_objects(self.output.output, &answer, names, |out| answer.write(out))?;
        Ok(Exit::Done)
    }
}

/// What is stored, has our label, and is not part of it any more; and what is part of it.
async fn obsolete(
    requests: &Requests,
    inventory: &Inventory,
) -> Result<(Vec<Value>, BTreeSet<ObjectKey>), Failure> {
    let installation = installation(&inventory.namespace);
    let objects = rendered(&inventory.values, &installation)?;
    let wanted: BTreeSet<ObjectKey> =
        objects.iter().map(|(_, object)| ObjectKey::of(object)).collect();
    let mut found = Vec::new();
    for entry in inventory.obsolete(&wanted) {
        let stored = requests.get(&entry.key).await?;
        found.extend(stored.filter(|stored| is_member(stored, &installation)));
    }
    Ok((found, wanted))
}

/// What is gone is not named any more; what stays is.
async fn forget(
    requests: &Requests,
    mut inventory: Inventory,
    wanted: &BTreeSet<ObjectKey>,
    answer: &Uninstallation,
) -> Result<(), Failure> {
    let before = inventory.entries.len();
    inventory.entries.retain(|entry| {
        wanted.contains(&entry.key) || answer.kept.iter().any(|kept| kept.key == entry.key)
    });
    if inventory.entries.len() == before {
        return Ok(());
    }
    let applied = requests.apply(&inventory.object(), true, Apply::Store).await;
    applied.map(drop).map_err(|error| unanswered("write the inventory", &error))
}
