//! `upgrade rollback`: which services get their earlier images and which waves stay is shown, confirmed, and asked for.

use clap::Args;
use kube::ResourceExt as _;

use super::edit::{DryRunFlag, write};
use super::{OneUpgrade, Place};
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::install::requests::Apply;
use crate::output::Output;
use crate::runtime::Runtime;
use crate::ui::Ui;
use crate::upgrade::edit::Edit;
use crate::upgrade::stage::{self, Want};
use crate::upgrade::way_back::{UpgradeRollBack, refuse_behind, roll_back};

const EXAMPLES: &str = "\
Examples:
  # What would go back, and what stays?
  kubectl opensdn upgrade rollback -n tf --plan

  # Back to what ran before
  kubectl opensdn upgrade rollback -n tf

It goes back from any place, also after all services have the new images, but not behind a wave
without a way back: what that wave has written into its databases earlier images may not read.

Exit codes: 0 asked for, or it has gone back already; 2 there is no such upgrade; 3 the cluster
cannot be asked; 5 not confirmed, there is no way back, or a newer upgrade has to go back first.";

/// Arguments of `upgrade rollback`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct RollbackCommand {
    #[command(flatten)]
    one: OneUpgrade,
    /// Only show what would go back and what stays.
    #[arg(long)]
    plan: bool,
    #[command(flatten)]
    dry_run: DryRunFlag,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    _output: Output,
}

impl RollbackCommand {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let apply = self.dry_run.apply()?;
        Runtime::start(global)?.block_on(Box::pin(self.roll_back(global, apply, ui)))
    }

    async fn roll_back(&self, global: &Global, apply: Apply, ui: &mut Ui) -> Result<Exit, Failure> {
        let place = Place::of(global).await?;
        let all = place.requests.upgrades().await?;
        let (name, namespace) = (self.one.name.as_deref(), &place.requests.namespace);
        let upgrade = stage::chosen(all.clone(), name, Want::Changed, namespace)?;
        let edit = roll_back(&upgrade)?;
        if let Edit::Write(..) = &edit {
            refuse_behind(&upgrade, &all, &place.next)?;
        }
        let shown = match &edit {
            Edit::Write(..) => UpgradeRollBack::of(&upgrade),
            Edit::Already(_) => UpgradeRollBack::without_change(&upgrade),
        };
        ui.note(&format!("{}, Upgrade {}", place.target.described(), shown.upgrade));
        shown.lines().iter().for_each(|line| ui.note(line));
        let watch = place.next.of(&["status", &upgrade.name_any(), "--watch"]);
        if self.plan || matches!(edit, Edit::Already(_)) {
            return answer(shown, edit, Done::Nothing, &watch, ui);
        }
        if !self.yes && apply == Apply::Store {
            ui.confirm(&format!("roll {} back", shown.upgrade))?;
        }
        let decide = |upgrade: &opensdn_crds::upgrade::Upgrade| {
            let edit = roll_back(upgrade)?;
            match UpgradeRollBack::of(upgrade).stays == shown.stays {
                true => Ok(edit),
                false => Err(outdated()),
            }
        };
        let upgrade = place.again(&upgrade).await?;
        let (_, edit) = write(&place, upgrade, &decide, apply).await?;
        let done = if apply == Apply::Store { Done::Written } else { Done::Nothing };
        answer(shown, edit, done, &watch, ui)
    }
}

/// Whether it was only shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Written,
    Nothing,
}

fn outdated() -> Failure {
    let message = "nothing was asked for: other waves would stay now than those that were shown";
    Failure::new(
        Exit::Refused,
        "outdated-plan",
        message,
        "look again: the same command with --plan",
    )
}

fn answer(
    shown: UpgradeRollBack,
    edit: Edit,
    done: Done,
    watch: &str,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    let (is_wanted, message) = match edit {
        Edit::Write(_, message) => (true, message),
        Edit::Already(message) => (false, message),
    };
    let is_written = is_wanted && done == Done::Written;
    let dry_run = is_wanted && done == Done::Nothing;
    let answer = UpgradeRollBack { dry_run, changed: is_written, message, ..shown };
    ui.answer(&answer, |out| answer.write(out))?;
    if is_written {
        ui.hint(&format!("to watch it: {watch}"));
    }
    Ok(Exit::Done)
}
