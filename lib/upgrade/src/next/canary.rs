//! The first pod of a service with the new images: it has to be well for a while before the others follow.

use opensdn_crds::upgrade::{ServiceHealth, State, Step};

use super::{Run, parse};
use crate::daemons;
use crate::gate;
use crate::health::{Pod, Service, Side};

/// A first pod that was well so often, and then was not, has what is left of the time of its wave.
const MOST_LOSSES: i64 = 3;

impl Run<'_> {
    /// The first pod with the new images has to be well for a while, and all others with it.
    pub(super) fn canary(&mut self, place: usize, service: &Service) {
        let Some(step) = self.step_at(place).cloned() else { return };
        let first = service.pods.iter().find(|pod| pod.has(&step.images, Side::New));
        // One that lacked pods before may lack them still.
        let before = self.before(&service.id);
        let others_are_ready = before.is_none() || service.pods.iter().all(|pod| pod.is_ready);
        let worse = self.worse(&step, service);
        let message = match first {
            Some(pod) if pod.is_ready && others_are_ready && worse.is_none() => {
                match self.look_at(place, &step, service, pod) {
                    Some(message) => message,
                    None => return,
                }
            }
            first => {
                self.step(place, lose);
                match first {
                    Some(pod) if pod.is_ready && others_are_ready => worse.unwrap_or_default(),
                    Some(pod) if pod.is_ready => self.trouble_of(service),
                    Some(pod) => {
                        format!("pod {}, the first with the new images: {}", pod.name, pod.why())
                    }
                    None => self.refusal(&step.id).unwrap_or_else(|| self.trouble_of(service)),
                }
            }
        };
        let message = self.with_losses(place, message);
        self.step(place, |step| step.message = Some(gate::short(&message)));
    }

    /// One look at a first pod that is ready: what it waits for. Nothing, if the others follow it now.
    fn look_at(
        &mut self,
        place: usize,
        step: &Step,
        service: &Service,
        pod: &Pod,
    ) -> Option<String> {
        let restarts = service.restarts();
        // One that starts again and again, or was made again, is ready in between.
        let is_restless = step.restarts.is_some_and(|before| restarts > before)
            || step.canary_pod.as_ref().is_some_and(|before| *before != pod.uid);
        let is_well = !is_restless && self.has_lasted(step.canary_since.as_ref());
        let awaits_daemons = self.awaits_daemons(step);
        if is_well && !awaits_daemons {
            self.step(place, |step| {
                (step.state, step.message, step.held) = (State::Running, None, None);
                step.first_worked = Some(true);
            });
            return None;
        }
        let now = self.now.clone();
        self.step(place, |step| {
            if is_restless {
                lose(step);
            } else {
                step.canary_since.get_or_insert(now);
            }
            (step.restarts, step.canary_pod) = (Some(restarts), Some(pod.uid.clone()));
        });
        let said = match (is_restless, awaits_daemons) {
            (true, _) => {
                "; a container of the service was started again, or that pod was made again: it is looked at from the \
                 beginning"
            }
            (false, true) => {
                " and is well; what its daemons say by introspect since then is not known yet"
            }
            (false, false) => ", and has to be well for a while",
        };
        Some(format!("pod {} has the new images{said}", pod.name))
    }

    /// Whether the first pod has been well for long enough, and its daemons have not been asked since it is.
    pub(super) fn awaits_daemons(&self, step: &Step) -> bool {
        let since = step.canary_since.as_ref();
        let asked = self.service(&step.id).zip(self.before(&step.id));
        step.state == State::Canary
            && self.has_lasted(since)
            && since.and_then(|since| parse(since)).zip(asked).is_some_and(
                |(since, (service, before))| daemons::are_unheard(before, service, since),
            )
    }

    /// Whether the time of its wave does not run: it is well, and has to be for a while.
    pub(super) fn is_looked_at(&self, step: &Step) -> bool {
        step.state == State::Canary
            && step.canary_since.is_some()
            && step.canary_losses.unwrap_or_default() < MOST_LOSSES
            && !self.awaits_daemons(step)
    }

    /// What is the matter with a service, of which there may be fewer pods than before.
    pub(super) fn trouble_of(&self, service: &Service) -> String {
        let snapshot = self.status.snapshot.iter().flatten();
        let before = snapshot.filter(|one| one.service == service.id).map(|one| one.pods).max();
        let (there, before) = (service.pods.len(), before.unwrap_or_default());
        if usize::try_from(before).is_ok_and(|before| there < before) {
            let namespace = self.at.upgrade.split('/').next().unwrap_or_default();
            return format!(
                "there are {there} of its {before} pods: where one is not made again, kubectl get events -n {namespace} \
                 --field-selector reason=FailedCreate says why, such as a quota"
            );
        }
        if service.pods.iter().all(|pod| pod.is_ready) && self.awaits_its_first(service) {
            return "waits for its first pod with the new images".to_owned();
        }
        service.trouble()
    }

    fn awaits_its_first(&self, service: &Service) -> bool {
        let mut steps = self.status.steps.iter().flatten();
        steps.any(|step| {
            step.id == service.id
                && step.state == State::Canary
                && !service.pods.iter().any(|pod| pod.has(&step.images, Side::New))
        })
    }

    /// How a service was that was well when it was planned.
    pub(super) fn before(&self, id: &str) -> Option<&ServiceHealth> {
        let mut snapshot = self.status.snapshot.iter().flatten();
        snapshot.find(|one| one.service == id && one.ready)
    }

    /// With how often its first pod was well before.
    fn with_losses(&self, place: usize, message: String) -> String {
        match self.step_at(place).and_then(|step| step.canary_losses) {
            None => message,
            Some(1) => format!("{message}; it was well once, and then was not"),
            Some(losses) => format!("{message}; it was well {losses} times, and then was not"),
        }
    }
}

/// Its first pod is not well, or not any more.
fn lose(step: &mut Step) {
    if step.canary_since.take().is_some() {
        step.canary_losses = Some(step.canary_losses.unwrap_or_default() + 1);
    }
}
