//! New images are on the nodes before anything is changed: which node needs which, and whether it has them. So an image that
//! cannot be had is known while all runs as before, and a pod that is replaced is away for a shorter time.

use std::collections::{BTreeMap, BTreeSet};

use opensdn_crds::upgrade::{State, Step};
use serde_json::Value;

use crate::digest::digest;
use crate::gate::short;
use crate::health::{Service, Side};
use crate::object::{list, text, was_started};

/// What a node has to have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pull {
    /// The node.
    pub node: String,
    /// The images.
    pub images: BTreeSet<String>,
    /// The Secrets with the logins of registries, by which the pods of today are pulled.
    pub secrets: BTreeSet<String>,
}

/// How the pod is that has a node pull images: of each a container that ends at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Puller {
    /// Its name.
    pub name: String,
    /// The node.
    pub node: String,
    /// The images that the node has of those that it is for, by the [names of their containers](container_name).
    pub pulled: BTreeSet<String>,
    /// Why it is no further.
    pub trouble: Option<String>,
    /// Whether it ended without all of them: only another one pulls more.
    pub has_failed: bool,
}

/// What nodes need for the steps that are not over. A node whose pods are not well is not waited for.
#[must_use]
pub fn wanted(steps: &[Step], services: &[Service]) -> Vec<Pull> {
    let mut nodes: BTreeMap<&str, Pull> = BTreeMap::new();
    let is_open = |step: &&Step| !matches!(step.state, State::Succeeded | State::Skipped);
    for step in steps.iter().filter(is_open) {
        let service = services.iter().find(|service| service.id == step.id);
        let pods = service.into_iter().flat_map(|service| &service.pods);
        for pod in pods.filter(|pod| pod.is_ready) {
            let Some(node) = &pod.node else { continue };
            let has = |container: &String| pod.images.contains_key(container);
            let changes = step.images.iter().filter(|change| has(&change.container));
            let images: Vec<_> = changes.map(|change| Side::New.of(change).to_owned()).collect();
            if images.is_empty() {
                continue;
            }
            let pull = nodes.entry(node).or_default();
            pull.node.clone_from(node);
            pull.images.extend(images);
            pull.secrets.extend(pod.pull_secrets.iter().cloned());
        }
    }
    nodes.into_values().collect()
}

impl Pull {
    /// How many of its images the node has.
    #[must_use]
    pub fn pulled(&self, pullers: &[Puller]) -> usize {
        self.images.iter().filter(|image| self.has(image, pullers)).count()
    }

    fn has(&self, image: &str, pullers: &[Puller]) -> bool {
        let name = container_name(image);
        pullers.iter().any(|one| one.node == self.node && one.pulled.contains(&name))
    }

    /// What it waits for, if the node does not have all images yet.
    #[must_use]
    pub fn waits(&self, pullers: &[Puller]) -> Option<String> {
        let missing: Vec<_> = self.images.iter().filter(|one| !self.has(one, pullers)).collect();
        let first = missing.first()?;
        let mut of_node = pullers.iter().filter(|one| one.node == self.node);
        let trouble = of_node.find_map(|one| one.trouble.as_deref());
        let (node, all) = (&self.node, self.images.len());
        Some(match trouble {
            Some(trouble) => format!("node {node}: {}", short(trouble)),
            None => format!(
                "node {node} has {} of {all} images, and pulls {first}",
                all.saturating_sub(missing.len())
            ),
        })
    }
}

impl Puller {
    /// As the API server has it.
    #[must_use]
    pub fn of_object(pod: &Value) -> Self {
        let containers = list(pod, "/spec/containers");
        let images: BTreeMap<_, _> =
            containers.map(|one| (text(one, "/name"), text(one, "/image"))).collect();
        let statuses = || list(pod, "/status/containerStatuses");
        // Of one that goes nothing is known any more.
        let is_going = pod.pointer("/metadata/deletionTimestamp").is_some();
        let has_it = statuses().filter(|status| !is_going && is_pulled(status));
        let pulled: BTreeSet<String> =
            has_it.map(|status| text(status, "/name").to_owned()).collect();
        let has_failed = text(pod, "/status/phase") == "Failed" && pulled.len() < images.len();
        let waits = statuses().filter(|status| !is_pulled(status)).find_map(|status| {
            let reason = text(status, "/state/waiting/reason");
            let image = images.get(text(status, "/name")).copied().unwrap_or_default();
            let why = text(status, "/state/waiting/message");
            let is_usual = ["", "ContainerCreating", "PodInitializing"].contains(&reason);
            (!is_usual).then(|| format!("{image}: {reason} {why}").trim_end().to_owned())
        });
        let (reason, why) = (text(pod, "/status/reason"), text(pod, "/status/message"));
        let ended = has_failed.then(|| format!("{reason} {why}").trim().to_owned());
        Self {
            name: text(pod, "/metadata/name").to_owned(),
            node: text(pod, "/spec/nodeName").to_owned(),
            pulled,
            trouble: ended.filter(|why| !why.is_empty()).or(waits),
            has_failed,
        }
    }
}

/// The name of the container for an image: admission may give that another text, such as a digest.
#[must_use]
pub fn container_name(image: &str) -> String {
    format!("image-{}", digest(image, 6))
}

/// A container that was started, or could not be, has its image: that is pulled before.
fn is_pulled(status: &Value) -> bool {
    let reason = text(status, "/state/waiting/reason");
    was_started(status, "/state")
        || reason.starts_with("Create")
        || reason.starts_with("RunContainer")
}

#[cfg(test)]
mod tests;
