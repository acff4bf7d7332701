//! `upgrade apply`: a plan is shown and confirmed, an Upgrade is made of it, and watched; or one is watched that is at
//! work. Who watches may go: the operator carries it out.

use std::time::Duration;

use clap::{Args, ValueEnum};
use kube::ResourceExt as _;
use opensdn_crds::upgrade::{OnFailure, Upgrade, UpgradeSpec};
use opensdn_upgrade::order::WAVES;

use super::Place;
use super::edit::DryRunFlag;
use super::plan::{advise, planned, warn_of_the_first};
use super::status::{answer, catch_signals, watch};
use super::target::TargetFlags;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::install::requests::Apply;
use crate::output::Output;
use crate::runtime::Runtime;
use crate::snapshot::name;
use crate::ui::Ui;
use crate::upgrade::attach::{Way, free_name, way};
use crate::upgrade::plan::UpgradePlan;
use crate::upgrade::stage;

const EXAMPLES: &str = "\
Examples:
  # Show the plan, ask, and watch it
  kubectl opensdn upgrade apply R25.1 -n tf

  # Exactly what was looked at, and a person says when vrouters are replaced
  kubectl opensdn upgrade apply R25.1 -n tf --plan 7f3c9a1b2d --pause-before vrouters

  # In a script: progress as JSON on standard error, the report on standard output
  kubectl opensdn upgrade apply R25.1 -n tf --yes --progress json -o json 2>progress.ndjson

The operator carries it out: Ctrl-C ends the watch alone, and any number may watch. The same
command attaches to an upgrade that is at work. A wave that is not well in time gets its earlier
images again.

Exit codes: 0 all services have the new images, or with --no-wait it was asked for; 1 something
refuses it, or it went back or stopped; 2 the arguments; 3 the cluster cannot be asked; 4 not
over within --timeout; 5 not confirmed, or another plan than that of --plan; 130 or 143
detached, it continues.";

/// Arguments of `upgrade apply`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct ApplyCommand {
    #[command(flatten)]
    target: TargetFlags,
    /// Only this plan, by the hash that upgrade plan shows.
    #[arg(long, value_name = "HASH")]
    plan: Option<String>,
    /// The name of the Upgrade [default: to- with the version, else upgrade- with the hash of the plan].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Pause before these waves, until upgrade resume.
    #[arg(long, value_name = "WAVE,...", value_delimiter = ',', value_parser = wave)]
    pause_before: Vec<String>,
    /// What becomes of a wave that is not well in time [default: roll-back; stop with --wait-for-drain, and where only
    /// pods with earlier images are not well].
    #[arg(long, value_enum, value_name = "HOW")]
    on_failure: Option<Failing>,
    /// How long a wave may be without progress: no pod more that is well with its images [default: 15m].
    #[arg(long, value_name = "TIME", value_parser = wave_timeout)]
    wave_timeout: Option<String>,
    /// How long all has to be well after the first pod of a service, and after each wave [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    soak: Option<String>,
    /// Ask for it, and do not watch it.
    #[arg(long)]
    no_wait: bool,
    /// How long to watch [default: without a limit].
    #[arg(long, value_name = "TIME", value_parser = opensdn_duration::parse, conflicts_with = "no_wait")]
    timeout: Option<Duration>,
    #[command(flatten)]
    dry_run: DryRunFlag,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    _output: Output,
}

/// What becomes of a wave that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Failing {
    /// Its services get their earlier images again.
    RollBack,
    /// Nothing more is changed until you decide.
    Stop,
}

fn wave(text: &str) -> Result<String, String> {
    let names: Vec<&str> = WAVES.iter().map(|wave| wave.name).collect();
    if names.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(format!("the waves are: {}", names.join(", ")))
}

