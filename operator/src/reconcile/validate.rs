//! From an object and what the cluster has to what can be built, or to why not (pure).

use std::collections::BTreeMap;

use opensdn_crds::pod::{Container as Given, LogLevel, PodConfiguration};
use serde::Deserialize;
use serde_json::Value;

use super::fetch::{Fetched, Node};
use crate::component::{Component, Description, word};
use crate::names::Instance;

/// What a component's objects are built from.
#[derive(Clone, Debug)]
pub struct Valid {
    /// What it is called.
    pub instance: Instance,
    /// What its pods are made of.
    pub description: Description,
    /// Where its pods run.
    pub common: PodConfiguration,
    /// The images by the names of containers, with commands that replace ours.
    pub images: BTreeMap<&'static str, Image>,
    /// The nodes on which its pods run, by name.
    pub nodes: Vec<Node>,
    /// The addresses for which there are files and certificates, in order.
    pub addresses: Vec<String>,
}

/// What a container runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The image.
    pub image: String,
    /// What runs in the place of the operator's script.
    pub command: Option<Vec<String>>,
}

/// What only a person can put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// One word, for programs.
    pub reason: &'static str,
    /// What is wrong, where, and what to do.
    pub message: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    common_configuration: Option<PodConfiguration>,
    service_configuration: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Containers {
    containers: Option<Vec<Given>>,
}

/// Reads the object.
///
/// # Errors
/// All that is wrong with it, in one text.
pub fn validate(component: &dyn Component, fetched: &Fetched) -> Result<Valid, Invalid> {
    let unreadable = |error: serde_json::Error| Invalid {
        reason: "UnreadableSpec",
        message: format!("failed to read spec: {error}; compare it with kubectl explain"),
    };
    let facts = component.facts();
    let spec = fetched.object.data.get("spec").cloned().unwrap_or_default();
    let spec: Option<Spec> = serde_json::from_value(spec).map_err(unreadable)?;
    let Spec { common_configuration, service_configuration } = spec.unwrap_or_default();
    let settings = match service_configuration {
        Value::Null => Value::Object(serde_json::Map::new()),
        settings => settings,
    };
    let description = component.describe(&settings).map_err(|error| Invalid {
        reason: "UnreadableSpec",
        message: opensdn_runtime::error_chain(&error),
    })?;
    let given: Containers = serde_json::from_value(settings).map_err(unreadable)?;
    let images = images(&description, &given.containers.unwrap_or_default())?;
    let name = fetched.name().to_owned();
    if name.len() > usize::from(facts.longest_name) {
        return Err(Invalid {
            reason: "NameTooLong",
            message: format!(
                "the name has {} characters; with more than {} the labels of its pods are too long: make an object \
                 with a shorter name",
                name.len(),
                facts.longest_name
            ),
        });
    }
    let common = common_configuration.unwrap_or_default();
    let nodes = fetched.nodes_of(common.node_selector.as_ref());
    let addresses = fetched.addresses(&nodes);
    let instance = Instance { word: word(facts), name };
    Ok(Valid { instance, description, common, images, nodes, addresses })
}

fn images(
    description: &Description,
    given: &[Given],
) -> Result<BTreeMap<&'static str, Image>, Invalid> {
    let mut images = BTreeMap::new();
    let mut missing = Vec::new();
    for container in &description.containers {
        // Of several with one name tf-operator takes the first, too.
        let given = given.iter().find(|given| given.name.as_deref() == Some(container.name));
        let image = given.and_then(|given| given.image.clone()).filter(|image| !image.is_empty());
        match image {
            Some(image) => {
                let command = given.and_then(|given| given.command.clone());
                let command = command.filter(|command| !command.is_empty());
                images.insert(container.name, Image { image, command });
            }
            None => missing.push(container.name),
        }
    }
    if missing.is_empty() {
        return Ok(images);
    }
    Err(Invalid {
        reason: "ImageMissing",
        message: format!(
            "spec.serviceConfiguration.containers has no image for {}: add an entry with name and image for each",
            missing.join(" and ")
        ),
    })
}

impl Valid {
    /// How many pods there are to be.
    #[must_use]
    pub fn replicas(&self) -> i32 {
        i32::try_from(self.nodes.len()).unwrap_or(i32::MAX)
    }

    /// The level of the log, as daemons of OpenSDN spell it.
    #[must_use]
    pub fn log_level(&self) -> &'static str {
        match self.common.log_level {
            Some(LogLevel::Debug) => "SYS_DEBUG",
            Some(LogLevel::Warning) => "SYS_WARN",
            Some(LogLevel::Error) => "SYS_ERR",
            Some(LogLevel::Critical) => "SYS_CRIT",
            Some(LogLevel::None) => "none",
            Some(LogLevel::Info) | None => "SYS_INFO",
        }
    }
}
