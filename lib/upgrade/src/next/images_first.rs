//! The wave in which nodes pull the new images.

use opensdn_crds::upgrade::{GateCheck, ImageChange, Phase, State, Step};

use super::{Crossed, Run, is_as_wanted, is_over};
use crate::gate::short;
use crate::pull;

/// As many nodes are named in one message.
const MOST: usize = 4;

impl Run<'_> {
    /// Why the images of a step are not pulled: no node runs what only the status asks for.
    fn is_crossed(&self, step: &Step) -> Option<String> {
        let crossed = |crossed: Crossed| Some(format!("{}: {crossed}", step.id));
        let Some(declared) = self.declared.as_ref() else { return crossed(Crossed::ManagerGone) };
        let service = declared.iter().find(|one| one.id() == step.id)?;
        let is_there = |change: &ImageChange| {
            let mut images = service.images.iter().filter(|one| one.container == change.container);
            images.all(|one| one.image == change.from || one.image == change.to)
        };
        let is_open = !is_over(step.state);
        let is_asked_for = is_as_wanted(service, &step.images, self.at.spec);
        match is_open && !(is_asked_for && step.images.iter().all(is_there)) {
            true if !is_asked_for => crossed(Crossed::Status),
            true => Some(format!(
                "{}: its images were changed in the Manager since it was planned",
                step.id
            )),
            false => None,
        }
    }

    /// One look at it: it is done when all nodes have what they need.
    pub(super) fn pull(&mut self, place: usize, name: &str) {
        for step in 0..self.steps().len() {
            let open = self.step_at(step).filter(|step| !is_over(step.state));
            if let Some(why) = open.and_then(|step| self.left_out(&step.id)) {
                self.finish_step(step, State::Skipped, Some(why));
            }
        }
        let steps = self.status.steps.as_deref().unwrap_or_default();
        if let Some(why) = steps.iter().find_map(|step| self.is_crossed(step)) {
            return self.stop(place, &why);
        }
        let wanted = pull::wanted(steps, self.at.services);
        let mut waits: Vec<String> = wanted
            .iter()
            .filter_map(|pull| {
                let why = pull.waits(self.at.pullers)?;
                Some(self.refusal(&pull.node).map_or(why, |refusal| short(&refusal)))
            })
            .collect();
        let pulled = wanted.iter().map(|pull| pull.pulled(self.at.pullers)).sum();
        self.note_progress(place, pulled);
        let (nodes, ready) = (wanted.len(), wanted.len().saturating_sub(waits.len()));
        let more = waits.len().saturating_sub(MOST);
        waits.truncate(MOST);
        if more > 0 {
            waits.push(format!("and {more} more"));
        }
        let message = (!waits.is_empty())
            .then(|| format!("{ready} of {nodes} nodes have the new images; {}", waits.join("; ")));
        let check = GateCheck {
            name: "images-on-nodes".to_owned(),
            passed: message.is_none(),
            message: message.clone(),
        };
        let finished = message.is_none().then(|| self.now.clone());
        self.wave(place, |wave| {
            wave.gate = Some(vec![check]);
            if finished.is_some() {
                (wave.state, wave.finished_at) = (State::Succeeded, finished);
            }
        });
        match message {
            None => self.set(Phase::Running, format!("{nodes} nodes have the new images")),
            Some(why) if self.is_past(self.deadline_of(place).as_ref()) => {
                self.fail(place, name, &why);
            }
            Some(why) => {
                self.pulls = wanted;
                self.set(Phase::Running, why);
            }
        }
    }
}