/// As an Upgrade takes it: whole numbers, each of no more than six digits.
fn duration(text: &str) -> Result<String, String> {
    const MOST: u64 = 999_999;
    let time = opensdn_duration::parse(text).map_err(|error| error.to_string())?;
    let seconds = time.as_secs();
    match seconds {
        _ if time.subsec_nanos() != 0 => Err("must be of whole seconds".to_owned()),
        0..=MOST => Ok(format!("{seconds}s")),
        _ => Err("must be at most 11 days".to_owned()),
    }
}

fn wave_timeout(text: &str) -> Result<String, String> {
    let text = duration(text)?;
    if text == "0s" { Err("must be more than nothing".to_owned()) } else { Ok(text) }
}

impl ApplyCommand {
    pub(super) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let apply = self.dry_run.apply()?;
        Runtime::start(global)?.block_on(Box::pin(self.apply(global, apply, ui)))
    }

    async fn apply(&self, global: &Global, apply: Apply, ui: &mut Ui) -> Result<Exit, Failure> {
        let place = Place::of(global).await?;
        let namespace = &place.requests.namespace;
        ui.note(&format!("{}, namespace {namespace}", place.target.described()));
        let all = place.requests.upgrades().await?;
        let manager = place.requests.manager(self.target.manager.as_deref()).await?;
        let spec = self.spec(name(&manager));
        let refused = match way(&all, self.name.as_deref(), &spec, &place.next)? {
            Way::Attach(upgrade) => return self.attach(&place, *upgrade, apply, ui).await,
            Way::Make(refused) => refused,
        };
        let world = place.requests.world(manager).await?;
        let plan = planned(&world, &self.target, &self.words(), namespace, &place.next);
        if let Some(exit) = self.not_to_begin(&plan, ui)? {
            return Ok(exit);
        }
        warn_of_the_first(&all, &spec.manager, ui);
        let gone = refused.as_ref().map(|refused| refused.name_any());
        let left: Vec<Upgrade> =
            all.into_iter().filter(|one| Some(one.name_any()) != gone).collect();
        let (given, version) = (self.name.as_deref(), self.target.version.as_deref());
        let name = free_name(&left, given, version, &plan.hash)?;
        let upgrade = Upgrade::new(&name, UpgradeSpec { plan: Some(plan.hash.clone()), ..spec });
        self.make(&place, Made { upgrade, refused: refused.map(|one| *one), plan }, apply, ui).await
    }

    /// What is wanted, but for the plan where none was given.
    fn spec(&self, manager: &str) -> UpgradeSpec {
        let on_failure = self.on_failure.map(|failing| match failing {
            Failing::RollBack => OnFailure::RollBack,
            Failing::Stop => OnFailure::Stop,
        });
        UpgradeSpec {
            pause_before: Some(self.pause_before.clone()).filter(|waves| !waves.is_empty()),
            on_failure,
            wave_timeout: self.wave_timeout.clone(),
            soak: self.soak.clone(),
            plan: self.plan.clone(),
            ..self.target.spec(manager)
        }
    }

    /// The words of this command that its target does not have.
    fn words(&self) -> Vec<String> {
        let on_failure = self.on_failure.and_then(|failing| failing.to_possible_value());
        let waves = Some(self.pause_before.join(",")).filter(|waves| !waves.is_empty());
        let all = [
            ("--name", self.name.clone()),
            ("--pause-before", waves),
            ("--on-failure", on_failure.map(|value| value.get_name().to_owned())),
            ("--wave-timeout", self.wave_timeout.clone()),
            ("--soak", self.soak.clone()),
        ];
        let given = all.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        given.flatten().collect()
    }

    /// Watches one that is there.
    async fn attach(
        &self,
        place: &Place,
        upgrade: Upgrade,
        apply: Apply,
        ui: &mut Ui,
    ) -> Result<Exit, Failure> {
        let phase =
            stage::phase(&upgrade).map_or("not seen by the operator yet", |one| one.as_str());
        ui.note(&format!("attaching to the Upgrade {}, which is {phase}", upgrade.name_any()));
        if self.no_wait || apply == Apply::DryRun {
            answer(&upgrade, &place.next, ui)?;
            return Ok(stage::exit(&upgrade));
        }
        let mut signals = catch_signals()?;
        watch(place, upgrade, self.timeout, &mut signals, ui).await
    }

    /// Shows the plan, and how it ends where nothing is to begin.
    fn not_to_begin(&self, plan: &UpgradePlan, ui: &mut Ui) -> Result<Option<Exit>, Failure> {
        let layout = ui.layout();
        if plan.up_to_date || !plan.may_begin {
            ui.answer(plan, |out| plan.write(false, layout, out))?;
            advise(plan, ui);
            return Ok(Some(if plan.may_begin { Exit::Done } else { Exit::Findings }));
        }
        plan.lines(layout).iter().for_each(|line| ui.note(line));
        if let Some(wanted) = self.plan.as_ref().filter(|wanted| **wanted != plan.hash) {
            return Err(another_plan(wanted, plan));
        }
        for wave in self.pause_before.iter().filter(|wave| !plan.has_wave(wave)) {
            ui.warn(&format!("--pause-before {wave}: the plan has no such wave"));
        }
        Ok(None)
    }

    async fn make(
        &self,
        place: &Place,
        made: Made,
        apply: Apply,
        ui: &mut Ui,
    ) -> Result<Exit, Failure> {
        let Made { mut upgrade, refused, plan } = made;
        upgrade.spec.requested_by = place.requests.user().await;
        if apply == Apply::DryRun {
            // One that was refused may still have the name, and goes only when it is meant.
            if refused.is_none() {
                place.requests.create(&upgrade, apply).await?;
            }
            let layout = ui.layout();
            ui.answer(&plan, |out| plan.write(false, layout, out))?;
            ui.note("nothing was written");
            return Ok(Exit::Done);
        }
        if !self.yes {
            let UpgradePlan { namespace, manager, .. } = &plan;
            ui.confirm(&format!("upgrade {namespace}/{manager} in {}", place.target.name()))?;
        }
        let mut signals = catch_signals()?;
        if let Some(refused) = refused {
            let name = refused.name_any();
            ui.note(&format!(
                "the Upgrade {name} was refused, and nothing of it was done: it is replaced"
            ));
            place.requests.delete(&refused).await?;
        }
        // Not to be interrupted: what was not answered may have been made.
        let upgrade = place.requests.create(&upgrade, apply).await?;
        ui.note(&format!("made the Upgrade {}", stage::id(&upgrade)));
        if self.no_wait {
            answer(&upgrade, &place.next, ui)?;
            return Ok(Exit::Done);
        }
        watch(place, upgrade, self.timeout, &mut signals, ui).await
    }
}

/// What is to be made.
struct Made {
    upgrade: Upgrade,
    /// In its place, and done nothing of.
    refused: Option<Upgrade>,
    plan: UpgradePlan,
}

fn another_plan(wanted: &str, plan: &UpgradePlan) -> Failure {
    let message = format!(
        "OSDN5010: the plan that was looked at was {wanted}, and now it would be {}: the Manager has changed, or other \
         flags were given",
        plan.hash
    );
    let hint = format!("if this plan is right: {}", plan.next);
    Failure::new(Exit::Refused, "outdated-plan", message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_written_as_an_upgrade_takes_it() {
        for (text, expected) in [("15m", "900s"), ("1m30s", "90s"), ("30", "30s"), ("0", "0s")] {
            assert_eq!(duration(text).as_deref(), Ok(expected));
        }
        for text in ["", "x", "1500ms", "300h"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(wave_timeout("0s").is_err());
    }

    #[test]
    fn a_wave_is_one_that_there_is() {
        assert_eq!(wave("vrouters").as_deref(), Ok("vrouters"));
        assert!(wave("vrouter").unwrap_err().contains("vrouters"));
    }
}
