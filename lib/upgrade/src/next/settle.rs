//! Behind the steps of a wave, and of the way back: all has to be well for a while, and daemons have to say so.

use std::time::Duration;

use opensdn_crds::upgrade::{Phase, State};
use time::OffsetDateTime;

use super::{Run, parse, text};
use crate::gate;

/// So long after its time a wave waits for daemons to be asked.
pub(super) const UNHEARD: Duration = Duration::from_secs(10 * 60);
/// So long at most the end of the way back waits for daemons to say what they said before.
const BACK: Duration = Duration::from_secs(3 * 60);

impl Run<'_> {
    /// All steps are over: all has to be well for a while.
    pub(super) fn ask_gate(&mut self, place: usize, name: &str) {
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
        let has_lasted = self.has_lasted(since.as_ref());
        if has_lasted && unheard.is_none() {
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
        match (shut, unheard) {
            (None, _) if is_restless && is_late => {
                let why = "containers of services that were well are started again and again: kubectl opensdn status";
                self.fail(place, name, why);
            }
            (None, Some(service)) if is_late && !self.may_be_heard(place) => {
                let why = format!("{service}: its daemons were not asked for introspect");
                self.fail(place, name, &why);
            }
            (None, Some(service)) if has_lasted || is_late => {
                let message =
                    format!("behind the wave {name}: daemons of {service} are asked how they are");
                self.set(Phase::Running, message);
            }
            (None, _) => {
                self.set(Phase::Running, format!("the wave {name} has to be well for a while"));
            }
            (Some(why), _) if is_late => self.fail(place, name, &why),
            (Some(why), _) => self.set(Phase::Running, format!("behind the wave {name}: {why}")),
        }
    }

    /// Whether a wave that is late waits for daemons all the same. They are asked every half a minute, and of many that are
    /// away it takes minutes.
    pub(super) fn may_be_heard(&self, place: usize) -> bool {
        let deadline = self.deadline_of(place).as_deref().and_then(parse);
        deadline.is_some_and(|deadline| self.at.now < deadline + UNHEARD)
    }

    /// What is not as before, of services and their daemons, although all that goes back is back. `Err` while that may still
    /// change.
    pub(super) fn not_as_before(&self) -> Result<Option<String>, String> {
        let skipped = self.skipped();
        let skipped: Vec<&str> = skipped.iter().map(String::as_str).collect();
        let snapshot = self.status.snapshot.as_deref().unwrap_or_default();
        let waves = self.status.waves.iter().flatten();
        let ends = waves.filter_map(|wave| wave.finished_at.as_deref().and_then(parse));
        let since = ends.max().unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let unheard = gate::unheard(snapshot, self.at.services, &skipped, since);
        let worse = gate::shut(&gate::checks(snapshot, self.at.services, &skipped));
        let found = match (worse, unheard) {
            (Some(worse), _) => worse,
            (None, Some(service)) => format!("daemons of {service} were not asked since"),
            (None, None) => return Ok(None),
        };
        let is_over = self.at.now >= since + BACK.min(self.timeout());
        if is_over { Ok(Some(found)) } else { Err(found) }
    }
}
