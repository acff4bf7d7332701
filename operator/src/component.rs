//! What a component is to the operator: a description of its pods that is made of its settings. One
//! implementation for each kind is in `components/`; nothing else in this crate names a kind.
//!
//! Deliberately not here: what all components share (labels, certificates, common volumes), which is
//! in `build/`, and the facts that policies know too, which are in `opensdn_crds::component`.

use std::sync::Arc;

use opensdn_crds::component::Component as Facts;
use serde_json::Value;

use crate::ensemble::Ensemble;
use crate::peers::Peers;

/// A kind of component.
pub trait Component: Sync {
    /// Its row in the table that policies and schemas read too.
    fn facts(&self) -> &'static Facts;

    /// The templates of its files.
    fn templates(&self) -> &'static [Template];

    /// What its pods are made of, by its `serviceConfiguration` and what is around it.
    ///
    /// # Errors
    /// The settings cannot be read, which a schema would have refused.
    fn describe(&self, settings: &Value, peers: &Peers) -> Result<Description, SettingsError>;
}

/// A template by its name, of which the extension is the format of the file, and its text.
pub type Template = (&'static str, &'static str);

/// Settings that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("read spec.serviceConfiguration")]
pub struct SettingsError(#[from] serde_json::Error);

/// What the pods of a component are made of, besides what all have.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its containers, in order.
    pub containers: Vec<Container>,
    /// Its files, rendered from templates and mounted by all containers.
    pub files: Vec<File>,
    /// What the templates may name, besides what all have: `log_level`, as daemons of OpenSDN spell it, and
    /// `log_level_name`, as others do; in files of one pod `pod_ip` and `host`, and of an ensemble `id`, `peers`,
    /// `first` and `data_lost`.
    pub values: Value,
    /// Folders of the node that its containers mount.
    pub host_paths: Vec<HostPath>,
    /// How many members it needs to do its work.
    pub quorum: Quorum,
    /// What counts its members itself, and is told of each that comes or goes.
    pub ensemble: Option<Arc<dyn Ensemble>>,
}

/// One container.
#[derive(Clone, Debug)]
pub struct Container {
    /// Its name, by which `serviceConfiguration.containers` gives the image.
    pub name: &'static str,
    /// Where it mounts folders of the node: volume and path.
    pub mounts: Vec<(&'static str, &'static str)>,
    /// What tells that it works.
    pub check: Check,
    /// What tells that others can use it, where that is not the same.
    pub readiness: Option<Check>,
    /// What it asks of the node: CPU and memory, in Kubernetes' units.
    pub requests: (&'static str, &'static str),
    /// What it may do besides, as Kubernetes names capabilities.
    pub capabilities: &'static [&'static str],
}

/// What tells that a container works; it judges its own pod only.
#[derive(Clone, Debug)]
pub enum Check {
    /// A shell command ends with 0.
    Command(String),
    /// The port on the pod's address takes connections.
    Port(u16),
}

/// A file of the component.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its name; with an address after it where each pod has its own.
    pub name: &'static str,
    /// The template below `templates/`, which names the format too.
    pub template: &'static str,
    /// Who gets it.
    pub scope: Scope,
}

/// Who gets a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All pods the same.
    Shared,
    /// Each pod its own, under a key with its address.
    Pod,
}

/// A folder of the node.
#[derive(Clone, Copy, Debug)]
pub struct HostPath {
    /// Name of the volume.
    pub volume: &'static str,
    /// Path on the node.
    pub path: &'static str,
}

/// How many members a component needs to do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// More than half of them.
    Majority,
    /// Every one: each serves its own node.
    All,
}

impl Quorum {
    /// Of so many members.
    #[must_use]
    pub fn of(self, members: i32) -> i32 {
        match self {
            Self::Majority => members / 2 + 1,
            Self::All => members,
        }
    }
}

/// The word for a kind in names, labels and files.
#[must_use]
pub fn word(facts: &Facts) -> String {
    facts.kind.to_lowercase()
}
