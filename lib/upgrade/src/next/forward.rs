//! From wave to wave.

use opensdn_crds::upgrade::{OnFailure, Phase, State, Step, UpgradeRemark};
use opensdn_error_chain::is_of_webhook;

use super::{
    Crossed, FAILURE, MOST_TRIED, Run, TRIED_AGAIN, back, is_failure, is_of_nodes, is_over, parse,
};
use crate::drain;
use crate::gate;
use crate::health::{Pod, Side};
use crate::order;
use crate::settled;

/// Until what Kubernetes counts is seen here.
const SEEN: time::Duration = time::Duration::seconds(10);

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
        // A pod that is being replaced gets its successor; and what is left out all of its earlier images.
        let is_at_work = |step: &Step| match step.state {
            State::Running => !self.rests(step),
            State::RollingBack => true,
            _ => false,
        };
        let mut steps = self.status.steps.iter().flatten().filter(|step| step.wave == wave);
        if is_begun && steps.any(is_at_work) {
            return None;
        }
        let resume = self.command("resume");
        if self.at.spec.paused == Some(true) {
            return Some(match is_begun {
                true if wave == order::IMAGES => format!("paused in the wave {wave}: {resume}"),
                true => format!(
                    "paused in the wave {wave}; where one pod has the new images, the others wait: {resume}"
                ),
                false => format!("paused in front of the wave {wave}: {resume}"),
            });
        }
        let is_named = self.at.spec.pause_before.iter().flatten().any(|one| one == wave);
        (is_named && !is_begun).then(|| {
            format!("paused before the wave {wave}, as spec.pauseBefore wants it: {resume}")
        })
    }

    /// Whether no pod of a step is being replaced, and none is before it is resumed: between two nodes, and never between
    /// two members of a database.
    fn rests(&self, step: &Step) -> bool {
        let is_there = |pod: &Pod| {
            let stays = !pod.has(&step.images, Side::New) && pod.asked_to_end.is_none();
            pod.is_ready || stays
        };
        is_of_nodes(step)
            && step.held == Some(true)
            && self.service(&step.id).is_none_or(|service| service.pods.iter().all(is_there))
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
        let is_held = |step: &&&Step| {
            self.is_looked_at(step)
                || self.waits_for_drain(step).is_some()
                || self.is_unanswered(&step.id)
                || self.settles(step)
        };
        let is_waited_for = waits.iter().all(|step| is_held(&step));
        let others = waits.iter().filter(|step| !is_held(step));
        let may_be_heard =
            others.clone().all(|step| self.awaits_daemons(step)) && self.may_be_heard(place);
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
        } else if self.is_past(self.deadline_of(place).as_ref()) && !may_be_heard {
            return self.fail(place, name, &message);
        }
        let pauses = match self.at.spec.paused {
            Some(true) => "pauses as soon as what is under way is done; ",
            _ => "",
        };
        self.set(Phase::Running, format!("{pauses}{message}"));
    }

    /// What a person has to do before another vrouter is replaced.
    fn waits_for_drain(&self, step: &Step) -> Option<String> {
        if self.at.spec.wait_for_drain != Some(true) || !is_of_nodes(step) {
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
                let worse = self.worse(&step, &service);
                let rests = self.at.spec.paused == Some(true) && is_of_nodes(&step);
                let waits = worse.or_else(|| self.is_full(&step, &service, Side::New));
                let is_held = rests || waits.is_some();
                let message = self.refusal(&step.id).or(waits);
                let message = message.unwrap_or_else(|| self.trouble_of(&service));
                self.step(place, |step| {
                    (step.message, step.held) =
                        (Some(gate::short(&message)), is_held.then_some(true));
                });
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
                let message = self.goes_back(place, step, &service);
                let message = gate::short(&format!("gets its earlier images: {message}"));
                self.step(place, |step| step.message = Some(message));
            }
            _ => self.finish_step(place, State::Skipped, Some(why.to_owned())),
        }
    }

    /// Why the API server has refused its images.
    pub(super) fn refusal(&self, id: &str) -> Option<String> {
        self.at.refusals.get(id).cloned()
    }

    /// Whether all its pods are ready, and the last of them not for as long as Kubernetes wants before the next is replaced: that
    /// may be longer than a wave has.
    fn settles(&self, step: &Step) -> bool {
        let kind = step.id.split('/').next().unwrap_or_default();
        let Some(seconds) = settled::of_kind(kind) else { return false };
        let Some(service) = self.service(&step.id) else { return false };
        let since = service.pods.iter().filter_map(|pod| pod.ready_since).max();
        let wanted = time::Duration::seconds(seconds.into()) + SEEN;
        service.pods.iter().all(|pod| pod.is_ready)
            && since.is_some_and(|since| self.at.now - since < wanted)
    }

    /// Whether a webhook did not answer when its images were to be set: that says nothing of them, and a way back would ask the
    /// same webhook.
    fn is_unanswered(&self, id: &str) -> bool {
        self.at.refusals.get(id).is_some_and(|why| is_of_webhook(why))
    }

    pub(super) fn skipped(&self) -> Vec<String> {
        let steps = self.status.steps.iter().flatten().filter(|step| step.state == State::Skipped);
        steps.map(|step| step.id.clone()).collect()
    }

    /// The wave was not well in time.
    pub(super) fn fail(&mut self, place: usize, name: &str, why: &str) {
        let now = self.now.clone();
        let stays = self.is_of_earlier_pods(name) || self.is_past_the_first_node(name);
        let leaves_out = self.waits_for_what_is_left_out(name);
        self.wave(place, |wave| {
            (wave.state, wave.finished_at) = (State::Failed, Some(now));
        });
        for place in self.steps_of(name) {
            let is_left_out = self.is_left_out(place);
            self.step(place, |step| {
                if !is_over(step.state) {
                    // What is held stays so: nothing more is changed.
                    step.state = State::Failed;
                    step.left_out_before = is_left_out.then_some(true);
                }
            });
        }
        let why = format!("the wave {name} was not well in time: {why}");
        let remarks = self.status.remarks.get_or_insert_default();
        // The last one alone.
        remarks.retain(|one| !is_failure(one));
        remarks.push(UpgradeRemark {
            code: FAILURE.to_owned(),
            severity: "Failed".to_owned(),
            message: gate::short(&why),
        });
        // The way back interrupts nodes that were not drained, and those whose vrouter is well; and it heals no pod that has its
        // earlier images.
        let default = match self.at.spec.wait_for_drain == Some(true) || stays {
            true => OnFailure::Stop,
            false => OnFailure::RollBack,
        };
        match self.at.spec.on_failure.unwrap_or(default) {
            OnFailure::RollBack if !leaves_out => self.turn_back(&why),
            _ => self.stop_for(&why),
        }
    }

    /// Whether all that a wave waits for is left out, and gets its earlier images: more of the same heals nothing.
    fn waits_for_what_is_left_out(&self, name: &str) -> bool {
        self.waits_for_such_alone(name, |step| self.left_out(&step.id).is_some())
    }

    /// Whether a wave waits for something, and for such steps alone.
    fn waits_for_such_alone(&self, name: &str, is_such: impl Fn(&Step) -> bool) -> bool {
        let steps = self.steps_of(name).into_iter().filter_map(|place| self.step_at(place));
        let mut waiting = steps.filter(|step| !is_over(step.state)).peekable();
        waiting.peek().is_some() && waiting.all(is_such)
    }

    /// Whether a vrouter has worked with the new images: the image is none that cannot work, and a way back would cut off the
    /// workloads of all nodes again for what may be the matter of one.
    fn is_past_the_first_node(&self, name: &str) -> bool {
        let mut steps = self.steps_of(name).into_iter().filter_map(|place| self.step_at(place));
        steps.any(|step| is_of_nodes(step) && step.first_worked == Some(true))
    }

    /// Whether a wave waits for pods with the earlier images alone, as of a node that is lost, and those with the new ones, if
    /// there are any, are well.
    fn is_of_earlier_pods(&self, name: &str) -> bool {
        self.waits_for_such_alone(name, |step| {
            let Some(service) = self.service(&step.id) else { return false };
            let (new, earlier): (Vec<&Pod>, Vec<&Pod>) =
                service.pods.iter().partition(|pod| pod.has(&step.images, Side::New));
            new.iter().all(|pod| pod.is_ready)
                && earlier.iter().any(|pod| !pod.is_ready)
                && self.worse(step, service).is_none()
        })
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
        let may_go_back = self.status.steps.iter().flatten().any(back::goes);
        let or_back = match may_go_back && !back::is_on_its_way_back(&self.status) {
            true => ", or go back (rollback)",
            false => "",
        };
        let message = format!(
            "{why}. Nothing more is started. When the cause is gone: {}; or leave a step out (skip){or_back}",
            self.command("retry")
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
        let is_on_its_way_back = back::is_on_its_way_back(&self.status);
        if self.is_rolled_back() && !is_on_its_way_back {
            return self.turn_back("as a user wants it");
        }
        let steps = self.status.steps.iter().flatten();
        let mut failed = steps.filter(|step| step.state == State::Failed).peekable();
        let are_left_out = match failed.peek() {
            // What was left out before it failed is no answer to that.
            Some(_) => failed.all(|step| {
                step.left_out_before != Some(true) && self.left_out(&step.id).is_some()
            }),
            // Its images could not be had, and no step of it had started.
            None => self.is_one_left_out_of_the_images(),
        };
        let is_retried = self.at.spec.retries.unwrap_or(0) > self.status.retries.unwrap_or(0);
        if !is_retried && !are_left_out {
            return;
        }
        self.status.retries = self.at.spec.retries;
        let deadline = self.deadline_of_another_try();
        if is_on_its_way_back {
            for wave in self.waves().iter_mut().filter(|wave| wave.state == State::RollingBack) {
                // The others have their time when they begin.
                wave.deadline = wave.deadline.as_ref().map(|_| deadline.clone());
            }
            return self.set(Phase::RollingBack, "tried again, as a user wants it".to_owned());
        }
        let place = self.status.waves.iter().flatten().position(|wave| wave.state == State::Failed);
        if let Some(place) = place {
            self.wave(place, |wave| {
                (wave.state, wave.deadline) = (State::Running, Some(deadline));
                (wave.finished_at, wave.healthy_since) = (None, None);
            });
        }
        for step in self.steps().iter_mut().filter(|step| step.state == State::Failed) {
            (step.state, step.set) = (State::Pending, None);
        }
        self.note_another_try();
        self.set(Phase::Running, "tried again, as a user wants it".to_owned());
    }

    /// What failed is kept for the report.
    fn note_another_try(&mut self) {
        let Some(remarks) = &mut self.status.remarks else { return };
        let tried = remarks.iter().filter(|one| one.code == FAILURE && !is_failure(one)).count();
        if tried >= MOST_TRIED {
            remarks.retain(|one| !is_failure(one));
        }
        for remark in remarks.iter_mut().filter(|one| is_failure(one)) {
            remark.severity = TRIED_AGAIN.to_owned();
            remark.message = gate::short(&format!("tried again: {}", remark.message));
        }
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
