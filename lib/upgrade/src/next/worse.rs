//! Whether a service is worse with the pods that were replaced, as its daemons say: then no other is.

use std::time::Duration;

use opensdn_crds::upgrade::{State, Step};
use time::OffsetDateTime;

use super::{Run, is_of_nodes};
use crate::daemons;
use crate::health::{Pod, Service, Side};

/// So long at most the next pod waits on the way back for the daemons of the last: what they said before, beside others that
/// still have images that do not work, they may not say again.
const LAST: Duration = Duration::from_secs(2 * 60);

impl Run<'_> {
    /// In which respect, of a service that was well when it was planned. Of the first pod with the new images all counts that
    /// was heard; later what was heard since the last of them is ready, as one that is being replaced is missing for a moment.
    pub(super) fn worse(&self, step: &Step, service: &Service) -> Option<String> {
        let before = self.before(&service.id)?;
        let since = service.ready_since(&step.images, Side::New);
        let is_of_now = step.state == State::Canary
            || since
                .zip(service.daemons.as_ref())
                .is_some_and(|(since, daemons)| daemons.are_asked_since(since));
        let of_all = || daemons::worse(before, service).filter(|_| is_of_now);
        let of_new = || daemons::new_are_worse(before, service, &step.images);
        let found = of_all().or_else(of_new);
        // What is said of a step begins with its service anyway.
        let own = format!("{}: ", service.id);
        let found = found.map(|text| text.strip_prefix(&own).unwrap_or(&text).to_owned());
        found.or_else(|| self.lack_sessions(step, service, Side::New))
    }

    /// Why no other pod is replaced now, where daemons are asked: as many as may be away are, or are not known to be well.
    pub(super) fn is_full(&self, step: &Step, service: &Service, side: Side) -> Option<String> {
        if !self.before(&service.id).is_some_and(daemons::worked) {
            return None;
        }
        let daemons = service.daemons.as_ref()?;
        let is_unheard = |pod: &&Pod| {
            pod.ready_since.is_some_and(|ready| {
                !daemons.are_asked_since(ready) && self.is_waited_for(ready, side)
            })
        };
        let (replaced, left): (Vec<&Pod>, Vec<&Pod>) =
            service.pods.iter().partition(|pod| pod.has(&step.images, side));
        let going = left.iter().filter(|pod| pod.asked_to_end.is_some());
        let (ready, away): (Vec<&Pod>, Vec<&Pod>) =
            replaced.into_iter().partition(|pod| pod.is_ready);
        let unheard: Vec<&Pod> = ready.into_iter().filter(is_unheard).collect();
        let at_once =
            if is_of_nodes(step) { self.at.spec.vrouters_at_once.unwrap_or(1) } else { 1 };
        let all = i64::try_from(going.count() + away.len() + unheard.len()).unwrap_or(i64::MAX);
        if all < at_once.max(1) {
            return None;
        }
        let unheard = unheard.first().filter(|_| away.is_empty());
        let said = |pod: &&Pod| {
            format!("pod {} is ready; what its daemons say since then is not known yet", pod.name)
        };
        Some(unheard.map_or_else(|| service.trouble(), said))
    }

    /// Why no other pod gets its earlier images now: agents and control nodes find each other one pod at a time on the way back,
    /// too. One that is not ready serves none, and is replaced at once.
    pub(super) fn is_full_on_its_way_back(&self, step: &Step, service: &Service) -> Option<String> {
        let is_left = |pod: &&Pod| !pod.has(&step.images, Side::Earlier);
        if service.pods.iter().filter(is_left).any(|pod| !pod.is_ready) {
            return None;
        }
        let sessions = || {
            let since = service.ready_since(&step.images, Side::Earlier)?;
            let lack = self.lack_sessions(step, service, Side::Earlier);
            lack.filter(|_| self.is_waited_for(since, Side::Earlier))
        };
        self.is_full(step, service, Side::Earlier).or_else(sessions)
    }

    /// Whether daemons of a pod that is ready since then are waited for.
    fn is_waited_for(&self, ready: OffsetDateTime, side: Side) -> bool {
        side == Side::New || self.at.now < ready + LAST
    }

    /// An agent has sessions with two control nodes. Before the other of them is replaced it has to be back at this one.
    fn lack_sessions(&self, step: &Step, service: &Service, side: Side) -> Option<String> {
        if !step.id.starts_with("Control/") {
            return None;
        }
        let since = service.ready_since(&step.images, side)?;
        let before = self.status.snapshot.iter().flatten().filter(|one| one.ready);
        daemons::lack_sessions(before, self.at.services, since)
    }
}
