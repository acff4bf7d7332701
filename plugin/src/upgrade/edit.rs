//! What a user wants of an Upgrade that is there, as a change of its spec: that it pauses, continues, tries again, leaves
//! a step out. The operator sees the change and does it. The way back is in `way_back.rs`.

use kube::ResourceExt as _;
use opensdn_crds::upgrade::{Goal, Phase, Skip, State, Step, Upgrade, UpgradeSpec, UpgradeStatus};
use opensdn_upgrade::next::is_on_its_way_back;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::stage;
use crate::exit::{Exit, Failure};
use crate::output::Answer;

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edit {
    /// The spec is changed by this merge patch, with what that means.
    Write(Value, String),
    /// It is so already.
    Already(String),
}

/// What `upgrade pause`, `resume`, `retry` and `skip` answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpgradeChange {
    /// The Upgrade: namespace and name.
    pub(crate) upgrade: String,
    /// Whether it was only tried.
    pub(crate) dry_run: bool,
    /// Whether something was changed, or would be.
    pub(crate) changed: bool,
    /// What was done, or why nothing.
    pub(crate) message: String,
}

impl Answer for UpgradeChange {
    const KIND: &'static str = "UpgradeChange";
}

/// It pauses when what is at work has finished.
///
/// # Errors
/// It is over, or does not pause where it is.
pub(crate) fn pause(upgrade: &Upgrade) -> Result<Edit, Failure> {
    refuse_over(upgrade)?;
    match stage::phase(upgrade) {
        phase if phase == Some(Phase::RollingBack) || upgrade.spec.goal == Some(Goal::RollBack) => {
            refuse("not-pausable", "the way back is not paused", "")
        }
        Some(Phase::Stopped) if !asks_for_another_try(upgrade) => refuse(
            "not-pausable",
            "it has stopped by itself: nothing is changed until you decide",
            DECIDE,
        ),
        _ if upgrade.spec.paused == Some(true) => Ok(Edit::Already(
            "it is paused, or pauses when what is at work has finished".to_owned(),
        )),
        phase => {
            let said = match phase {
                Some(Phase::Stopped) => "it pauses when the operator has seen that it tries again",
                None | Some(Phase::Pending) => "it begins when it is resumed",
                _ => {
                    "it pauses when what is at work has finished; no pod is left without its successor"
                }
            };
            Ok(Edit::Write(json!({"paused": true}), said.to_owned()))
        }
    }
}

/// Whether another try was asked for that the operator has not started.
fn asks_for_another_try(upgrade: &Upgrade) -> bool {
    let done = stage::status(upgrade).retries.unwrap_or(0);
    upgrade.spec.retries.unwrap_or(0) > done
}

/// It continues, and does not pause again before the wave that it waits before.
///
/// # Errors
/// It is over, or a person has to decide something else.
pub(crate) fn resume(upgrade: &Upgrade) -> Result<Edit, Failure> {
    refuse_over(upgrade)?;
    if stage::phase(upgrade) == Some(Phase::Stopped) {
        return refuse("stopped", "it is not paused, but has stopped", DECIDE);
    }
    let (status, spec) = (stage::status(upgrade), &upgrade.spec);
    let named = spec.pause_before.clone().unwrap_or_default();
    let ahead = stage::wave_ahead(&status).filter(|wave| {
        let waits = status.phase == Some(Phase::Paused) && wave.state == State::Pending;
        waits && named.contains(&wave.name)
    });
    if spec.paused != Some(true) && ahead.is_none() {
        let why = match status.phase {
            Some(Phase::Paused) => status.message.unwrap_or_default(),
            _ => "it is not paused".to_owned(),
        };
        return Ok(Edit::Already(why));
    }
    let Some(wave) = ahead else {
        return Ok(Edit::Write(json!({"paused": false}), "it continues".to_owned()));
    };
    let left: Vec<&String> = named.iter().filter(|name| **name != wave.name).collect();
    let left = Some(left).filter(|left| !left.is_empty());
    let said = format!("it continues with the wave {}", wave.name);
    Ok(Edit::Write(json!({"paused": false, "pauseBefore": left}), said))
}

/// It tries again what has failed.
///
/// # Errors
/// It has not stopped.
pub(crate) fn retry(upgrade: &Upgrade) -> Result<Edit, Failure> {
    let status = stage::status(upgrade);
    if status.phase != Some(Phase::Stopped) {
        let phase = status.phase.map_or("not seen by the operator yet", Phase::as_str);
        let message = format!("only what has stopped is tried again, and it is {phase}");
        return refuse("not-stopped", &message, "");
    }
    let is_back = is_on_its_way_back(&status);
    // Without a way back the wish for one is all that it looks at.
    let is_stuck = upgrade.spec.goal == Some(Goal::RollBack) && !is_back;
    if is_stuck && !stage::is_seen(upgrade) {
        let message =
            "nothing was written: it was asked to go back, and the operator has not seen that yet";
        return refuse("goes-back", message, "what it does then: kubectl opensdn upgrade status");
    }
    if asks_for_another_try(upgrade) && !is_stuck {
        let said = "another try was asked for, and the operator has not started it yet";
        return Ok(Edit::Already(said.to_owned()));
    }
    let retries = upgrade.spec.retries.max(status.retries).unwrap_or(0).saturating_add(1);
    let patch = match is_stuck {
        true => json!({"retries": retries, "goal": Goal::Upgrade}),
        false => json!({ "retries": retries }),
    };
    let said =
        if is_back { "it tries the way back again" } else { "it tries again what has failed" };
    Ok(Edit::Write(patch, said.to_owned()))
}

