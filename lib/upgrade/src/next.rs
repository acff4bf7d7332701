//! What is next, by what stands in the status and how the cluster is now. What is decided is written into the status
//! before it is done: an act belongs to what the status says already, and may be done twice.

mod back;
mod canary;
mod forward;
mod images_first;
mod settle;
mod start;
mod worse;

pub use back::is_on_its_way_back;

/// Whether it says what a wave has failed by, and was not tried again since.
#[must_use]
pub fn is_failure(remark: &UpgradeRemark) -> bool {
    remark.code == FAILURE && remark.severity != TRIED_AGAIN
}

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use opensdn_crds::status::Conditions;
use opensdn_crds::upgrade::{
    Goal, ImageChange, Phase, State, Step, UpgradeRemark, UpgradeSpec, UpgradeStatus, Wave,
};
use serde_json::Value;
use time::OffsetDateTime;

use crate::health::{Service, Side};
use crate::pull::{Pull, Puller};
use crate::time::{parse, text};
use crate::{images, interruption};

const TIMEOUT: Duration = Duration::from_secs(15 * 60);
const SOAK: Duration = Duration::from_secs(30);
/// A wave that was not well in time.
pub const FAILURE: &str = "OSDN5020";
/// How a wave that was not well in time is remembered, once it was tried again.
const TRIED_AGAIN: &str = "Warning";
/// So many of these are kept.
const MOST_TRIED: usize = 5;
/// So long at least another try has. A kubelet waits five minutes at most before it starts a container again that has failed often
/// (`MaxContainerBackOff`), or pulls an image.
const ANOTHER_TRY: Duration = Duration::from_secs(6 * 60);
/// So long at most a wave has that is late when an operator begins to look.
const GRACE: Duration = Duration::from_secs(2 * 60);
/// And so long at most any wait is: to no time can more be added than there is.
const LONGEST_WAIT: Duration = Duration::from_secs(366 * 24 * 3600);
/// As many characters of a message are written: what others say is in it.
const LONGEST: usize = 4000;
/// Until it is looked at again, while something is at work.
const SOON: Duration = Duration::from_secs(2);
/// And while it waits for a person.
const LATER: Duration = Duration::from_secs(60);
/// How often it is noted that one that is at work was looked at.
const NOTED: Duration = Duration::from_secs(10);
/// Where that is so long ago none looked: the operator was away, or its machine stood still. A slow one looks more often.
const UNSEEN: Duration = Duration::from_secs(60);

/// What it is decided by.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Namespace and name of the Upgrade.
    pub upgrade: &'a str,
    /// What is wanted.
    pub spec: &'a UpgradeSpec,
    /// How far it has come.
    pub status: &'a UpgradeStatus,
    /// The generation of the spec.
    pub generation: Option<i64>,
    /// The spec of the Manager, if it is there and stays.
    pub manager: Option<&'a Value>,
    /// Why the services of the Manager are left as they are, if they are.
    pub paused: Option<&'a str>,
    /// The release that the annotation `opensdn.io/release` of the Manager says.
    pub release: Option<&'a str>,
    /// The stage of an upgrade of tf-operator, by `status.ziuState` of the Manager.
    pub ziu_state: Option<i64>,
    /// Why the API server has refused the images of a service, by the service.
    pub refusals: &'a BTreeMap<String, String>,
    /// How the services are.
    pub services: &'a [Service],
    /// The pods that have nodes pull images for this Upgrade.
    pub pullers: &'a [Puller],
    /// The nodes that are drained for this Upgrade.
    pub drained: &'a BTreeSet<String>,
    /// Another Upgrade of the Manager that comes first.
    pub other: Option<&'a str>,
    /// Since when this operator looks at it: what was late while no operator ran has a moment to get well.
    pub looking_since: OffsetDateTime,
    /// The time.
    pub now: OffsetDateTime,
}

/// What is decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The status. If it is another one, it is written, and nothing is done before it is looked at again.
    pub status: UpgradeStatus,
    /// The images that the Manager gets.
    pub images: Vec<SetImages>,
    /// Those that it is to get by and by, when it begins: whether the API server would take them is asked before the status is
    /// written. What it refuses is a reason not to begin ([`Situation::refusals`]).
    pub rehearsed: Vec<SetImages>,
    /// What nodes pull: all other pods for that are to go.
    pub pulls: Vec<Pull>,
    /// After that it is looked at again, whatever changes.
    pub look_again: Option<Duration>,
}

