//! What a component is to the operator: a description of its pods that is made of its settings. One
//! implementation for each kind is in `components/`; nothing else in this crate names a kind.
//!
//! Deliberately not here: what all components share (labels, certificates, common volumes), which is
//! in `build/`, and the facts that policies know too, which are in `opensdn_crds::component`.

mod nested;

use std::collections::BTreeMap;
use std::sync::Arc;

use opensdn_crds::component::Component;
use opensdn_crds::pod::PodConfiguration;
use opensdn_crds::storage::Storage;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::cluster::Cluster;
use crate::ensemble::Ensemble;
use crate::kind::{Profiles, Workload};
use crate::peers::Peers;
use crate::release::Release;
pub use nested::{Escaped, Form, NamedSecret, Nested};

/// A kind of component.
pub trait ComponentKind: Sync {
    /// Its row in the table that policies and schemas read too.
    fn facts(&self) -> &'static Component;

    /// The templates of its files.
    fn templates(&self) -> &'static [Template];

    /// Whether its containers read certificates, and which CAs they trust, only when they start.
    fn reads_certificates_once(&self) -> bool {
        false
    }

    /// What the service is asked before one of its pods is started again, in a sentence; nothing where its pods alone
    /// count.
    fn asked_before_a_restart(&self) -> Option<&'static str> {
        None
    }

    /// What keeps its pods.
    fn workload(&self) -> Workload {
        Workload::StatefulSet
    }

    /// The kind of objects that its settings name under `profiles`, for settings that several share.
    fn profiles(&self) -> Option<Profiles> {
        None
    }

    /// What its pods are made of, by what is given of it and of what is around it.
    ///
    /// # Errors
    /// The settings cannot be read, which a schema would have refused, or do not fit what is around it.
    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError>;

    /// Whether it takes `nested`, which its Manager may say for it.
    fn takes_nested(&self) -> bool {
        false
    }

    /// What runs in the place of its usual pods, where its settings say that the cluster is nested.
    ///
    /// # Errors
    /// They cannot be read.
    fn nested(&self, _: &Given<'_>) -> Result<Option<Nested>, SettingsError> {
        Ok(None)
    }
}

/// A template by its name, of which the extension is the format of the file, and its text.
pub type Template = (&'static str, &'static str);

/// What a description is made of.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Name of the object.
    pub name: &'a str,
    /// Its `spec.serviceConfiguration`.
    pub settings: &'a Value,
    /// Its `spec.commonConfiguration`.
    pub common: &'a PodConfiguration,
    /// The components around it.
    pub peers: &'a Peers,
    /// What the cluster says of itself.
    pub cluster: &'a Cluster,
    /// Of which releases its images are.
    pub release: Release,
    /// The specs of the profiles that its settings name, in their order.
    pub profiles: &'a [Value],
}

impl Given<'_> {
    /// The settings as the kind has them.
    ///
    /// # Errors
    /// They are others.
    pub fn settings<Settings: DeserializeOwned>(&self) -> Result<Settings, SettingsError> {
        Ok(serde_json::from_value(self.settings.clone())?)
    }
}

/// Settings of which no component can be made.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// They cannot be read.
    #[error("read spec.serviceConfiguration")]
    Unreadable(#[from] serde_json::Error),
    /// They do not fit what is around it.
    #[error("{message}")]
    Unfit {
        /// One word, for programs.
        reason: &'static str,
        /// What is wrong, where, and what to do.
        message: String,
    },
}

/// What the pods of a component are made of, besides what all have.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// What prepares the node before its containers are started, in order.
    pub init_containers: Vec<Container>,
    /// Its containers, in order.
    pub containers: Vec<Container>,
    /// Its files, rendered from templates and mounted by all containers. None of them may have a secret in it: where
    /// one is needed there is `@credentials/VOLUME/KEY@`, which the script of the container fills in
    /// (`templates/common/fill.sh.j2`).
    pub files: Vec<File>,
    /// What the templates may name, besides what all have: `log_level`, as daemons of OpenSDN spell it, and
    /// `log_level_name`, as others do; in files of one pod `pod_ip` and `host`, and of an ensemble `id`, `peers`,
    /// `first` and `data_lost`.
    pub values: Value,
    /// The volumes of its own.
    pub volumes: Vec<Volume>,
    /// Passwords of its own, mounted at `/etc/credentials/own`: what is given or stored, else random letters.
    pub passwords: Vec<Password>,
    /// The end of the name of the Secret with them, where that is not `secret`.
    pub own_secret: Option<&'static str>,
    /// Secrets whose keys its scripts read, each in a folder below `/etc/credentials`.
    pub credentials: Vec<Credentials>,
    /// Whether its pods ask the API server: the token of their ServiceAccount is in `/etc/credentials/token`. What
    /// it may do is not the operator's to give.
    pub token: bool,
    /// Folders of the node with credentials.
    pub folders_of_node: Vec<FolderOfNode>,
    /// How many members it needs to do its work.
    pub quorum: Quorum,
    /// What counts its members itself, and is notified of each that comes or goes.
    pub ensemble: Option<Arc<dyn Ensemble>>,
    /// Volumes in the place of folders of the nodes, for what it stores.
    pub storage: Option<Storage>,
    /// The port behind an address that stays, and its name.
    pub service: Option<ServicePort>,
    /// Whether its files are others for other releases.
    pub depends_on_release: bool,
    /// Whether its containers see each other's processes.
    pub shares_processes: bool,
    /// Variables of the environment of all its containers, which win over those of each.
    pub variables: BTreeMap<String, String>,
    /// What has to be there before its pods are started for the first time, besides what its kind needs, and is not.
    pub waits_for: Option<String>,
    /// How its pods are replaced, of one that has a pod on each node.
    pub update: Update,
    /// How many seconds a new pod has to be ready before the next one is replaced.
    pub min_ready_seconds: Option<i32>,
    /// How many seconds its pods have to end, where the usual 30 are not enough.
    pub grace: Option<u16>,
    /// What its status has besides what all have, as tf-operator fills it: the ports in use, and their like.
    pub status: Map<String, Value>,
}