/// It leaves the step out.
///
/// # Errors
/// There is no such step, or nothing is left to do for it.
pub(crate) fn skip(
    upgrade: &Upgrade,
    step: &str,
    reason: &str,
    requested_by: Option<&str>,
) -> Result<Edit, Failure> {
    refuse_over(upgrade)?;
    let status = stage::status(upgrade);
    let steps = status.steps.as_deref().unwrap_or_default();
    let Some(found) = steps.iter().find(|one| one.id.eq_ignore_ascii_case(step)) else {
        return Err(no_step(upgrade, &status, step));
    };
    let mut all = upgrade.spec.skip.clone().unwrap_or_default();
    if let Some(known) = all.iter().find(|one| one.step == found.id) {
        return Ok(Edit::Already(format!("it is left out already: {}", known.reason)));
    }
    let goes_back = upgrade.spec.goal == Some(Goal::RollBack);
    let is_over = match found.state {
        State::Skipped | State::RolledBack => true,
        State::Succeeded => !goes_back,
        _ => false,
    };
    if is_over {
        let message = format!("nothing is left to do for {}: it is {}", found.id, found.state);
        return refuse("step-is-over", &message, "");
    }
    let (id, said) = (found.id.clone(), said_of_skip(&upgrade.spec, &status, found));
    let (reason, requested_by) = (reason.to_owned(), requested_by.map(str::to_owned));
    all.push(Skip { step: id, reason, requested_by });
    Ok(Edit::Write(json!({"skip": all}), said))
}

/// What becomes of a step that is left out, and of the Upgrade.
fn said_of_skip(spec: &UpgradeSpec, status: &UpgradeStatus, step: &Step) -> String {
    let id = &step.id;
    let is_stopped = status.phase == Some(Phase::Stopped);
    if is_stopped && is_on_its_way_back(status) {
        return format!("{id} keeps the images that it has; upgrade retry continues the way back");
    }
    if status.phase == Some(Phase::RollingBack)
        || (spec.goal == Some(Goal::RollBack) && !is_stopped)
    {
        return format!(
            "{id} keeps the images that it has now, while the other services get their earlier ones: once they have, no \
             command takes it back"
        );
    }
    let (is_started, stays) = (step.attempts.is_some(), step.no_way_back.is_some());
    let what = match (is_started, stays && step.ran == Some(true)) {
        (false, _) => format!("{id} is left out"),
        (true, true) => format!("{id} is left out with the new images, as it has no way back"),
        (true, false) => format!("{id} gets its earlier images again, and is left out"),
    };
    let steps = status.steps.iter().flatten();
    let others = steps.filter(|one| one.state == State::Failed && one.id != *id);
    let others: Vec<&str> = others.map(|one| one.id.as_str()).collect();
    match (is_stopped, others.is_empty()) {
        (false, _) if status.phase == Some(Phase::Paused) || spec.paused == Some(true) => {
            format!("{what}, when the upgrade is resumed")
        }
        (false, _) => what,
        (true, true) => format!("{what}; the upgrade continues"),
        (true, false) => format!(
            "{what}; the upgrade continues when these are, too, or by upgrade retry: {}",
            others.join(", ")
        ),
    }
}

const DECIDE: &str =
    "try again (upgrade retry), leave a step out (upgrade skip), or go back (upgrade rollback)";

fn no_step(upgrade: &Upgrade, status: &UpgradeStatus, step: &str) -> Failure {
    let all: Vec<&str> = status.steps.iter().flatten().map(|one| one.id.as_str()).collect();
    let hint = match all.len() {
        0 => "it is not planned yet: kubectl opensdn upgrade status".to_owned(),
        _ => format!("there are: {}", all.join(", ")),
    };
    let message = format!("the Upgrade {} has no step {step}", upgrade.name_any());
    Failure::new(Exit::Usage, "no-step", message, hint)
}

pub(super) fn refuse_over(upgrade: &Upgrade) -> Result<(), Failure> {
    let over = [Phase::Succeeded, Phase::RolledBack, Phase::Refused];
    match stage::phase(upgrade).filter(|phase| over.contains(phase) && stage::is_over(upgrade)) {
        Some(Phase::Refused) => {
            let message =
                format!("the Upgrade {} has not started: it is Refused", upgrade.name_any());
            refuse(
                "not-started",
                &message,
                &format!("to have it not begin: {}", stage::deletion(upgrade)),
            )
        }
        Some(phase) => {
            let message = format!("the Upgrade {} is over: it is {phase}", upgrade.name_any());
            refuse("over", &message, "")
        }
        None => Ok(()),
    }
}

pub(super) fn refuse<T>(code: &'static str, message: &str, hint: &str) -> Result<T, Failure> {
    Err(Failure::new(Exit::Refused, code, message, hint))
}
