//! Takes the workloads away: kube-manager first, which reaches the cloud by what goes after it, then all others. Each is
//! deleted as the object that was read; what is gone already is passed over.

use kube::api::{ApiResource, GroupVersionKind};
use opensdn_nested_workloads::Phase;
use serde_json::Value;

use super::file::{Staged, WorkloadFile};
use super::survey::owner;
use crate::clients::unanswered;
use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::install::requests::Requests;
use crate::install::waiting::{Deadline, END_OF};
use crate::install::waits::State;
use crate::snapshot::match_labels;
use crate::ui::Ui;

/// What of a manifest is there, in the order in which it goes.
pub(crate) struct Stored {
    pub(crate) all: Vec<(ObjectKey, Phase, Value)>,
}

impl Stored {
    /// Asks for it.
    ///
    /// # Errors
    /// The cluster does not answer, or a controller keeps one of them.
    pub(crate) async fn of(requests: &Requests, file: &WorkloadFile) -> Result<Self, Failure> {
        let (mut all, mut kept) = (Vec::new(), Vec::new());
        for Staged { key, phase, .. } in file.objects.iter().rev() {
            let Some(stored) = requests.get(key).await? else { continue };
            if let Some(owner) = owner(&stored) {
                kept.push(format!("{key} is kept by {owner}: delete that instead"));
            }
            all.push((key.clone(), *phase, stored));
        }
        if kept.is_empty() {
            return Ok(Self { all });
        }
        let message = "the workloads are not removed, nor anything in the cloud";
        let hint = "leave --workloads out when they are gone";
        let mut failure = Failure::new(Exit::Refused, "workloads-kept", message, hint);
        failure.causes = kept;
        Err(failure)
    }

    /// What goes, a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.all.iter().map(|(key, ..)| key.to_string()).collect()
    }

    /// Deletes them, and waits until the pods of both workloads are gone.
    ///
    /// # Errors
    /// The cluster refuses it or does not answer, or pods do not end.
    pub(crate) async fn delete(
        &self,
        requests: &Requests,
        deadline: Deadline,
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        for (key, phase, stored) in &self.all {
            let doing = format!("delete {key}");
            let deleted = deadline.within(&doing, requests.delete(stored)).await?;
            deleted.map_err(|error| unanswered(&doing, &error))?;
            if matches!(phase, Phase::KubeManager | Phase::CniAgent) {
                end_of_pods(requests, key, stored, deadline, ui).await?;
            }
        }
        Ok(())
    }
}

async fn end_of_pods(
    requests: &Requests,
    key: &ObjectKey,
    stored: &Value,
    deadline: Deadline,
    ui: &mut Ui,
) -> Result<(), Failure> {
    let labels = match_labels(stored);
    if labels.is_empty() {
        return Ok(());
    }
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
    let gone = async |key: &ObjectKey| -> Result<State, Failure> {
        let pods = requests.list(&resource, key.namespace.as_deref(), &labels).await?;
        Ok(match pods.as_slice() {
            [] => State::Ready,
            [first, ..] => State::Waiting(format!("{} is still there", ObjectKey::of(first))),
        })
    };
    deadline.wait_for(&format!("{END_OF} its pods"), vec![key.clone()], ui, gone).await
}