/// One container.
#[derive(Clone, Debug, Default)]
pub struct Container {
    /// Its name, by which `serviceConfiguration.containers` gives the image.
    pub name: &'static str,
    /// The entry of `serviceConfiguration.containers` that gives its image, where it is that of another name.
    pub entry: Option<&'static str>,
    /// Whether it is left out where no image is given.
    pub is_optional: bool,
    /// What it runs, where no command is given.
    pub command: Command,
    /// Variables of its environment, besides what all have.
    pub env: Vec<(&'static str, String)>,
    /// Whether it has the name of its pod, which ends in the pod's number, as `POD_NAME`.
    pub needs_pod_name: bool,
    /// Where it mounts volumes of the component.
    pub mounts: Vec<Mount>,
    /// What shows that it works.
    pub check: Check,
    /// What shows that others can use it, where that is not the same.
    pub readiness: Option<Check>,
    /// How many seconds it may take until it works for the first time, where that is more than three minutes.
    pub starts_within: Option<u16>,
    /// Where it says of itself whether it works.
    pub introspect: Option<Introspect>,
    /// What it asks of the node: CPU and memory, in Kubernetes' units.
    pub requests: (&'static str, &'static str),
    /// The sizes of huge pages, as Kubernetes names them, and how many MiB of each it has.
    pub huge_pages: Vec<(&'static str, u64)>,
    /// What it may do besides, as Kubernetes names capabilities.
    pub capabilities: &'static [&'static str],
    /// Whether it may do everything.
    pub is_privileged: bool,
    /// A shell command that is run before it gets the signal to end.
    pub pre_stop: Option<String>,
}

/// Introspect of a container, the pages by which a daemon says whether it works. None for those that contrail-status does not
/// ask either: node managers, which say how machines are, and the DNS of control nodes, which answers nothing while it reads
/// its configuration (tf-controller, `src/sandesh/common/vns.sandesh:148`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Introspect {
    /// Where its processes listen.
    pub ports: Vec<u16>,
    /// Whether of several one works, and the others open no port until that ends.
    pub is_elected: bool,
    /// Whether it speaks without TLS.
    pub is_plain: bool,
    /// Whether it may listen at another address than that of its pod.
    pub may_listen_elsewhere: bool,
    /// The sessions that are counted.
    pub sessions: Sessions,
}

/// Sessions that are counted over all pods of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sessions {
    /// None.
    #[default]
    None,
    /// With control nodes, of which one is enough.
    WithControlNodes,
    /// Of BGP.
    Bgp,
}

impl Introspect {
    /// Of one process, at that port.
    #[must_use]
    pub fn at(port: u16) -> Option<Self> {
        Some(Self { ports: vec![port], ..Self::default() })
    }

    /// Of a process of which one is elected (tf-controller: `introspect_init` in `schema_transformer/to_bgp.py:804`,
    /// `svc_monitor.py:920`, `dm_server.py:101`, `kube_manager.py:193`).
    #[must_use]
    pub fn of_elected(port: u16) -> Option<Self> {
        Some(Self { ports: vec![port], is_elected: true, ..Self::default() })
    }
}

/// What a container runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Command {
    /// Its script, the file `run-NAME.sh`.
    #[default]
    Script,
    /// What its image says.
    OfImage,
    /// A shell command.
    Shell(&'static str),
}

/// Where a container mounts a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The volume.
    pub volume: &'static str,
    /// Where in the container.
    pub path: &'static str,
    /// What it may do there.
    pub access: Access,
}

/// What a container may do in a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read,
    /// Read and write.
    Write,
    /// And what it mounts there, the node sees.
    MountForNode,
}

impl Mount {
    /// To read and write.
    #[must_use]
    pub const fn at(volume: &'static str, path: &'static str) -> Self {
        Self { volume, path, access: Access::Write }
    }

    /// With other rights.
    #[must_use]
    pub const fn with(self, access: Access) -> Self {
        Self { access, ..self }
    }
}

