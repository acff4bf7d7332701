//! The way back of an Upgrade as it would be now: which services get the images that they had, and which waves stay. It
//! is what `opensdn-upgrade` itself would decide, so that what is shown is what is done.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use kube::ResourceExt as _;
use opensdn_crds::upgrade::{Goal, ImageChange, Phase, State, Step, Upgrade, UpgradeSpec};
use opensdn_upgrade::next::{Situation, is_on_its_way_back, next};
use opensdn_upgrade::plan::rewrites;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use time::OffsetDateTime;

use super::attach::comes_first;
use super::disruption::disruption;
use super::edit::{Edit, refuse};
use super::next_command::NextCommand;
use super::stage;
use crate::exit::Failure;
use crate::output::Answer;
use crate::ui::one_line;

/// What `upgrade rollback` answers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpgradeRollBack {
    /// The Upgrade: namespace and name.
    pub(crate) upgrade: String,
    /// Whether it was only shown.
    pub(crate) dry_run: bool,
    /// Whether it was asked for now.
    pub(crate) changed: bool,
    /// What was done, or why nothing.
    pub(crate) message: String,
    /// The services that get their earlier images, in the order in which they get them.
    pub(crate) services: Vec<BackService>,
    /// The waves that keep the new images.
    pub(crate) stays: Vec<StayingWave>,
    /// What the way back does not undo.
    pub(crate) warnings: Vec<String>,
}

/// A service that gets its earlier images.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct BackService {
    /// Its wave.
    wave: String,
    /// Kind and name.
    service: String,
    /// The images: from those that it has to those that it had.
    images: Vec<ImageChange>,
}

/// A wave that keeps the new images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct StayingWave {
    /// Its name.
    wave: String,
    /// Why.
    why: String,
}

impl Answer for UpgradeRollBack {
    const KIND: &'static str = "UpgradeRollBack";
}

impl UpgradeRollBack {
    /// The way back as it would be now.
    pub(crate) fn of(upgrade: &Upgrade) -> Self {
        let before = stage::status(upgrade);
        let now = OffsetDateTime::now_utc();
        let spec = UpgradeSpec { goal: Some(Goal::RollBack), ..upgrade.spec.clone() };
        let decided = next(&Situation {
            upgrade: "",
            drained: &BTreeSet::new(),
            spec: &spec,
            status: &before,
            generation: upgrade.metadata.generation,
            manager: None,
            paused: None,
            release: None,
            ziu_state: None,
            refusals: &BTreeMap::new(),
            services: &[],
            pullers: &[],
            other: None,
            looking_since: now,
            now,
        });
        let waves = decided.status.waves.unwrap_or_default();
        let steps = decided.status.steps.unwrap_or_default();
        let back = |step: &&Step| step.state == State::RollingBack;
        let services = waves.iter().rev().flat_map(|wave| {
            steps.iter().filter(back).filter(|step| step.wave == wave.name).map(service)
        });
        let stays = steps.iter().filter(|step| step.ran == Some(true) && !back(step));
        let stays = stays.filter_map(|step| {
            Some(StayingWave { wave: step.wave.clone(), why: step.no_way_back.clone()? })
        });
        let stays = stays.collect();
        let ran = steps.iter().filter(back).filter(|step| step.ran == Some(true));
        let nodes = steps.iter().filter(back).filter(|step| step.id.starts_with("Vrouter/"));
        let nodes = nodes.map(|step| {
            let meanwhile = disruption("Vrouter", 1).text;
            format!("{}: {meanwhile}; no node is waited for to be drained", step.id)
        });
        let warnings = ran.filter_map(rewrites).chain(nodes).collect();
        Self { services: services.collect(), stays, warnings, ..Self::without_change(upgrade) }
    }

