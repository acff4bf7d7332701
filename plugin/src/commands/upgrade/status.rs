//! `upgrade status`: how far an upgrade is, or how it went.

use std::time::Duration;

use clap::Args;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use opensdn_crds::upgrade::{Phase, Upgrade};
use opensdn_upgrade::next::is_on_its_way_back;

use super::{NAMES, Place};
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::completion::objects::completer;
use crate::exit::{Exit, Failure};
use crate::install::waiting::Deadline;
use crate::output::Output;
use crate::runtime::Runtime;
use crate::signals::Signals;
use crate::ui::Ui;
use crate::upgrade::follow::{Follow, Silence, say_unheard};
use crate::upgrade::last_lines;
use crate::upgrade::next_command::NextCommand;
use crate::upgrade::report::UpgradeReport;
use crate::upgrade::stage::{self, Want};

const EXAMPLES: &str = "\
Examples:
  # The newest
  kubectl opensdn upgrade status -n tf

  # Until it is over, also while others watch it
  kubectl opensdn upgrade status to-r25-1 -n tf --watch

  # The report, for who has to keep it
  kubectl opensdn upgrade status to-r25-1 -n tf -o json > report.json

Exit codes: 0 it is at work, or has succeeded; 1 it went back, has stopped or was refused; 2
there is no such upgrade; 3 the cluster cannot be asked; 4 not over within --timeout; 130 or 143
detached, it continues.";

/// Arguments of `upgrade status`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct StatusCommand {
    /// The Upgrade [default: the newest of the namespace].
    #[arg(value_name = "NAME", add = completer(NAMES))]
    name: Option<String>,
    /// Show what happens on standard error until it is over, and then the report.
    #[arg(short, long)]
    watch: bool,
    /// How long to watch [default: without a limit].
    #[arg(long, value_name = "TIME", value_parser = opensdn_duration::parse, requires = "watch")]
    timeout: Option<Duration>,
    #[command(flatten)]
    _cluster: AsksCluster,
    #[command(flatten)]
    _output: Output,
}

impl StatusCommand {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        Runtime::start(global)?.block_on(Box::pin(self.status(global, ui)))
    }

    async fn status(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let place = Place::of(global).await?;
        let upgrade = place.upgrade(self.name.as_deref(), Want::Shown).await?;
        if self.watch {
            let mut signals = catch_signals()?;
            return watch(&place, upgrade, self.timeout, &mut signals, ui).await;
        }
        answer(&upgrade, &place.next, ui)?;
        if stage::phase(&upgrade) == Some(Phase::Stopped) {
            last_lines::show(&place.requests, &upgrade, ui).await;
        }
        if let Some(since) = Silence::by_clock(&upgrade, Timestamp::now()) {
            say_unheard(&upgrade, since, ui);
        }
        Ok(stage::exit(&upgrade))
    }
}

/// From here on signals end the watch, and not the program.
pub(super) fn catch_signals() -> Result<Signals, Failure> {
    Signals::install().map_err(|error| {
        let message = "signals cannot be caught, and a watch would end without a word";
        let hint = "look without --watch, apply with --no-wait";
        Failure::new(Exit::Unreachable, "no-signals", message, hint).because(&error)
    })
}

/// Watches it until it is over, and answers with the report.
pub(super) async fn watch(
    place: &Place,
    upgrade: Upgrade,
    timeout: Option<Duration>,
    signals: &mut Signals,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    let deadline = timeout.map(Deadline::after);
    let follow = Follow { requests: &place.requests, deadline, next: &place.next };
    let upgrade = follow.run(upgrade, signals, ui).await?;
    answer(&upgrade, &place.next, ui)?;
    Ok(stage::exit(&upgrade))
}

/// The report, and what to do next.
pub(super) fn answer(upgrade: &Upgrade, next: &NextCommand, ui: &mut Ui) -> Result<(), Failure> {
    let (report, layout) = (UpgradeReport::of(upgrade), ui.layout());
    ui.answer(&report, |out| report.write(Timestamp::now(), layout, out))?;
    let name = upgrade.name_any();
    let watch = next.of(&["status", &name, "--watch"]);
    match stage::phase(upgrade) {
        // What to do then is said when the operator has seen it.
        Some(_) if !stage::is_seen(upgrade) => {
            ui.hint(&format!(
                "the operator has not seen yet what was asked for last; to watch it: {watch}"
            ));
        }
        Some(Phase::Paused) => ui.hint(&format!("to continue: {}", next.of(&["resume", &name]))),
        Some(Phase::Stopped) => {
            let retry = next.of(&["retry", &name]);
            let back = match is_on_its_way_back(&stage::status(upgrade)) {
                true => String::new(),
                false => format!("; or back: {}", next.of(&["rollback", &name, "--plan"])),
            };
            ui.hint(&format!("when the cause is gone: {retry}{back}"));
        }
        Some(Phase::Refused) => {
            let deletion = stage::deletion(upgrade);
            let is_outdated =
                stage::status(upgrade).message.is_some_and(|said| said.starts_with("OSDN5010"));
            if is_outdated {
                ui.hint(&format!("to ask for it again: {deletion}; then plan and apply again"));
                return Ok(());
            }
            ui.hint(&format!("it begins by itself when nothing refuses it any more; to have it not begin: {deletion}"));
        }
        Some(Phase::Succeeded | Phase::RolledBack) => {}
        None | Some(Phase::Pending | Phase::Running | Phase::RollingBack) => {
            ui.hint(&format!("to watch it: {watch}"));
        }
    }
    Ok(())
}