/// A password of a component's own.
#[derive(Clone, Debug)]
pub struct Password {
    /// The key in the Secret `NAME-secret`.
    pub key: &'static str,
    /// What the settings say; it wins.
    pub given: Option<String>,
    /// How many random letters it has, if nothing says it.
    pub letters: usize,
}

/// A Secret of which scripts read the keys.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The folder below `/etc/credentials`.
    pub folder: &'static str,
    /// Name of the Secret.
    pub secret: String,
    /// Which of its keys the files have: pods see nothing else of it, whatever Secret is named.
    pub keys: &'static [&'static str],
}

/// A folder of the node whose files its scripts read.
#[derive(Clone, Debug)]
pub struct FolderOfNode {
    /// The folder below `/etc/credentials`.
    pub folder: &'static str,
    /// Where it is on the node; it has to be there.
    pub path: String,
}

/// The port of a Service.
#[derive(Clone, Copy, Debug)]
pub struct ServicePort {
    /// The number, on the Service and on the pods.
    pub number: u16,
    /// The name, where it has one.
    pub name: Option<&'static str>,
}

/// What shows that a container works; it judges its own pod only.
#[derive(Clone, Debug, Default)]
pub enum Check {
    /// Nothing does: it has no work that could be looked at.
    #[default]
    Nothing,
    /// A shell command ends with 0.
    Command(String),
    /// The port on the pod's address takes connections.
    Port(u16),
    /// It has a page, by TLS.
    Https(u16),
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
    /// Which of several it is: after the name, and `number` in the template.
    pub number: Option<u16>,
}

impl File {
    /// All pods get the same.
    #[must_use]
    pub const fn shared(name: &'static str, template: &'static str) -> Self {
        Self { name, template, scope: Scope::Shared, number: None }
    }

    /// All pods get the same, and notice when it changes.
    #[must_use]
    pub const fn watched(name: &'static str, template: &'static str) -> Self {
        Self { name, template, scope: Scope::Watched, number: None }
    }

    /// Each pod gets its own.
    #[must_use]
    pub const fn of_pod(name: &'static str, template: &'static str) -> Self {
        Self { name, template, scope: Scope::Pod, number: None }
    }

    /// One of several.
    #[must_use]
    pub const fn numbered(self, number: u16) -> Self {
        Self { number: Some(number), ..self }
    }
}

/// Who gets a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All pods the same.
    Shared,
    /// All pods the same, whose scripts look at it again and again: a change of it restarts no pod.
    Watched,
    /// Each pod its own, under a key with its address.
    Pod,
}

/// A volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub source: Source,
}

/// What a volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A folder of the node, made if it is not there.
    Folder(&'static str),
    /// The same, for what the service stores: where volumes are given for that, it is the node's volume.
    Data(&'static str),
    /// A folder of the node that has to be there.
    Existing(&'static str),
    /// A folder of the pod's own, empty at first.
    Empty,
}

impl Volume {
    /// A folder of the node.
    #[must_use]
    pub const fn folder(name: &'static str, path: &'static str) -> Self {
        Self { name, source: Source::Folder(path) }
    }

    /// A folder of the node for what the service stores.
    #[must_use]
    pub const fn data(name: &'static str, path: &'static str) -> Self {
        Self { name, source: Source::Data(path) }
    }
}

/// How pods of a DaemonSet are replaced when no Upgrade does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// By Kubernetes, so many at a time.
    Rolling(i32),
    /// When a user deletes them.
    OnDelete,
}

impl Default for Update {
    fn default() -> Self {
        Self::Rolling(1)
    }
}

/// How many members a component needs to do its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quorum {
    /// More than half of them.
    #[default]
    Majority,
    /// Every one: each serves its own node.
    All,
    /// So many that more than half of the copies of each row are there, if it is kept so often, or as often as there are
    /// members where these are fewer. How often it is kept the service says later ([`crate::ensemble::Tended`]).
    MostCopies(usize),
}

impl Quorum {
    /// Of so many members.
    #[must_use]
    pub fn of(self, members: i32) -> i32 {
        match self {
            Self::Majority => members / 2 + 1,
            Self::All => members,
            Self::MostCopies(copies) => {
                let copies = i32::try_from(copies).unwrap_or(i32::MAX).min(members);
                members - (copies - (copies / 2 + 1))
            }
        }
    }
}

/// The word for a kind in names, labels and files.
#[must_use]
pub fn word(facts: &Component) -> String {
    facts.kind.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_copies_more_than_half_are_left_whichever_members_are_away() {
        let three = Quorum::MostCopies(3);
        let needed: Vec<i32> = (1..=6).map(|members| three.of(members)).collect();
        // As many as most copies are on, however the rows lie: of five members one may be away, of which most members would let two.
        assert_eq!(needed, [1, 2, 2, 3, 4, 5]);
        for members in 1..=6_u32 {
            let away = members - u32::try_from(three.of(i32::try_from(members).unwrap())).unwrap();
            let copies = members.min(3);
            // All that are away may have copies of the same row.
            assert!(copies - away.min(copies) > copies / 2, "{members}");
        }
    }
}