/// Images that a service of the Manager gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetImages {
    /// The service: `Zookeeper/zookeeper1`.
    pub service: String,
    /// Where it is in the spec of the Manager.
    pub pointer: String,
    /// Its images.
    pub images: Vec<SetImage>,
}

/// The image that a container gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetImage {
    /// Name of the container.
    pub container: String,
    /// Where its entry is in the spec of the Manager.
    pub pointer: String,
    /// The image that it has now.
    pub from: String,
    /// The image that it gets.
    pub to: String,
}

/// What is next.
#[must_use]
pub fn next(situation: &Situation<'_>) -> Decision {
    let mut run = Run {
        at: situation,
        status: situation.status.clone(),
        declared: situation.manager.map(images::services),
        images: Vec::new(),
        pulls: Vec::new(),
        now: text(situation.now),
    };
    run.status.observed_generation = situation.generation;
    run.note_interruptions();
    run.wait_again_where_none_looked();
    match run.status.phase.unwrap_or(Phase::Pending) {
        Phase::Pending | Phase::Refused => run.start(),
        Phase::Running | Phase::Paused => run.forward(),
        Phase::Stopped => run.after_a_stop(),
        Phase::RollingBack => run.back(),
        Phase::Succeeded => run.after_success(),
        Phase::RolledBack => {}
    }
    run.decided()
}

/// One decision in the making.
struct Run<'a> {
    at: &'a Situation<'a>,
    status: UpgradeStatus,
    /// What the Manager says, if it is there.
    declared: Option<Vec<images::Service>>,
    images: Vec<SetImages>,
    pulls: Vec<Pull>,
    now: String,
}

