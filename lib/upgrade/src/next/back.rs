//! The way back: waves in reverse, as far as there is one.

use opensdn_crds::upgrade::{Phase, State};

use super::{Crossed, Run};
use crate::gate;
use crate::health::Side;

impl Run<'_> {
    /// From here on services get the images that they had.
    pub(super) fn turn_back(&mut self, why: &str) {
        let waves = self.status.waves.clone().unwrap_or_default();
        let is_begun = |state: State| !matches!(state, State::Pending | State::RolledBack);
        let last =
            waves.iter().rposition(|wave| wave.no_way_back.is_some() && is_begun(wave.state));
        let from = last.map_or(0, |last| last + 1);
        let mut count = 0;
        for (place, wave) in waves.iter().enumerate().skip(from) {
            if !is_begun(wave.state) {
                continue;
            }
            for step in self.steps_of(&wave.name) {
                self.step(step, |step| {
                    if step.attempts.is_some() && is_begun(step.state) {
                        step.state = State::RollingBack;
                        (step.finished_at, step.message) = (None, None);
                        count += 1;
                    }
                });
            }
            self.wave(place, |wave| {
                wave.state = State::RollingBack;
                (wave.deadline, wave.finished_at, wave.healthy_since) = (None, None, None);
            });
        }
        let stays = last.and_then(|last| waves.get(last)).map(|wave| {
            format!(
                "; the waves up to {} stay: {}",
                wave.name,
                wave.no_way_back.as_deref().unwrap_or_default()
            )
        });
        let stays = stays.unwrap_or_default();
        self.status.finished_at = None;
        match (count, last) {
            (0, Some(_)) => self.stop_for(&format!("{why}; there is no way back{stays}")),
            (0, None) => self.end(Phase::RolledBack, format!("{why}; nothing had been changed")),
            _ => self.set(
                Phase::RollingBack,
                format!("{why}; {count} services get their earlier images{stays}"),
            ),
        }
    }

    /// One look at the wave that is on its way back.
    pub(super) fn back(&mut self) {
        self.status.retries = self.at.spec.retries;
        let waves = self.status.waves.iter().flatten();
        let place = waves
            .clone()
            .collect::<Vec<_>>()
            .iter()
            .rposition(|wave| wave.state == State::RollingBack);
        let Some(place) = place else { return self.is_back() };
        let Some(wave) = waves.clone().nth(place).cloned() else { return };
        if wave.deadline.is_none() {
            let deadline = self.deadline();
            return self.wave(place, |wave| wave.deadline = Some(deadline));
        }
        if let Some(why) = self.at.paused {
            return self.set(Phase::RollingBack, format!("the Manager is paused: {why}"));
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
        if self.is_past(wave.deadline.as_ref()) {
            return self
                .stop_for(&format!("the way back failed at the wave {}: {text}", wave.name));
        }
        self.set(Phase::RollingBack, text);
    }

    /// One look at a step: what it waits for, or what a person has to decide.
    fn back_of(&mut self, place: usize) -> Result<Option<String>, String> {
        let Some(step) = self.status.steps.iter().flatten().nth(place).cloned() else {
            return Ok(None);
        };
        if step.state != State::RollingBack {
            return Ok(None);
        }
        if let Some(why) = self.left_out(&step.id).filter(|_| step.message.is_some()) {
            self.finish_step(place, State::Skipped, Some(why));
            return Ok(None);
        }
        match self.ensure(&step.id, &step.images, Side::Earlier) {
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
        let Some(service) = self.service(&step.id) else {
            return Ok(Some(format!("{}: its object is not there", step.id)));
        };
        if service.is_done(&step.images, Side::Earlier) {
            self.finish_step(place, State::RolledBack, None);
            return Ok(None);
        }
        let message = gate::short(&service.trouble());
        self.step(place, |step| step.message = Some(message.clone()));
        Ok(Some(format!("{}: {message}", step.id)))
    }

    fn is_back(&mut self) {
        let stay = self.status.waves.iter().flatten().filter(|wave| wave.state == State::Succeeded);
        let stay: Vec<_> = stay.map(|wave| wave.name.clone()).collect();
        let message = match stay.len() {
            0 => "all services run their earlier images again".to_owned(),
            _ => format!(
                "services run their earlier images again, but for the waves {}, behind which there is no way back",
                stay.join(", ")
            ),
        };
        let why = self.reason_of_turn();
        self.end(Phase::RolledBack, format!("{message}{why}"));
    }

    /// What the first wave failed by, for the last message.
    fn reason_of_turn(&self) -> String {
        let bad = self.status.remarks.iter().flatten().find(|one| one.code == super::FAILURE);
        bad.map_or_else(String::new, |one| format!(". It failed: {}", one.message))
    }

    /// After all was done, a user may still want it back.
    pub(super) fn after_success(&mut self) {
        if self.is_rolled_back()
            && self.status.steps.as_ref().is_some_and(|steps| !steps.is_empty())
        {
            self.turn_back("as a user wants it");
        }
    }
}
