//! The Upgrades of a Manager that are at work, as their status says.

use opensdn_policy_components::null_as_default;
use opensdn_policy_sdk::{Failure, Index};
use serde::Deserialize;

/// By namespace: who makes thousands in one of his own for a Manager of the same name must lock none in another.
pub(crate) const MANAGER_UPGRADES: Index = Index {
    name: "upgrades-by-namespace",
    group: "opensdn.io",
    kind: "Upgrade",
    key: "/metadata/namespace",
    reads: &["/metadata/deletionTimestamp", "/status/phase", "/spec/manager"],
};

/// Of one Upgrade: those of all together are more than a policy may read, and whoever fills them must lock no Manager.
pub(crate) const UPGRADES: Index = Index {
    name: "upgrades",
    group: "opensdn.io",
    kind: "Upgrade",
    key: "",
    reads: &["/status/steps"],
};

/// Phases in which an Upgrade has begun and is not over. Of one that has stopped a person decides what becomes.
const AT_WORK: [&str; 4] = ["Running", "Paused", "Stopped", "RollingBack"];

/// An Upgrade that is at work.
#[derive(Clone, Debug)]
pub(crate) struct Upgrade {
    namespace: String,
    pub(crate) name: String,
    pub(crate) phase: String,
    steps: Vec<Step>,
}

/// A service that gets other images.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Step {
    #[serde(deserialize_with = "null_as_default")]
    id: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) wave: String,
    #[serde(deserialize_with = "null_as_default")]
    state: String,
    #[serde(deserialize_with = "null_as_default")]
    images: Vec<ImageChange>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ImageChange {
    container: String,
    from: String,
    to: String,
}

/// What an image is to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// That of before, or the new one by now.
    Own,
    /// The new one, before its turn or on the way back.
    Early,
    /// Another one.
    Foreign,
}

impl Upgrade {
    /// Those of the Manager. One that is being deleted does nothing more.
    pub(crate) fn at_work(namespace: &str, manager: &str) -> Result<Vec<Self>, Failure> {
        let mut all = Vec::new();
        for found in MANAGER_UPGRADES.find(namespace)? {
            if found.part::<String>(2)?.as_deref() != Some(manager) {
                continue;
            }
            let phase = found.part::<String>(1)?.unwrap_or_default();
            let is_deleted = found.part::<String>(0)?.is_some();
            if !is_deleted && AT_WORK.contains(&phase.as_str()) {
                let steps = match UPGRADES.get(namespace, found.name())? {
                    Some(one) => one.part::<Vec<Step>>(0)?.unwrap_or_default(),
                    None => Vec::new(),
                };
                all.push(Self {
                    namespace: found.namespace().to_owned(),
                    name: found.name().to_owned(),
                    phase,
                    steps,
                });
            }
        }
        Ok(all)
    }

    /// How a message names it.
    pub(crate) fn title(&self) -> String {
        format!("the Upgrade {}/{} ({})", self.namespace, self.name, self.phase)
    }

    /// What to do, so that the change may be made.
    pub(crate) fn hint(&self) -> String {
        let (namespace, name) = (&self.namespace, &self.name);
        let upgrade = |verb: &str| format!("kubectl opensdn upgrade {verb} {name} -n {namespace}");
        format!(
            "wait until it is over: {}; or take it back first: {}; or delete it, with which pods that wait get \
             the images that the Manager says, too: kubectl delete upgrades.opensdn.io {name} -n {namespace}",
            upgrade("status"),
            upgrade("rollback")
        )
    }

    /// The same, where it is enough to leave one service out.
    pub(crate) fn hint_of_step(&self, id: &str) -> String {
        let namespace = &self.namespace;
        // Of one that is over there is nothing to be left out.
        if self
            .step(id)
            .is_some_and(|step| ["Succeeded", "RolledBack"].contains(&step.state.as_str()))
        {
            return self.hint();
        }
        format!(
            "{}; or leave the service out: kubectl opensdn upgrade skip {id} --reason WHY -n {namespace}",
            self.hint()
        )
    }

    /// The step of a service, unless it is left out.
    pub(crate) fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id && step.state != "Skipped")
    }

    /// Whether a user has its images be as they are: its pods are waited for no more.
    pub(crate) fn leaves_out(&self, id: &str) -> bool {
        self.step(id).is_none() && self.steps.iter().any(|step| step.id == id)
    }
}

impl Step {
    pub(crate) fn role(&self, container: &str, image: &str) -> Role {
        let Some(change) = self.images.iter().find(|one| one.container == container) else {
            return Role::Foreign;
        };
        let is_early = ["Pending", "RollingBack", "RolledBack"].contains(&self.state.as_str());
        match image {
            image if image == change.from => Role::Own,
            image if image == change.to && is_early => Role::Early,
            image if image == change.to => Role::Own,
            _ => Role::Foreign,
        }
    }

    /// Both images of a container, in words.
    pub(crate) fn own_images(&self, container: &str) -> Option<String> {
        let change = self.images.iter().find(|one| one.container == container)?;
        Some(format!("{} or {}", change.from, change.to))
    }
}
