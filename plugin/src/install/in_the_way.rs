//! What is in the way of an installation: nothing is written where something cannot be.

use super::object::ObjectKey;
use super::plan::{Action, Planned};
use super::requests::Requests;
use super::survey::{Survey, namespaces_of_inventories};
use crate::exit::{Exit, Failure};

/// So many objects are listed.
const SHOWN: usize = 20;

/// What is in the way of an installation.
#[derive(Default)]
struct InTheWay {
    causes: Vec<String>,
    conflict: Option<ObjectKey>,
    is_foreign: bool,
    is_refused: bool,
    is_ending: bool,
}

impl InTheWay {
    fn of(plan: &[Planned]) -> Self {
        let mut found = Self::default();
        for planned in plan {
            found.add(planned);
        }
        found
    }

    fn add(&mut self, planned: &Planned) {
        let key = &planned.key;
        match &planned.action {
            Action::Refused { reason } => {
                self.is_refused = true;
                self.causes.push(format!("{key} is refused: {reason}"));
            }
            Action::Ending { reason } => {
                self.is_ending = true;
                self.causes.push(format!("{key}: {reason}"));
            }
            Action::Conflict { conflicts } => {
                self.conflict = Some(key.clone());
                self.causes.extend(conflicts.iter().map(|one| format!("{key} {one}")));
            }
            Action::Foreign { managers } => {
                self.is_foreign = true;
                let managers = managers.join(", ");
                self.causes.push(format!("{key} is not of this installation: {managers}"));
            }
            Action::Create | Action::Change { .. } | Action::Same | Action::Unknown { .. } => {}
        }
    }

    fn code(&self) -> (&'static str, &'static str) {
        match (self.is_foreign, &self.conflict) {
            (true, _) => {
                ("not-ours", "nothing has been changed: there are objects or fields of others")
            }
            (false, Some(_)) => {
                ("conflict", "nothing has been changed: there are fields of others")
            }
            (false, None) if self.is_ending => {
                ("being-deleted", "nothing has been changed: objects are being deleted")
            }
            (false, None) => {
                ("refused", "nothing has been changed: the API server would refuse objects")
            }
        }
    }
}

/// Nothing is written where something cannot be.
pub(crate) async fn refuse(requests: &Requests, survey: &Survey) -> Result<(), Failure> {
    let found = InTheWay::of(&survey.plan);
    if found.causes.is_empty() {
        return Ok(());
    }
    let mut hints = Vec::new();
    if found.is_foreign {
        hints.push("to take the objects over: --adopt".to_owned());
        let others = namespaces_of_inventories(requests).await;
        if let Some(other) = others.iter().find(|other| **other != survey.values.namespace) {
            hints.push(format!(
                "OpenSDN is installed in the namespace {other}: --control-namespace {other}"
            ));
        }
    }
    if let Some(key) = &found.conflict {
        hints.push(format!("to take the fields over: --force-conflicts={}/{}; to keep them, set them in the values", key.kind, key.name));
    }
    if found.is_ending {
        let hint = "the same command when what is being deleted is gone; it waits for that unless --wait=false";
        hints.push(hint.to_owned());
    }
    if found.is_refused {
        hints.push("to be put right by those who administrate the cluster: admission policies, rights, quotas".to_owned());
    }
    let (code, message) = found.code();
    let mut failure = Failure::new(Exit::Refused, code, message, hints.join("; "));
    failure.causes = shortened(found.causes);
    Err(failure)
}

/// No more than can be read.
pub(super) fn shortened(mut causes: Vec<String>) -> Vec<String> {
    let number = causes.len();
    causes.truncate(SHOWN);
    if number > SHOWN {
        causes.push(format!("and {} more", number - SHOWN));
    }
    causes
}
