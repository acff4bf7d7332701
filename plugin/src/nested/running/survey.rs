//! What an apply of the workloads would do, and what speaks against it: asked before anything is written into the cloud, for
//! a cluster whose cloud is ready and whose workloads are refused has no network either.

use kube::api::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::file::{Staged, WorkloadFile};
use super::needs::{lacking, needs};
use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::install::plan::{Action, Adopt, DryRun, decide};
use crate::install::requests::Requests;
use crate::nested::verify::workloads::KUBE_MANAGER;
use crate::snapshot::{list, number, text};
use crate::ui::Ui;

/// What an apply would do to each object.
pub(crate) struct WorkloadSurvey {
    pub(crate) all: Vec<Surveyed>,
}

/// An object, and what an apply does to it.
pub(crate) struct Surveyed {
    pub(crate) staged: Staged,
    pub(crate) action: Action,
    /// Whether fields of others are taken over.
    pub(super) force: bool,
}

impl WorkloadSurvey {
    /// Asks for it.
    ///
    /// # Errors
    /// Something forbids it: all of that at once.
    pub(crate) async fn of(
        requests: &Requests,
        file: &WorkloadFile,
        force: &[String],
        ui: &mut Ui,
    ) -> Result<Self, Failure> {
        if let Some(words) = force.iter().find(|words| !is_meant(file, words)) {
            let message =
                format!("--force-conflicts={words}: the manifest has nothing of that name");
            return Err(Failure::usage(message, "give KIND/NAME, as the conflict is listed"));
        }
        let mut refused = missing_namespaces(requests, file).await?;
        let mut all = Vec::new();
        if refused.is_empty() {
            for staged in &file.objects {
                let (surveyed, why) = surveyed(requests, staged, force).await?;
                refused.extend(why);
                all.push(surveyed);
            }
            refused.extend(missing_needs(requests, file, ui).await);
            refused.extend(other_kube_managers(requests, file).await?);
        }
        if refused.is_empty() {
            return Ok(Self { all });
        }
        let message = "the workloads cannot be applied, and nothing was written";
        let hint = "put these right, then the same command again";
        let mut failure = Failure::new(Exit::Refused, "workloads-refused", message, hint);
        failure.causes = refused;
        Err(failure)
    }

    /// What would be done, a line each; nothing for what is as it should be.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |one: &Surveyed| match &one.action {
            Action::Same => None,
            Action::Create => Some(format!("create {}", one.staged.key)),
            Action::Change { fields } => {
                let restarts =
                    fields.iter().any(|change| change.field.starts_with(".spec.template"));
                let word = if restarts { ", which restarts its pods" } else { "" };
                Some(format!("change {}{word}", one.staged.key))
            }
            _ => Some(format!("apply {}", one.staged.key)),
        };
        self.all.iter().filter_map(line).collect()
    }

    /// Whether kube-manager runs as this object already: then nothing of it waits for nodes.
    pub(super) fn has_kube_manager(&self) -> bool {
        let of = |one: &&Surveyed| KUBE_MANAGER.is(&one.staged.object);
        self.all.iter().find(of).is_some_and(|one| one.action != Action::Create)
    }
}

fn is_meant(file: &WorkloadFile, words: &str) -> bool {
    file.objects.iter().any(|one| one.key.is_meant_by(words))
}

