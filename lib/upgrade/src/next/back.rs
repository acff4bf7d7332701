//! The way back: waves in reverse, as far as there is one.

use opensdn_crds::upgrade::{Phase, State, Step, UpgradeStatus};

use super::{Crossed, Run};
use crate::gate;
use crate::health::{Service, Side};

/// Why a step that was begun keeps its new images: they have run, and there is no way back from that.
pub(super) fn stays(step: &Step) -> Option<&String> {
    step.no_way_back.as_ref().filter(|_| step.ran == Some(true))
}

/// Whether a step gets its earlier images when all goes back.
pub(super) fn goes(step: &Step) -> bool {
    // Also one that was asked for another try: it is Pending, and has its new images since the first.
    let is_over = matches!(step.state, State::RolledBack | State::Skipped);
    step.attempts.is_some() && !is_over && stays(step).is_none()
}

/// Whether services get their earlier images again, also where that has stopped. A step alone does not say so: one that is
/// left out on the way to the new images gets its earlier ones, too.
#[must_use]
pub fn is_on_its_way_back(status: &UpgradeStatus) -> bool {
    status.waves.iter().flatten().any(|wave| wave.state == State::RollingBack)
}

/// From here on it gets its earlier images. It is held until its object says these: before, its other pods would get the new
/// ones.
pub(super) fn turn(step: &mut Step) {
    (step.state, step.set, step.held) = (State::RollingBack, None, Some(true));
    step.first_worked = None;
}