impl Run<'_> {
    fn decided(mut self) -> Decision {
        let phase = self.status.phase.unwrap_or(Phase::Pending);
        self.status.wave = self.wave_in_words();
        self.say(phase);
        self.note_the_look(phase);
        let is_same = has_same_states(&self.status, self.at.status);
        let look_again = match phase {
            _ if !is_same => Some(Duration::ZERO),
            Phase::Running | Phase::RollingBack => Some(SOON),
            Phase::Pending | Phase::Paused | Phase::Refused | Phase::Stopped => Some(LATER),
            Phase::Succeeded | Phase::RolledBack => None,
        };
        let begins = self.at.status.started_at.is_none() && phase == Phase::Running;
        // What an act belongs to has to be in the status before.
        let (images, rehearsed) = match self.images {
            all if is_same => (all, Vec::new()),
            all if begins => (Vec::new(), all),
            _ => Default::default(),
        };
        Decision { status: self.status, images, rehearsed, pulls: self.pulls, look_again }
    }

    /// That it was looked at, for who watches: where nothing changes the operator would say nothing else.
    fn note_the_look(&mut self, phase: Phase) {
        let at = self.status.looked_at.as_deref().and_then(parse);
        // A clock that was put back is no reason to say nothing.
        let is_noted = at.is_some_and(|at| (self.at.now - at).unsigned_abs() < NOTED);
        if matches!(phase, Phase::Running | Phase::RollingBack) && !is_noted {
            self.status.looked_at = Some(self.now.clone());
        }
    }

    /// The conditions, after kstatus.
    fn say(&mut self, phase: Phase) {
        let before = self.at.status.conditions.clone().unwrap_or_default();
        let mut conditions = Conditions::after(&before);
        let (generation, now) = (self.at.generation, &self.now);
        let message = self.status.message.clone().unwrap_or_default();
        let reason = phase.as_str();
        match phase {
            Phase::Succeeded => conditions.ready(reason, &message, generation, now),
            Phase::Refused | Phase::Stopped | Phase::RolledBack => {
                conditions.stalled(reason, &message, generation, now);
            }
            Phase::Pending | Phase::Running | Phase::Paused | Phase::RollingBack => {
                conditions.reconciling(reason, &message, generation, now);
            }
        }
        self.status.conditions = Some(conditions.into_vec());
    }

    /// For how long nodes are without their vrouter, as far as it is seen.
    fn note_interruptions(&mut self) {
        let services = self.at.services;
        for step in self.status.steps.iter_mut().flatten() {
            let service = services.iter().find(|one| one.id == step.id && is_of_nodes(step));
            let started = step.started_at.as_deref().and_then(parse);
            let Some((service, started)) = service.zip(started) else { continue };
            let mut before = self.status.snapshot.iter().flatten();
            let before = before.find(|one| one.service == step.id);
            let mut known = step.interruptions.take().unwrap_or_default();
            interruption::note(&mut known, service, before, started);
            step.interruptions = Some(known).filter(|known| !known.is_empty());
        }
    }

    fn wave_in_words(&self) -> Option<String> {
        let waves = self.status.waves.as_deref()?;
        let is_at_work = |wave: &Wave| !is_over(wave.state) && wave.state != State::RolledBack;
        let number = match self.status.phase {
            Some(Phase::Stopped) if !is_on_its_way_back(&self.status) => {
                waves.iter().position(is_at_work)
            }
            Some(Phase::RollingBack | Phase::Stopped) => {
                waves.iter().rposition(|wave| wave.state == State::RollingBack)
            }
            Some(Phase::Succeeded | Phase::RolledBack) => None,
            _ => waves.iter().position(is_at_work),
        }?;
        Some(format!("{}/{} {}", number + 1, waves.len(), waves.get(number)?.name))
    }

    fn set(&mut self, phase: Phase, message: String) {
        self.status.phase = Some(phase);
        let message: String = message.chars().take(LONGEST).collect();
        self.status.message = Some(message).filter(|message| !message.is_empty());
    }

    fn end(&mut self, phase: Phase, message: String) {
        self.set(phase, message);
        self.status.finished_at = Some(self.now.clone());
    }

    /// A command of the plugin about this one, as it can be pasted.
    fn command(&self, word: &str) -> String {
        let (namespace, name) = self.at.upgrade.split_once('/').unwrap_or_default();
        format!("kubectl opensdn upgrade {word} {name} -n {namespace}")
    }

    fn soak(&self) -> Duration {
        soak(self.at.spec)
    }

    fn timeout(&self) -> Duration {
        wave_timeout(self.at.spec)
    }

    fn deadline(&self) -> String {
        text(self.at.now + self.timeout())
    }

    /// Until when it has when it is tried again.
    fn deadline_of_another_try(&self) -> String {
        text(self.at.now + self.timeout().max(ANOTHER_TRY))
    }

    /// What became well or bad while none looked is not known: as when an operator begins to look, waves have a moment more.
    fn wait_again_where_none_looked(&mut self) {
        let at = self.status.looked_at.as_deref().and_then(parse);
        let is_at_work = matches!(self.status.phase, Some(Phase::Running | Phase::RollingBack));
        if !is_at_work || at.is_none_or(|at| self.at.now - at < UNSEEN) {
            return;
        }
        let moment = self.at.now + GRACE.min(self.timeout());
        let is_at_work =
            |wave: &&mut Wave| matches!(wave.state, State::Running | State::RollingBack);
        for wave in self.status.waves.iter_mut().flatten().filter(is_at_work) {
            let deadline = wave.deadline.as_deref().and_then(parse);
            if deadline.is_some_and(|deadline| deadline < moment) {
                wave.deadline = Some(text(moment));
            }
        }
    }

    fn is_past(&self, deadline: Option<&String>) -> bool {
        let has_looked = self.at.now - self.at.looking_since >= GRACE.min(self.timeout());
        has_looked && deadline.and_then(|time| parse(time)).is_some_and(|time| time <= self.at.now)
    }

    /// Whether it has been so for the soak time.
    fn has_lasted(&self, since: Option<&String>) -> bool {
        let since = since.and_then(|since| parse(since));
        since.is_some_and(|since| self.at.now - since >= self.soak())
    }

    fn is_rolled_back(&self) -> bool {
        self.at.spec.goal == Some(Goal::RollBack)
    }

    fn waves(&mut self) -> &mut Vec<Wave> {
        self.status.waves.get_or_insert_default()
    }

    fn steps(&mut self) -> &mut Vec<Step> {
        self.status.steps.get_or_insert_default()
    }

    fn wave_at(&self, place: usize) -> Option<&Wave> {
        self.status.waves.as_ref()?.get(place)
    }

    fn step_at(&self, place: usize) -> Option<&Step> {
        self.status.steps.as_ref()?.get(place)
    }

    /// The places of the steps of a wave.
    fn steps_of(&self, wave: &str) -> Vec<usize> {
        let steps = self.status.steps.iter().flatten().enumerate();
        steps.filter(|(_, step)| step.wave == wave).map(|(place, _)| place).collect()
    }

    fn service(&self, id: &str) -> Option<&Service> {
        self.at.services.iter().find(|one| one.id == id)
    }

    /// Why the user leaves a step out.
    fn left_out(&self, id: &str) -> Option<String> {
        let skip = self.at.spec.skip.iter().flatten().find(|skip| skip.step == id)?;
        let who = skip.requested_by.as_ref().map_or_else(String::new, |who| format!(" by {who}"));
        Some(format!("left out{who}: {}", skip.reason))
    }

    /// Whether a user has left the step at that place out.
    fn is_left_out(&self, place: usize) -> bool {
        self.step_at(place).is_some_and(|step| self.left_out(&step.id).is_some())
    }

    /// Has the Manager say the images of that side for a step.
    fn ensure(&mut self, place: usize, step: &Step, side: Side) -> Result<(), Crossed> {
        let (id, images) = (&step.id, &step.images);
        let declared = self.declared.as_ref().ok_or(Crossed::ManagerGone)?;
        let service = declared.iter().find(|one| one.id() == *id).ok_or(Crossed::ServiceGone)?;
        if !is_as_wanted(service, images, self.at.spec) {
            return Err(Crossed::Status);
        }
        let mut set = Vec::new();
        for change in images {
            let entry = service.images.iter().find(|one| one.container == change.container);
            let entry = entry.ok_or_else(|| Crossed::ContainerGone(change.container.clone()))?;
            let wanted = side.of(change);
            if entry.image == wanted {
                continue;
            }
            // What the Manager has had already a user has taken away.
            let is_other = entry.image != change.from && entry.image != change.to;
            if is_other || step.set == Some(true) {
                return Err(Crossed::Edited {
                    container: change.container.clone(),
                    image: entry.image.clone(),
                    wanted: wanted.to_owned(),
                });
            }
            set.push(SetImage {
                container: entry.container.clone(),
                pointer: entry.pointer.clone(),
                from: entry.image.clone(),
                to: wanted.to_owned(),
            });
        }
        if set.is_empty() {
            self.step(place, |step| step.set = Some(true));
        } else {
            let pointer = service.pointer.clone();
            self.images.push(SetImages { service: id.clone(), pointer, images: set });
        }
        Ok(())
    }
}