    /// Where nothing is to be changed.
    pub(crate) fn without_change(upgrade: &Upgrade) -> Self {
        Self {
            upgrade: stage::id(upgrade),
            dry_run: false,
            changed: false,
            message: String::new(),
            services: Vec::new(),
            stays: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// What is shown before it is done.
    pub(crate) fn lines(&self) -> Vec<String> {
        let back = self.services.iter().map(|one| {
            let images = one.images.iter().map(|image| format!("{} {}", image.container, image.to));
            let images = images.collect::<Vec<_>>().join(", ");
            format!("  back   {} (wave {}): {images}", one.service, one.wave)
        });
        let stays = self.stays.iter();
        let stays = stays.map(|one| format!("  stays  the wave {}: {}", one.wave, one.why));
        let warnings = self.warnings.iter().map(|text| format!("  warning  {text}"));
        back.chain(stays).chain(warnings).map(|line| format!("  {}", one_line(&line))).collect()
    }

    /// Writes it.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let nothing = if self.dry_run { "nothing was written: " } else { "" };
        writeln!(out, "{}", one_line(&format!("{}: {nothing}{}", self.upgrade, self.message)))
    }
}

fn service(step: &Step) -> BackService {
    let images = step.images.iter().map(|image| ImageChange {
        container: image.container.clone(),
        from: image.to.clone(),
        to: image.from.clone(),
    });
    BackService { wave: step.wave.clone(), service: step.id.clone(), images: images.collect() }
}

/// It goes back.
///
/// # Errors
/// There is nothing to go back from, or no way back.
pub(crate) fn roll_back(upgrade: &Upgrade) -> Result<Edit, Failure> {
    let status = stage::status(upgrade);
    let is_asked = upgrade.spec.goal == Some(Goal::RollBack);
    match status.phase {
        None | Some(Phase::Pending | Phase::Refused) => {
            let hint = format!("to have it not begin: {}", stage::deletion(upgrade));
            let message = "nothing of it was done, so there is nothing to go back from";
            return refuse("nothing-changed", message, &hint);
        }
        Some(Phase::RolledBack) => {
            return Ok(Edit::Already("it has gone back already".to_owned()));
        }
        Some(Phase::Stopped) if is_on_its_way_back(&status) => {
            let message = "it has stopped on its way back";
            return refuse("stopped", message, "to try that again: kubectl opensdn upgrade retry");
        }
        Some(Phase::RollingBack) => return Ok(Edit::Already("it is going back".to_owned())),
        Some(Phase::Succeeded) if status.steps.as_ref().is_none_or(Vec::is_empty) => {
            return Ok(Edit::Already("it has changed nothing".to_owned()));
        }
        Some(_) => {}
    }
    let way = UpgradeRollBack::of(upgrade);
    if let Some(first) = way.stays.first().filter(|_| way.services.is_empty()) {
        return refuse("no-way-back", &format!("there is no way back: {}", first.why), "");
    }
    if is_asked && !stage::is_seen(upgrade) {
        return Ok(Edit::Already(
            "it was asked to go back, and the operator has not started it yet".to_owned(),
        ));
    }
    let said = match way.services.len() {
        0 => "it ends: no service has the new images".to_owned(),
        number => format!("services that get their earlier images: {number}"),
    };
    Ok(Edit::Write(json!({"goal": Goal::RollBack}), said))
}

/// Refuses the way back of one that is over while a newer one has to go first: one that is not over, or that has given the
/// same services other images since.
///
/// # Errors
/// There is such a one.
pub(crate) fn refuse_behind(
    upgrade: &Upgrade,
    all: &[Upgrade],
    next: &NextCommand,
) -> Result<(), Failure> {
    if stage::phase(upgrade) != Some(Phase::Succeeded) {
        return Ok(());
    }
    let (name, manager) = (upgrade.name_any(), &upgrade.spec.manager);
    let others: Vec<&Upgrade> = all.iter().filter(|one| one.name_any() != name).collect();
    if let Some(other) = comes_first(others.iter().copied(), manager) {
        let other_name = other.name_any();
        let phase =
            stage::phase(other).map_or("not seen by the operator yet", |phase| phase.as_str());
        let message = format!(
            "the Upgrade {other_name} of the same Manager is not over (it is {phase}), so {name} cannot go back"
        );
        let hint = format!(
            "wait for its end: {}; or go back with it first: {}",
            next.of(&["status", &other_name, "--watch"]),
            next.of(&["rollback", &other_name])
        );
        return refuse("another-upgrade", &message, &hint);
    }
    let is_after = |one: &&&Upgrade| {
        one.spec.manager == *manager && stage::created(one) > stage::created(upgrade)
    };
    let mut after = others.iter().filter(is_after);
    let Some((other, step)) = after.find_map(|one| Some((one, crossed(upgrade, one)?))) else {
        return Ok(());
    };
    let other_name = other.name_any();
    let message =
        format!("the Upgrade {other_name} came after {name}, and {step} has its images since");
    let hint = format!("go back with it first: {}", next.of(&["rollback", &other_name]));
    refuse("another-upgrade", &message, &hint)
}

/// A service that the later one has given another image than the earlier one had.
fn crossed(earlier: &Upgrade, later: &Upgrade) -> Option<String> {
    let done = |upgrade: &Upgrade| {
        let steps = stage::status(upgrade).steps.unwrap_or_default().into_iter();
        steps.filter(|step| step.state == State::Succeeded).collect::<Vec<Step>>()
    };
    let (before, after) = (done(earlier), done(later));
    let is_crossed = |step: &&Step| {
        let of_same = after.iter().filter(|other| other.id == step.id);
        let mut images = of_same.flat_map(|other| &other.images);
        images.any(|image| {
            step.images.iter().any(|own| own.container == image.container && own.to != image.to)
        })
    };
    before.iter().find(is_crossed).map(|step| step.id.clone())
}