impl Run<'_> {
    /// From here on services get the images that they had.
    pub(super) fn turn_back(&mut self, why: &str) {
        let mut count = 0;
        let mut staying = Vec::new();
        for place in 0..self.waves().len() {
            let Some(name) = self.waves().get(place).map(|wave| wave.name.clone()) else {
                continue;
            };
            let mut goes_back = false;
            for place in self.steps_of(&name) {
                let is_left_out = self.is_left_out(place);
                self.step(place, |step| {
                    let is_failed = step.attempts.is_some() && step.state != State::RolledBack;
                    if goes(step) {
                        turn(step);
                        step.left_out_before = is_left_out.then_some(true);
                        (step.finished_at, step.message) = (None, None);
                        (count, goes_back) = (count + 1, true);
                    } else if let Some(reason) = stays(step).filter(|_| is_failed) {
                        staying.push(reason.clone());
                    }
                });
            }
            if goes_back {
                self.wave(place, |wave| {
                    wave.state = State::RollingBack;
                    (wave.deadline, wave.finished_at, wave.healthy_since) = (None, None, None);
                    wave.progress = None;
                });
            }
        }
        let stays = match staying.is_empty() {
            true => String::new(),
            false => format!("; what stays as it is: {}", gate::short(&staying.join("; "))),
        };
        self.status.finished_at = None;
        match (count, staying.is_empty()) {
            (0, false) => {
                let (namespace, name) = self.at.upgrade.split_once('/').unwrap_or_default();
                self.stop_for(&format!(
                    "{why}; there is no way back{stays}; the way out is another Upgrade with an image that works, after kubectl delete \
                     upgrade {name} -n {namespace}"
                ));
            }
            (0, true) => self.end(Phase::RolledBack, format!("{why}; nothing had been changed")),
            _ => self.set(
                Phase::RollingBack,
                format!("{why}; {count} services get their earlier images{stays}"),
            ),
        }
    }

    /// One look at the wave that is on its way back.
    pub(super) fn back(&mut self) {
        self.status.retries = self.at.spec.retries;
        let waves = self.status.waves.as_deref().unwrap_or_default();
        let Some(place) = waves.iter().rposition(|wave| wave.state == State::RollingBack) else {
            return self.is_back();
        };
        let Some(wave) = self.wave_at(place).cloned() else { return };
        if let Some(why) = self.at.paused {
            // Its whole time begins when it is released.
            self.wave(place, |wave| wave.deadline = None);
            return self.set(Phase::RollingBack, format!("the Manager is paused: {why}"));
        }
        if wave.deadline.is_none() {
            let deadline = self.deadline();
            return self.wave(place, |wave| wave.deadline = Some(deadline));
        }
        let mut waits = Vec::new();
        for step in self.steps_of(&wave.name) {
            match self.back_of(step) {
                Ok(None) => {}
                Ok(Some(text)) => waits.push(text),
                Err(why) => return self.stop_for(&format!("on the way back {why}")),
            }
        }
        if waits.is_empty() {
            let now = self.now.clone();
            self.wave(place, |wave| {
                (wave.state, wave.finished_at) = (State::RolledBack, Some(now));
            });
            return self.set(Phase::RollingBack, format!("the wave {} is back", wave.name));
        }
        let text = waits.join("; ");
        self.note_progress(place, self.pods_with(&wave.name, Side::Earlier));
        if self.is_past(self.deadline_of(place).as_ref()) {
            return self
                .stop_for(&format!("the way back failed at the wave {}: {text}", wave.name));
        }
        self.set(Phase::RollingBack, text);
    }

    /// One look at a step: what it waits for, or what a person has to decide.
    fn back_of(&mut self, place: usize) -> Result<Option<String>, String> {
        let Some(step) = self.step_at(place).cloned() else { return Ok(None) };
        if step.state != State::RollingBack {
            return Ok(None);
        }
        let left_out = self.left_out(&step.id);
        if let Some(why) = left_out.filter(|_| step.left_out_before != Some(true)) {
            self.finish_step(place, State::Skipped, Some(why));
            return Ok(None);
        }
        match self.ensure(place, &step, Side::Earlier) {
            Ok(()) => {}
            Err(Crossed::ServiceGone) => {
                self.finish_step(place, State::Skipped, Some(Crossed::ServiceGone.to_string()));
                return Ok(None);
            }
            Err(crossed) => {
                self.step(place, |step| step.message = Some(crossed.to_string()));
                return Err(format!("{}: {crossed}", step.id));
            }
        }
        let Some(service) = self.service(&step.id).cloned() else {
            return Ok(Some(format!("{}: its object is not there", step.id)));
        };
        if service.is_done(&step.images, Side::Earlier) {
            self.finish_step(place, State::RolledBack, None);
            return Ok(None);
        }
        let message = self.goes_back(place, &step, &service);
        Ok(Some(format!("{}: {message}", step.id)))
    }

    /// What a step on its way back waits for.
    pub(super) fn goes_back(&mut self, place: usize, step: &Step, service: &Service) -> String {
        let waits = self.is_full_on_its_way_back(step, service);
        let is_held = !service.says(&step.images, Side::Earlier) || waits.is_some();
        let message = self.refusal(&step.id).or(waits).unwrap_or_else(|| self.trouble_of(service));
        let message = gate::short(&message);
        self.step(place, |step| {
            step.message = Some(message.clone());
            step.held = is_held.then_some(true);
        });
        message
    }

    fn is_back(&mut self) {
        let not_as_before = match self.not_as_before() {
            Ok(found) => found,
            Err(waits) => {
                let message = format!("services run their earlier images again; waits: {waits}");
                return self.set(Phase::RollingBack, gate::short(&message));
            }
        };
        let steps = self.status.steps.iter().flatten();
        let of = |is: fn(&Step) -> bool| -> Vec<String> {
            steps.clone().filter(|step| is(step)).map(|step| step.id.clone()).collect()
        };
        let kept = of(|step| stays(step).is_some() && step.state != State::RolledBack);
        let left_out = of(|step| step.state == State::Skipped && step.attempts.is_some());
        let mut message = "services run their earlier images again".to_owned();
        if !kept.is_empty() {
            message.push_str(&format!("; without a way back stay {}", kept.join(", ")));
        }
        if !left_out.is_empty() {
            message.push_str(&format!("; left out were {}", left_out.join(", ")));
        }
        if let Some(found) = not_as_before {
            message.push_str(&format!("; not as before: {}", gate::short(&found)));
        }
        let why = match self.reason_of_turn() {
            why if why.is_empty() && self.is_rolled_back() => ", as a user wanted it".to_owned(),
            why => why,
        };
        self.end(Phase::RolledBack, format!("{message}{why}"));
    }

    /// What the first wave failed by, for the last message.
    fn reason_of_turn(&self) -> String {
        let bad = self.status.remarks.iter().flatten().find(|one| super::is_failure(one));
        bad.map_or_else(String::new, |one| format!(". It failed: {}", one.message))
    }

    /// After all was done, a user may still want it back.
    pub(super) fn after_success(&mut self) {
        if !self.is_rolled_back() || self.status.steps.as_ref().is_none_or(Vec::is_empty) {
            return;
        }
        match self.at.other {
            Some(other) => {
                let message = format!("the way back waits for {other} of the same Manager");
                self.status.message = Some(message);
            }
            None => self.turn_back("as a user wants it"),
        }
    }
}
