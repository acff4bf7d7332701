//! `upgrade pause`, `resume`, `retry` and `skip`: what a user wants of an upgrade is written into its spec, and the operator
//! does it. What each means is in `crate::upgrade::edit`.

use clap::Args;
use kube::ResourceExt as _;
use opensdn_crds::upgrade::Upgrade;

use super::{OneUpgrade, Place};
use crate::cli::Global;
use crate::commands::install::DryRun;
use crate::exit::{Exit, Failure};
use crate::install::requests::Apply;
use crate::output::Output;
use crate::runtime::Runtime;
use crate::ui::{Ui, one_line};
use crate::upgrade::edit::{self, Edit, UpgradeChange};
use crate::upgrade::requests::Patched;
use crate::upgrade::stage::{self, Want};

/// So often it is tried again where others change it at the same time: the operator does so every two seconds.
const TRIES: usize = 10;

/// The examples of a command, and what is the same for all of them.
macro_rules! help {
    ($examples:literal) => {
        concat!(
            $examples,
            "\n\nThe operator sees it within seconds; to watch it: kubectl opensdn upgrade status --watch\n\n\
             Exit codes: 0 done, or it was so already; 2 there is no such upgrade; 3 the cluster cannot be asked;\n\
             5 refused, as the upgrade is not where that can be done."
        )
    };
}

pub(super) const PAUSE: &str = help!(
    "\
Examples:
  # Change nothing more when what is at work has finished
  kubectl opensdn upgrade pause -n tf"
);

pub(super) const RESUME: &str = help!(
    "\
Examples:
  # Continue one that is paused, by you or before a wave
  kubectl opensdn upgrade resume -n tf"
);

pub(super) const RETRY: &str = help!(
    "\
Examples:
  # The cause is gone: try again what has failed
  kubectl opensdn upgrade retry -n tf"
);

const SKIP: &str = help!(
    "\
Examples:
  # Leave a service out that cannot be upgraded now; the reason is in the report
  kubectl opensdn upgrade skip Webui/webui1 --reason 'node m2 is away' -n tf"
);

/// Whether anything is written.
#[derive(Debug, Args)]
pub(super) struct DryRunFlag {
    /// Only have the cluster say whether it would take it.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    dry_run: DryRun,
}

impl DryRunFlag {
    /// As requests have it.
    ///
    /// # Errors
    /// Without a cluster nothing is known.
    pub(super) fn apply(&self) -> Result<Apply, Failure> {
        match self.dry_run {
            DryRun::None => Ok(Apply::Store),
            DryRun::Server => Ok(Apply::DryRun),
            DryRun::Client => {
                let message =
                    "--dry-run=client: what there is to upgrade is known by the cluster alone";
                Err(Failure::usage(message, "use --dry-run=server"))
            }
        }
    }
}

/// Arguments of `upgrade pause`, `resume` and `retry`.
#[derive(Debug, Args)]
pub(super) struct WishCommand {
    #[command(flatten)]
    one: OneUpgrade,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    _output: Output,
}

/// Arguments of `upgrade skip`.
#[derive(Debug, Args)]
#[command(after_long_help = SKIP)]
pub(super) struct SkipCommand {
    /// The step, such as Webui/webui1: its service keeps its earlier images, or gets them again; while all goes back it
    /// keeps those that it has.
    #[arg(value_name = "STEP")]
    step: String,
    /// Why, for the report.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    #[command(flatten)]
    one: OneUpgrade,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    _output: Output,
}

/// What an Upgrade takes.
fn reason(text: &str) -> Result<String, String> {
    const MOST: usize = 256;
    match text.trim() {
        "" => Err("say why, for the report".to_owned()),
        text if text.chars().count() > MOST => Err(format!("at most {MOST} characters")),
        text => Ok(text.to_owned()),
    }
}

impl WishCommand {
    pub(super) fn run(
        &self,
        wish: Wish<'_>,
        global: &Global,
        ui: &mut Ui,
    ) -> Result<Exit, Failure> {
        wish.run(global, self.one.name.as_deref(), &self.dry_run, ui)
    }
}

impl SkipCommand {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let wish = Wish::Skip { step: &self.step, reason: &self.reason };
        wish.run(global, self.one.name.as_deref(), &self.dry_run, ui)
    }
}

/// What a user wants.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wish<'a> {
    /// Nothing more is changed.
    Pause,
    /// It continues.
    Resume,
    /// Another try.
    Retry,
    /// A step is left out.
    Skip { step: &'a str, reason: &'a str },
}

impl Wish<'_> {
    fn run(
        self,
        global: &Global,
        name: Option<&str>,
        dry_run: &DryRunFlag,
        ui: &mut Ui,
    ) -> Result<Exit, Failure> {
        let apply = dry_run.apply()?;
        Runtime::start(global)?.block_on(Box::pin(async {
            let place = Place::of(global).await?;
            let upgrade = place.upgrade(name, Want::Changed).await?;
            let user = match self {
                Self::Skip { .. } => place.requests.user().await,
                _ => None,
            };
            let decide = |upgrade: &Upgrade| self.decide(upgrade, user.as_deref());
            let (upgrade, edit) = write(&place, upgrade, &decide, apply).await?;
            answer(&place, &upgrade, edit, apply, ui)
        }))
    }

    /// What is to be done with an Upgrade as it is.
    fn decide(self, upgrade: &Upgrade, user: Option<&str>) -> Result<Edit, Failure> {
        match self {
            Self::Pause => edit::pause(upgrade),
            Self::Resume => edit::resume(upgrade),
            Self::Retry => edit::retry(upgrade),
            Self::Skip { step, reason } => edit::skip(upgrade, step, reason, user),
        }
    }
}

/// Writes what is decided. What another one has changed meanwhile is read, and decided again.
pub(super) async fn write(
    place: &Place,
    first: Upgrade,
    decide: &dyn Fn(&Upgrade) -> Result<Edit, Failure>,
    apply: Apply,
) -> Result<(Upgrade, Edit), Failure> {
    let mut upgrade = first;
    for _ in 0..TRIES {
        let edit = decide(&upgrade)?;
        let Edit::Write(spec, _) = &edit else { return Ok((upgrade, edit)) };
        match place.requests.change(&upgrade, spec, apply).await? {
            Patched::Stored => return Ok((upgrade, edit)),
            Patched::Conflict => upgrade = place.again(&upgrade).await?,
        }
    }
    let message = format!("the Upgrade {} is changed by others all the time", upgrade.name_any());
    Err(Failure::new(Exit::Unreachable, "conflict", message, "the same command tries again"))
}

fn answer(
    place: &Place,
    upgrade: &Upgrade,
    edit: Edit,
    apply: Apply,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    let (changed, message) = match edit {
        Edit::Write(_, message) => (true, message),
        Edit::Already(message) => (false, message),
    };
    let dry_run = apply == Apply::DryRun;
    let answer = UpgradeChange { upgrade: stage::id(upgrade), dry_run, changed, message };
    ui.answer(&answer, |out| {
        let nothing = if changed && dry_run { "nothing was written: " } else { "" };
        let UpgradeChange { upgrade, message, .. } = &answer;
        writeln!(out, "{}", one_line(&format!("{upgrade}: {nothing}{message}")))
    })?;
    let watch = place.next.of(&["status", &upgrade.name_any(), "--watch"]);
    ui.hint(&format!("to watch it: {watch}"));
    Ok(Exit::Done)
}