/// What a user did to the Manager meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Crossed {
    #[error("the Manager is not there any more: make it again and retry, or delete this Upgrade")]
    ManagerGone,
    #[error(
        "its images in the status are not those that the spec asks for: another has written the status"
    )]
    Status,
    #[error("the service is gone from the Manager")]
    ServiceGone,
    #[error("the Manager has no container {0} for it any more: put it back, then retry")]
    ContainerGone(String),
    #[error(
        "the Manager was edited meanwhile: container {container} has the image {image}; nothing overwrites it. Have it as it \
         shall be, {wanted}, then retry; or leave the step out"
    )]
    Edited { container: String, image: String, wanted: String },
}

/// Whether the images of a step are those that the spec asks for: who may write a status only sets none.
fn is_as_wanted(service: &images::Service, images: &[ImageChange], spec: &UpgradeSpec) -> bool {
    let as_before = images::Service {
        images: images
            .iter()
            .map(|change| images::Entry {
                container: change.container.clone(),
                image: change.from.clone(),
                pointer: String::new(),
            })
            .collect(),
        ..service.clone()
    };
    images::changes(&as_before, spec).0 == images
}

/// Whether phase, waves and steps are where they were, and services go by what they went by: what else differs is said, not
/// decided. That a step is held no more its service has to hear at once, as nothing else would have it look again.
fn has_same_states(one: &UpgradeStatus, other: &UpgradeStatus) -> bool {
    let waves = |status: &UpgradeStatus| -> Vec<_> {
        status.waves.iter().flatten().map(|wave| (wave.name.clone(), wave.state)).collect()
    };
    let steps = |status: &UpgradeStatus| -> Vec<_> {
        let all = status.steps.iter().flatten();
        all.map(|step| (step.id.clone(), step.state, step.held, step.attempts)).collect()
    };
    one.phase == other.phase && waves(one) == waves(other) && steps(one) == steps(other)
}

/// Whether its pods are one on each node, and need none of their own kind: it may stop between two of them.
pub(crate) fn is_of_nodes(step: &Step) -> bool {
    step.id.starts_with("Vrouter/")
}

/// Whether nothing more is to be done for a wave or step on the way to the new images.
fn is_over(state: State) -> bool {
    matches!(state, State::Succeeded | State::Skipped)
}

/// How long all has to be well after the first pod of a service, and after each wave.
pub(crate) fn soak(spec: &UpgradeSpec) -> Duration {
    duration(spec.soak.as_deref(), SOAK)
}

/// How long a wave may be without progress.
pub(crate) fn wave_timeout(spec: &UpgradeSpec) -> Duration {
    duration(spec.wave_timeout.as_deref(), TIMEOUT)
}

fn duration(given: Option<&str>, default: Duration) -> Duration {
    let given = given.and_then(|text| opensdn_duration::parse(text).ok());
    given.unwrap_or(default).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests;
