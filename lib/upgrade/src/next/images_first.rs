//! The wave in which nodes pull the new images.

use opensdn_crds::upgrade::{GateCheck, ImageChange, Phase, State, Step};

use super::{Crossed, Run, is_as_wanted, is_over};
use crate::gate::{self, short};
use crate::pull;

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
        if is_over(step.state) {
            return None;
        }
        if !is_as_wanted(service, &step.images, self.at.spec) {
            return crossed(Crossed::Status);
        }
        let is_edited = !step.images.iter().all(is_there);
        is_edited.then(|| {
            format!("{}: its images were changed in the Manager since it was planned", step.id)
        })
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
        let waits: Vec<String> = wanted
            .iter()
            .filter_map(|pull| {
                let why = pull.waits(self.at.pullers)?;
                Some(self.refusal(&pull.node).map_or(why, |refusal| short(&refusal)))
            })
            .collect();
        let pulled = wanted.iter().map(|pull| pull.pulled(self.at.pullers)).sum();
        self.note_progress(place, pulled);
        let (nodes, ready) = (wanted.len(), wanted.len().saturating_sub(waits.len()));
        let check = gate::check("images-on-nodes", &waits);
        let message = check
            .message
            .as_ref()
            .map(|waits| format!("{ready} of {nodes} nodes have the new images; {waits}"));
        let check = GateCheck { message: message.clone(), ..check };
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