async fn missing_namespaces(
    requests: &Requests,
    file: &WorkloadFile,
) -> Result<Vec<String>, Failure> {
    let mut names: Vec<&str> =
        file.objects.iter().filter_map(|one| one.key.namespace.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    let mut missing = Vec::new();
    for name in names {
        if requests.get(&ObjectKey::cluster("v1", "Namespace", name)).await?.is_none() {
            missing.push(format!("there is no namespace {name}: kubectl create namespace {name}"));
        }
    }
    Ok(missing)
}

async fn surveyed(
    requests: &Requests,
    staged: &Staged,
    force: &[String],
) -> Result<(Surveyed, Option<String>), Failure> {
    let Staged { key, object, .. } = staged;
    let is_forced = force.iter().any(|words| key.is_meant_by(words));
    let live = requests.get(key).await?;
    let dry = match &live {
        Some(_) => Some(requests.dry_run(object, is_forced).await?),
        None => requests.dry_create(object).await?,
    };
    let action = decide(object, live.as_ref(), dry.as_ref(), "", Adopt::Yes);
    let owner = live.as_ref().and_then(owner);
    let why = owner.map(|owner| format!("{key} is kept by {owner}, which would change it back"));
    let why = why.or_else(|| against(key, &action));
    // Nothing of what others want changes then: else the action would be a conflict.
    let is_shared = matches!(dry, Some(DryRun::Conflicts { .. }));
    let surveyed = Surveyed { staged: staged.clone(), action, force: is_forced || is_shared };
    Ok((surveyed, why))
}

/// The object that a controller keeps this one for.
pub(super) fn owner(stored: &Value) -> Option<String> {
    let mut owners = list(stored, "/metadata/ownerReferences");
    owners
        .find(|one| one.get("controller").and_then(Value::as_bool) == Some(true))
        .map(|one| format!("{} {}", text(one, "/kind"), text(one, "/name")))
}

fn against(key: &ObjectKey, action: &Action) -> Option<String> {
    match action {
        Action::Conflict { conflicts } => {
            let fields: Vec<String> = conflicts
                .iter()
                .map(|one| format!("{} belongs to {}", one.field, one.manager))
                .collect();
            let fields = fields.join(", ");
            let (kind, name) = (&key.kind, &key.name);
            Some(format!(
                "{key} has fields of others: {fields}; to take them over: --force-conflicts={kind}/{name}"
            ))
        }
        Action::Ending { reason } => Some(format!("{key}: {reason}")),
        Action::Refused { reason } => Some(format!("{key}: the API server refuses it: {reason}")),
        Action::Unknown { reason } => {
            Some(format!("{key}: the API server does not take it: {reason}"))
        }
        Action::Create | Action::Change { .. } | Action::Same | Action::Foreign { .. } => None,
    }
}

/// Who may not read one is told so, and it is taken to be there.
async fn missing_needs(requests: &Requests, file: &WorkloadFile, ui: &mut Ui) -> Vec<String> {
    let mut missing = Vec::new();
    for (key, keys) in needs(file) {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        match requests.get(&key).await {
            Ok(None) => missing
                .push(format!("pods need {} {}, and {namespace} has none", key.kind, key.name)),
            Ok(Some(stored)) => {
                let lacking = lacking(&stored, &keys);
                if !lacking.is_empty() {
                    let keys = lacking.join(", ");
                    missing.push(format!("pods need the key {keys} of {key}, which has none"));
                }
            }
            Err(failure) => {
                ui.warn(&format!(
                    "whether {key} is there, which pods need, is not known: {}",
                    failure.message
                ));
            }
        }
    }
    missing
}

/// Two of them hand out the same VLANs, whatever they are called.
async fn other_kube_managers(
    requests: &Requests,
    file: &WorkloadFile,
) -> Result<Vec<String>, Failure> {
    let is_in_file = |key: &ObjectKey| file.objects.iter().any(|one| one.key == *key);
    let running = kube_managers(requests).await?.into_iter();
    let others = running.filter(|stored| !is_in_file(&ObjectKey::of(stored)));
    let line = |stored: Value| {
        let (key, owner) = (ObjectKey::of(&stored), owner(&stored));
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let way = match owner {
            Some(owner) => format!("it is kept by {owner}: remove that first"),
            None => format!("kubectl -n {namespace} delete {}", key.kubectl_name()),
        };
        format!("{key} runs kube-manager already, and two hand out the same VLANs: {way}")
    };
    Ok(others.map(line).collect())
}

/// What runs kube-manager, in any namespace.
///
/// # Errors
/// The cluster does not answer, or not this user.
pub(crate) async fn kube_managers(requests: &Requests) -> Result<Vec<Value>, Failure> {
    let mut found = Vec::new();
    for kind in ["Deployment", "DaemonSet"] {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", kind));
        found.extend(requests.list(&resource, None, "").await?);
    }
    found.retain(|stored| KUBE_MANAGER.is(stored) && runs(stored));
    Ok(found)
}

/// Whether it has pods, or is to have some.
fn runs(stored: &Value) -> bool {
    let of = |pointer: &str| number(stored, pointer).unwrap_or_default();
    let wanted = match text(stored, "/kind") {
        "DaemonSet" => of("/status/desiredNumberScheduled"),
        _ => number(stored, "/spec/replicas").unwrap_or(1),
    };
    wanted + of("/status/replicas") + of("/status/currentNumberScheduled") > 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_scaled_to_none_and_has_no_pod_does_not_run() {
        let deployment = |replicas: i64, status: i64| json!({"kind": "Deployment", "spec": {"replicas": replicas}, "status": {"replicas": status}});
        assert!(runs(&deployment(1, 0)) && runs(&deployment(0, 1)) && !runs(&deployment(0, 0)));
        let daemon_set = |wanted: i64| json!({"kind": "DaemonSet", "status": {"desiredNumberScheduled": wanted}});
        assert!(runs(&daemon_set(1)) && !runs(&daemon_set(0)));
    }

    #[test]
    fn the_controller_that_keeps_an_object_is_named() {
        let stored = json!({"metadata": {"ownerReferences": [
            {"kind": "Manager", "name": "m"}, {"kind": "Kubemanager", "name": "k", "controller": true}]}});
        assert_eq!(owner(&stored).as_deref(), Some("Kubemanager k"));
        assert_eq!(owner(&json!({})), None);
    }
}
