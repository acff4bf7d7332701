//! What has happened between two looks at an Upgrade: a line for each wave, each step and the Upgrade itself that has
//! another state, or says something else.

use opensdn_crds::upgrade::{Phase, State, Upgrade, UpgradeStatus};
use serde::Serialize;

use super::stage;
use crate::ui::one_line;

/// Something that has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Change {
    /// The Upgrade: namespace and name.
    upgrade: String,
    /// The wave, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    wave: Option<String>,
    /// The step, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    /// The phase, or the state of the wave or the step.
    state: &'static str,
    /// What it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Change {
    /// For people, in one line.
    pub(crate) fn text(&self) -> String {
        let subject = match (&self.wave, &self.step) {
            (_, Some(step)) => format!("step {step}"),
            (Some(wave), None) => format!("wave {wave}"),
            (None, None) => "upgrade".to_owned(),
        };
        let message = self.message.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
        one_line(&format!("{subject} {}{message}", self.state))
    }
}

/// What was seen last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    before: UpgradeStatus,
}

impl Progress {
    /// What has happened since the look before; at the first one all that has a state.
    pub(crate) fn look(&mut self, upgrade: &Upgrade) -> Vec<Change> {
        let (now, id) = (stage::status(upgrade), stage::id(upgrade));
        let change = || Change { upgrade: id.clone(), ..Change::default() };
        let mut changes = Vec::new();
        for wave in now.waves.iter().flatten() {
            let mut before = self.before.waves.iter().flatten();
            let before = before.find(|one| one.name == wave.name).map(|one| one.state);
            if is_new(before, wave.state) {
                let wave_name = Some(wave.name.clone());
                changes.push(Change { wave: wave_name, state: wave.state.as_str(), ..change() });
            }
            for step in now.steps.iter().flatten().filter(|step| step.wave == wave.name) {
                let mut before = self.before.steps.iter().flatten();
                let before = before.find(|one| one.id == step.id).map(|one| one.state);
                if is_new(before, step.state) {
                    // What those that are at work wait for is in the message of the Upgrade.
                    let says = matches!(step.state, State::Failed | State::Skipped);
                    changes.push(Change {
                        wave: Some(wave.name.clone()),
                        step: Some(step.id.clone()),
                        state: step.state.as_str(),
                        message: step.message.clone().filter(|_| says),
                        ..change()
                    });
                }
            }
        }
        let is_said = (self.before.phase, &self.before.message) == (now.phase, &now.message);
        if let Some(phase) = now.phase.filter(|_| !is_said) {
            let message = now.message.clone();
            changes.push(Change { state: phase.as_str(), message, ..change() });
        }
        self.before = now;
        changes
    }
}

/// Whether a state is worth a line: one that waits has none before it begins.
fn is_new(before: Option<State>, now: State) -> bool {
    before != Some(now) && !(before.is_none() && now == State::Pending)
}

/// All of it in one short line, for a terminal; `waited` is for how long it is watched.
pub(crate) fn short(upgrade: &Upgrade, waited: std::time::Duration) -> String {
    let status = stage::status(upgrade);
    let phase = status.phase.map_or("waiting for the operator", Phase::as_str);
    let wave = status.wave.map(|wave| format!("  wave {wave}")).unwrap_or_default();
    let waited = crate::snapshot::duration(waited);
    let message = status.message.map(|text| format!("  {text}")).unwrap_or_default();
    format!("{phase}{wave}  {waited}{message}")
}
