//! From wave to wave.

use std::time::Duration;

use opensdn_crds::upgrade::{OnFailure, Phase, State, Step, UpgradeRemark};

use super::{Crossed, FAILURE, Run, back, is_over, parse, text};
use crate::daemons;
use crate::drain;
use crate::gate;
use crate::health::Side;
use crate::order;

/// A first pod that was well so often, and then was not, has what is left of the time of its wave.
const MOST_LOSSES: i64 = 3;
/// So long after its time a wave waits for daemons to be asked.
pub(super) const UNHEARD: Duration = Duration::from_secs(10 * 60);

/// How a step went in this pass.
enum Went {
    /// It continues, or is over.
    On,
    /// A person has to decide.
    Crossed(String),
}

impl Run<'_> {
    pub(super) fn forward(&mut self) {
        // What was asked for before something failed is no answer to it.
        self.status.retries = self.at.spec.retries;
        if self.is_rolled_back() {
            return self.turn_back("as a user wants it");
        }
        let mut waves = self.status.waves.iter().flatten().enumerate();
        let Some((place, wave)) = waves.find(|(_, wave)| !is_over(wave.state)) else {
            return self.succeed();
        };
        let (name, is_begun) = (wave.name.clone(), wave.state == State::Running);
        if let Some(why) = self.pause(&name, is_begun) {
            return self.set(Phase::Paused, why);
        }
        if self.status.phase == Some(Phase::Paused) {
            self.set(Phase::Running, String::new());
            if is_begun {
                // How it was while nobody looked counts for nothing.
                let deadline = self.deadline();
                self.wave(place, |wave| {
                    (wave.deadline, wave.healthy_since) = (Some(deadline), None);
                });
                for step in self.steps_of(&name) {
                    self.step(step, |step| step.canary_since = None);
                }
            }
            return;
        }
        if is_begun { self.work(place, &name) } else { self.begin(place, &name) }
    }

    /// Why nothing more is changed now.
    fn pause(&self, wave: &str, is_begun: bool) -> Option<String> {
        if let Some(why) = self.at.paused {
            return Some(format!("the Manager is paused: {why}"));
        }
        let at_work = is_begun
            && self
                .status
                .steps
                .iter()
                .flatten()
                .any(|step| step.wave == wave && step.state == State::Running);
        // A pod that is being replaced gets its successor.
        if at_work {
            return None;
        }
        if self.at.spec.paused == Some(true) && is_begun {
            return Some(format!(
                "paused in the wave {wave}; where one pod has the new images, the others wait: kubectl opensdn upgrade resume"
            ));
        }
        if self.at.spec.paused == Some(true) {
            return Some(format!(
                "paused in front of the wave {wave}: kubectl opensdn upgrade resume"
            ));
        }
        let is_named = self.at.spec.pause_before.iter().flatten().any(|one| one == wave);
        (is_named && !is_begun).then(|| {
            format!("paused before the wave {wave}, as spec.pauseBefore wants it: kubectl opensdn upgrade resume")
        })
    }

    fn begin(&mut self, place: usize, name: &str) {
        let (now, deadline) = (self.now.clone(), self.deadline());
        self.wave(place, |wave| {
            wave.state = State::Running;
            wave.started_at.get_or_insert(now);
            (wave.deadline, wave.progress) = (Some(deadline), None);
            (wave.finished_at, wave.healthy_since, wave.restarts, wave.gate) =
                (None, None, None, None);
        });
        for step in self.steps_of(name) {
            self.begin_step(step);
        }
        self.set(Phase::Running, format!("the wave {name} begins"));
    }

    fn begin_step(&mut self, place: usize) {
        let Some(step) = self.step_at(place).cloned() else { return };
        if is_over(step.state) {
            return;
        }
        let kind = step.id.split('/').next().unwrap_or_default();
        let pods = self.service(&step.id).map_or(0, |service| service.pods.len());
        let has_canary = pods > 1 && order::has_canary(kind);
        let now = self.now.clone();
        self.step(place, |step| {
            step.state = if has_canary { State::Canary } else { State::Running };
            step.started_at.get_or_insert(now);
            step.attempts = Some(step.attempts.unwrap_or_default().saturating_add(1));
            (step.finished_at, step.canary_since, step.message) = (None, None, None);
            step.canary_losses = None;
            (step.held, step.set) = (has_canary.then_some(true), None);
        });
    }

    /// One look at a wave that is at work.
    fn work(&mut self, place: usize, name: &str) {
        if name == order::IMAGES {
            return self.pull(place, name);
        }
        for step in self.steps_of(name) {
            if let Went::Crossed(why) = self.work_on(step) {
                return self.stop(place, &why);
            }
        }
        let steps = self.status.steps.iter().flatten();
        let waits: Vec<_> =
            steps.filter(|step| step.wave == name && !is_over(step.state)).collect();
        if waits.is_empty() {
            return self.ask_gate(place, name);
        }
        let is_held = |step: &&Step| {
            step.canary_since.is_some()
                && step.state == State::Canary
                && step.canary_losses.unwrap_or_default() < MOST_LOSSES
                || self.waits_for_drain(step).is_some()
        };
        let is_waited_for = waits.iter().all(is_held);
        let texts: Vec<_> = waits
            .iter()
            .map(|step| {
                format!(
                    "{}: {}",
                    step.id,
                    step.message.as_deref().unwrap_or("its other pods follow")
                )
            })
            .collect();
        let message = texts.join("; ");
        self.note_progress(place, self.pods_with(name, Side::New));
        if is_waited_for {
            self.keep_time(place);
        } else if self.is_past(self.deadline_of(place).as_ref()) {
            return self.fail(place, name, &message);
        }
        self.set(Phase::Running, message);
    }

    /// What a person has to do before another vrouter is replaced.
    fn waits_for_drain(&self, step: &Step) -> Option<String> {
        if self.at.spec.wait_for_drain != Some(true) || !step.id.starts_with("Vrouter/") {
            return None;
        }
        let service = self.service(&step.id)?;
        let has_new = |pod: &crate::health::Pod| pod.has(&step.images, Side::New);
        // No other is replaced before the first has been well for a while.
        if step.state == State::Canary && service.pods.iter().any(has_new) {
            return None;
        }
        drain::waits(service, &step.images, self.at.upgrade, self.at.drained)
    }

    /// What waits for time or a person has its whole time afterwards. Not at each look, which would be as many writes.
    fn keep_time(&mut self, place: usize) {
        let at = self.deadline_of(place).as_deref().and_then(parse);
        if at.is_none_or(|at| at - self.at.now < self.timeout() / 2) {
            let deadline = self.deadline();
            self.wave(place, |wave| wave.deadline = Some(deadline));
        }
    }

    /// One look at a step.
    fn work_on(&mut self, place: usize) -> Went {
        let Some(step) = self.step_at(place).cloned() else { return Went::On };
        if is_over(step.state) {
            return Went::On;
        }
        self.note_run(place, &step);
        if let Some(why) = self.left_out(&step.id) {
            self.leave_out(place, &step, &why);
            return Went::On;
        }
        match self.ensure(place, &step, Side::New) {
            Ok(()) => {}
            Err(Crossed::ServiceGone) => {
                let why = Crossed::ServiceGone.to_string();
                self.finish_step(place, State::Skipped, Some(why));
                return Went::On;
            }
            Err(crossed) => {
                let why = format!("{}: {crossed}", step.id);
                self.step(place, |step| {
                    step.state = State::Failed;
                    step.message = Some(crossed.to_string());
                });
                return Went::Crossed(why);
            }
        }
        let Some(service) = self.service(&step.id).cloned() else { return Went::On };
        match step.state {
            State::Pending | State::Failed | State::RollingBack => self.begin_step(place),
            State::Canary => self.canary(place, &service),
            _ if service.is_done(&step.images, Side::New) => {
                self.finish_step(place, State::Succeeded, None);
            }
            _ => {
                let message = self.refusal(&step.id).unwrap_or_else(|| service.trouble());
                self.step(place, |step| step.message = Some(gate::short(&message)));
            }
        }
        if let Some(why) = self.step_at(place).and_then(|step| self.waits_for_drain(step)) {
            self.step(place, |step| step.message = Some(why));
        }
        Went::On
    }

    /// Whether a new container has run decides whether there is a way back.
    fn note_run(&mut self, place: usize, step: &Step) {
        if step.ran != Some(true)
            && self.service(&step.id).is_some_and(|one| one.has_run(&step.images))
        {
            self.step(place, |step| step.ran = Some(true));
        }
    }

    /// A step that was begun gets its earlier images first, if there is a way back.
    fn leave_out(&mut self, place: usize, step: &Step, why: &str) {
        if step.attempts.is_none() {
            return self.finish_step(place, State::Skipped, Some(why.to_owned()));
        }
        if let Some(reason) = back::stays(step) {
            let message =
                format!("{why}; it stays with the new images, as there is no way back: {reason}");
            return self.finish_step(place, State::Skipped, Some(gate::short(&message)));
        }
        if step.state != State::RollingBack {
            return self.step(place, back::turn);
        }
        match self.ensure(place, step, Side::Earlier) {
            Ok(()) => {}
            Err(crossed) => {
                let message = format!("{why}; {crossed}");
                return self.finish_step(place, State::Skipped, Some(gate::short(&message)));
            }
        }
        let service = self.service(&step.id).cloned();
        match service {
            Some(service) if !service.is_done(&step.images, Side::Earlier) => {
                let message =
                    format!("gets its earlier images: {}", gate::short(&service.trouble()));
                let is_said = service.says(&step.images, Side::Earlier);
                self.goes_back(place, message, is_said);
            }
            _ => self.finish_step(place, State::Skipped, Some(why.to_owned())),
        }
    }

    /// The first pod with the new images has to be well for a while, and all others with it.
    fn canary(&mut self, place: usize, service: &crate::health::Service) {
        let Some(step) = self.step_at(place).cloned() else { return };
        let has_new = |pod: &&crate::health::Pod| pod.has(&step.images, Side::New);
        let first = service.pods.iter().find(has_new);
        // One that lacked pods before may lack them still.
        let mut snapshot = self.status.snapshot.iter().flatten();
        let before = snapshot.find(|one| one.service == service.id && one.ready).cloned();
        let others_are_ready = before.is_none() || service.pods.iter().all(|pod| pod.is_ready);
        let worse = before.as_ref().and_then(|before| daemons::worse(before, service));
        // What is said of a step begins with its service anyway.
        let own = format!("{}: ", service.id);
        let worse = worse.map(|text| text.strip_prefix(&own).unwrap_or(&text).to_owned());
        let restarts = service.restarts();
        let message = match first {
            Some(pod) if pod.is_ready && others_are_ready && worse.is_none() => {
                // One that starts again and again, or was made again, is ready in between.
                let is_restless = step.restarts.is_some_and(|before| restarts > before)
                    || step.canary_pod.as_ref().is_some_and(|before| *before != pod.uid);
                let since = step.canary_since.clone().filter(|_| !is_restless);
                let is_unheard = |since| {
                    before.as_ref().is_some_and(|one| daemons::are_unheard(one, service, since))
                };
                let is_unheard = since.as_deref().and_then(parse).is_some_and(is_unheard);
                if self.has_lasted(since.as_ref()) && !is_unheard {
                    return self.step(place, |step| {
                        (step.state, step.message, step.held) = (State::Running, None, None);
                    });
                }
                // It is not well while it is so, and the time of the wave is over some day.
                let since = (!is_restless).then(|| since.unwrap_or_else(|| self.now.clone()));
                self.step(place, |step| {
                    (step.canary_since, step.restarts) = (since, Some(restarts));
                    step.canary_pod = Some(pod.uid.clone());
                });
                match is_restless {
                    true => format!(
                        "pod {} has the new images; a container of the service was started again, or that pod was \
                                     made again: it is looked at from the beginning",
                        pod.name
                    ),
                    false => format!(
                        "pod {} has the new images, and has to be well for a while",
                        pod.name
                    ),
                }
            }
            first => {
                self.step(place, lose);
                match first {
                    Some(pod) if pod.is_ready && others_are_ready => worse.unwrap_or_default(),
                    Some(pod) if pod.is_ready => service.trouble(),
                    Some(pod) => {
                        format!("pod {}, the first with the new images: {}", pod.name, pod.why())
                    }
                    None => self.refusal(&step.id).unwrap_or_else(|| {
                        "waits for its first pod with the new images".to_owned()
                    }),
                }
            }
        };
        let message = self.with_losses(place, message);
        self.step(place, |step| step.message = Some(gate::short(&message)));
    }

    /// With how often its first pod was well before.
    fn with_losses(&self, place: usize, message: String) -> String {
        match self.step_at(place).and_then(|step| step.canary_losses) {
            None => message,
            Some(1) => format!("{message}; it was well once, and then was not"),
            Some(losses) => format!("{message}; it was well {losses} times, and then was not"),
        }
    }

    /// All steps are over: all has to be well for a while.
    fn ask_gate(&mut self, place: usize, name: &str) {
        let skipped: Vec<String> = self.skipped();
        let skipped: Vec<&str> = skipped.iter().map(String::as_str).collect();
        let snapshot = self.status.snapshot.clone().unwrap_or_default();
        let checks = gate::checks(&snapshot, self.at.services, &skipped);
        let shut = gate::shut(&checks);
        let restarts = gate::counting(&snapshot, &skipped)
            .filter_map(|one| self.service(&one.service))
            .fold(0, |sum, service| service.restarts().saturating_add(sum));
        let wave = self.wave_at(place).cloned();
        let is_restless =
            wave.as_ref().and_then(|wave| wave.restarts).is_some_and(|before| restarts > before);
        let since =
            wave.and_then(|wave| wave.healthy_since).filter(|_| shut.is_none() && !is_restless);
        let unheard = since.as_deref().and_then(parse).and_then(|since| {
            let first = gate::unheard(&snapshot, self.at.services, &skipped, since);
            first.map(str::to_owned)
        });
        if self.has_lasted(since.as_ref()) && unheard.is_none() {
            let now = self.now.clone();
            self.wave(place, |wave| {
                (wave.state, wave.finished_at, wave.gate) =
                    (State::Succeeded, Some(now), Some(checks));
            });
            return self.set(Phase::Running, format!("the wave {name} is done"));
        }
        let now = self.now.clone();
        let is_open = shut.is_none();
        if self.wave_at(place).is_some_and(|wave| wave.restarts.is_none()) {
            // It has been well as long as it has to be, at the earliest, when its time is over.
            let deadline = text(self.at.now + self.soak() + self.timeout());
            self.wave(place, |wave| wave.deadline = Some(deadline));
        }
        self.wave(place, |wave| {
            wave.healthy_since = is_open.then(|| since.unwrap_or(now));
            (wave.restarts, wave.gate) = (Some(restarts), Some(checks));
        });
        let is_late = self.is_past(self.deadline_of(place).as_ref());
        match shut {
            None if is_restless && is_late => {
                let why = "containers of services that were well are started again and again: kubectl opensdn status";
                self.fail(place, name, why);
            }
            None if is_late && unheard.is_some() => self.unheard(place, name, unheard),
            None => self.set(Phase::Running, format!("the wave {name} has to be well for a while")),
            Some(why) if is_late => self.fail(place, name, &why),
            Some(why) => self.set(Phase::Running, format!("behind the wave {name}: {why}")),
        }
    }

    /// They are asked every half a minute, and of many that are away it takes minutes.
    fn unheard(&mut self, place: usize, name: &str, service: Option<String>) {
        let service = service.unwrap_or_default();
        let deadline = self.deadline_of(place).as_deref().and_then(parse);
        if deadline.is_none_or(|deadline| self.at.now >= deadline + UNHEARD) {
            let why = format!("{service}: its daemons were not asked for introspect");
            return self.fail(place, name, &why);
        }
        let message =
            format!("behind the wave {name}: daemons of {service} are asked how they are");
        self.set(Phase::Running, message);
    }

    /// Why the API server has refused its images.
    pub(super) fn refusal(&self, id: &str) -> Option<String> {
        self.at.refusals.get(id).cloned()
    }

    fn skipped(&self) -> Vec<String> {
        let steps = self.status.steps.iter().flatten().filter(|step| step.state == State::Skipped);
        steps.map(|step| step.id.clone()).collect()
    }

    /// The wave was not well in time.
    pub(super) fn fail(&mut self, place: usize, name: &str, why: &str) {
        let now = self.now.clone();
        self.wave(place, |wave| {
            (wave.state, wave.finished_at) = (State::Failed, Some(now));
        });
        for step in self.steps_of(name) {
            self.step(step, |step| {
                if !is_over(step.state) {
                    // What is held stays so: nothing more is changed.
                    step.state = State::Failed;
                }
            });
        }
        let why = format!("the wave {name} was not well in time: {why}");
        let remarks = self.status.remarks.get_or_insert_default();
        // The last one alone.
        remarks.retain(|one| one.code != FAILURE);
        remarks.push(UpgradeRemark {
            code: FAILURE.to_owned(),
            severity: "Failed".to_owned(),
            message: gate::short(&why),
        });
        // On nodes that were not drained it interrupts what was to be moved away before.
        let default = match self.at.spec.wait_for_drain {
            Some(true) => OnFailure::Stop,
            _ => OnFailure::RollBack,
        };
        match self.at.spec.on_failure.unwrap_or(default) {
            OnFailure::RollBack => self.turn_back(&why),
            OnFailure::Stop => self.stop_for(&why),
        }
    }

    /// Nothing more is changed until a person decides.
    pub(super) fn stop(&mut self, place: usize, why: &str) {
        let now = self.now.clone();
        self.wave(place, |wave| {
            (wave.state, wave.finished_at) = (State::Failed, Some(now));
        });
        self.stop_for(why);
    }

    pub(super) fn stop_for(&mut self, why: &str) {
        let has_way_back = self.status.steps.iter().flatten().any(back::goes);
        let or_back = if has_way_back { ", or go back (rollback)" } else { "" };
        let message = format!(
            "{why}. Nothing more is started. When the cause is gone: kubectl opensdn upgrade retry; or leave a step out \
             (skip){or_back}"
        );
        self.set(Phase::Stopped, message);
    }

    fn succeed(&mut self) {
        let left_out = self.skipped();
        let message = match left_out.len() {
            0 => "all services run the new images".to_owned(),
            _ => format!(
                "all services run the new images but those left out: {}",
                left_out.join(", ")
            ),
        };
        self.end(Phase::Succeeded, message);
    }

    /// What a person decides after it had stopped.
    pub(super) fn after_a_stop(&mut self) {
        let is_on_its_way_back =
            self.status.steps.iter().flatten().any(|step| step.state == State::RollingBack);
        if self.is_rolled_back() && !is_on_its_way_back {
            return self.turn_back("as a user wants it");
        }
        let failed = self.status.steps.iter().flatten().filter(|step| step.state == State::Failed);
        let failed: Vec<String> = failed.map(|step| step.id.clone()).collect();
        let are_left_out = match failed.is_empty() {
            false => failed.iter().all(|id| self.left_out(id).is_some()),
            // Its images could not be had, and no step of it had started.
            true => self.is_one_left_out_of_the_images(),
        };
        let is_retried = self.at.spec.retries.unwrap_or(0) > self.status.retries.unwrap_or(0);
        if !is_retried && !are_left_out {
            return;
        }
        self.status.retries = self.at.spec.retries;
        if is_on_its_way_back {
            for wave in self.waves().iter_mut().filter(|wave| wave.state == State::RollingBack) {
                wave.deadline = None;
            }
            return self.set(Phase::RollingBack, "tried again, as a user wants it".to_owned());
        }
        let place = self.status.waves.iter().flatten().position(|wave| wave.state == State::Failed);
        if let Some(place) = place {
            let deadline = self.deadline();
            self.wave(place, |wave| {
                (wave.state, wave.deadline) = (State::Running, Some(deadline));
                (wave.finished_at, wave.healthy_since) = (None, None);
            });
        }
        for step in self.steps().iter_mut().filter(|step| step.state == State::Failed) {
            (step.state, step.set) = (State::Pending, None);
        }
        self.status.remarks.iter_mut().for_each(|all| all.retain(|one| one.code != FAILURE));
        self.set(Phase::Running, "tried again, as a user wants it".to_owned());
    }

    fn is_one_left_out_of_the_images(&self) -> bool {
        let mut waves = self.status.waves.iter().flatten();
        let mut steps = self.status.steps.iter().flatten();
        waves.any(|wave| wave.name == order::IMAGES && wave.state == State::Failed)
            && steps.any(|step| !is_over(step.state) && self.left_out(&step.id).is_some())
    }

    /// A wave that comes further has its whole time again: of many nodes one after the other none would be enough.
    pub(super) fn note_progress(&mut self, place: usize, reached: usize) {
        let reached = i64::try_from(reached).unwrap_or(i64::MAX);
        let deadline = self.deadline();
        self.wave(place, |wave| {
            if reached > wave.progress.unwrap_or_default() {
                (wave.progress, wave.deadline) = (Some(reached), Some(deadline));
            }
        });
    }

    /// How many pods of a wave are well with the images of that side.
    pub(super) fn pods_with(&self, name: &str, side: Side) -> usize {
        let steps = self.status.steps.iter().flatten().filter(|step| step.wave == name);
        let pods = steps.filter_map(|step| Some((step, self.service(&step.id)?)));
        pods.map(|(step, service)| {
            service.pods.iter().filter(|pod| pod.is_ready && pod.has(&step.images, side)).count()
        })
        .sum()
    }

    pub(super) fn deadline_of(&self, place: usize) -> Option<String> {
        self.wave_at(place)?.deadline.clone()
    }

    pub(super) fn finish_step(&mut self, place: usize, state: State, message: Option<String>) {
        let now = self.now.clone();
        let restarts =
            self.step_at(place).and_then(|step| Some(self.service(&step.id)?.restarts()));
        self.step(place, |step| {
            (step.state, step.finished_at, step.message) = (state, Some(now), message);
            (step.restarts, step.held) = (restarts, None);
        });
    }

    pub(super) fn wave(
        &mut self,
        place: usize,
        change: impl FnOnce(&mut opensdn_crds::upgrade::Wave),
    ) {
        if let Some(wave) = self.waves().get_mut(place) {
            change(wave);
        }
    }

    pub(super) fn step(
        &mut self,
        place: usize,
        change: impl FnOnce(&mut opensdn_crds::upgrade::Step),
    ) {
        if let Some(step) = self.steps().get_mut(place) {
            change(step);
        }
    }
}

/// Its first pod is not well, or not any more.
fn lose(step: &mut Step) {
    if step.canary_since.take().is_some() {
        step.canary_losses = Some(step.canary_losses.unwrap_or_default() + 1);
    }
}
