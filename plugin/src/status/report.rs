//! What `status` answers.

use opensdn_crds::status::{READY, STALLED};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::checks::report::Outcome;
use crate::connectivity::ConnectivityReport;
use crate::exit::Exit;
use crate::output::Answer;
use crate::snapshot::{condition, condition_is, name, namespace, number, text};

/// How a cluster is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusReport {
    /// The context of the kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<String>,
    /// Address of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// All of it together.
    pub(crate) state: State,
    /// Since when it is degraded, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<String>,
    /// Nodes of the cluster that are ready, of all.
    pub(crate) nodes: Counts,
    /// Pods of vrouters that are ready, of all.
    pub(crate) vrouters: Counts,
    /// Agents that have a session with a control node, of all, where the operator has asked them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) xmpp: Option<Counts>,
    /// BGP sessions of control nodes that are up, of all, where the operator has asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bgp: Option<Counts>,
    /// The Managers.
    pub(crate) managers: Vec<Manager>,
    /// What has to be looked at, the first first; everything else waits for it.
    pub(crate) causes: Vec<Cause>,
    /// The components, those first that need none.
    pub(crate) components: Vec<ComponentStatus>,
    /// Our own programs, policies and certificates.
    pub(crate) around: Vec<Part>,
    /// What pods found of the network, where they were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connectivity: Option<ConnectivityReport>,
    /// What could not be read, and why: nothing is said of it.
    pub(crate) not_read: Vec<NotRead>,
}

impl Answer for StatusReport {
    const KIND: &'static str = "StatusReport";
}

impl StatusReport {
    /// That pods could not be asked: then it cannot be said that all works, which was asked for.
    pub(crate) fn lacks_connectivity(&mut self, why: String) {
        self.not_read.push(NotRead { what: "connectivity".to_owned(), why });
        if self.state == State::Active {
            self.state = State::Unknown;
        }
    }

    /// Adds what pods found: all may be active, and no packet get through.
    pub(crate) fn add(&mut self, connectivity: ConnectivityReport) {
        let failed = connectivity.tests.iter().filter(|one| one.result == Outcome::Fail);
        let causes = failed.map(|one| Cause {
            kind: "Connectivity".to_owned(),
            name: one.id.to_owned(),
            namespace: String::new(),
            message: one.message.clone(),
            since: None,
            affects: Vec::new(),
            look: one.fix.clone().unwrap_or_else(|| "kubectl opensdn connectivity test".to_owned()),
        });
        self.causes.extend(causes);
        let any = |result| connectivity.tests.iter().any(|one| one.result == result);
        self.state = match self.state {
            State::Active | State::Unknown if any(Outcome::Fail) => State::Degraded,
            State::Active if any(Outcome::Uncertain) || !any(Outcome::Ok) => State::Unknown,
            state => state,
        };
        self.connectivity = Some(connectivity);
    }

    /// The code by which a script knows it.
    pub(crate) fn exit(&self) -> Exit {
        match self.state {
            State::Active => Exit::Done,
            State::Degraded | State::Absent => Exit::Findings,
            State::Unknown => Exit::Unreachable,
        }
    }
}

/// All of it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Everything is as it should be.
    Active,
    /// Something is not.
    Degraded,
    /// It cannot be said: too much could not be read.
    Unknown,
    /// There is no OpenSDN here.
    Absent,
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Degraded => "degraded",
            Self::Unknown => "?",
            Self::Absent => "absent",
        }
    }
}

/// How a part is, in the words of contrail-status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Word {
    /// It works.
    Active,
    /// It waits until another of its kind ends, as it should.
    Backup,
    /// It is not known.
    Unknown,
    /// It runs and does not work yet.
    Initializing,
    /// It does not answer: its node is lost.
    Timeout,
    /// It does not run.
    Inactive,
}

impl Word {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Backup => "backup",
            Self::Unknown => "?",
            Self::Initializing => "initializing",
            Self::Timeout => "timeout",
            Self::Inactive => "inactive",
        }
    }
}

/// How many are ready, of how many; nothing where that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    /// How many are ready.
    pub(crate) ready: Option<i64>,
    /// How many there should be.
    pub(crate) wanted: Option<i64>,
}

impl Counts {
    pub(crate) fn new(ready: i64, wanted: i64) -> Self {
        Self { ready: Some(ready), wanted: Some(wanted) }
    }

    /// All of them together; unknown where one is.
    pub(crate) fn sum(all: impl Iterator<Item = Self>) -> Self {
        let add = |one: Option<i64>, other: Option<i64>| Some(one? + other?);
        all.reduce(|one, other| Self {
            ready: add(one.ready, other.ready),
            wanted: add(one.wanted, other.wanted),
        })
        .unwrap_or(Self::new(0, 0))
    }

    pub(crate) fn text(self) -> String {
        let one = |number: Option<i64>| number.map_or("?".to_owned(), |number| number.to_string());
        match (self.ready, self.wanted) {
            (None, None) => "?".to_owned(),
            (ready, wanted) => format!("{}/{}", one(ready), one(wanted)),
        }
    }
}

/// A Manager.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manager {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Whether it is as its spec says; nothing where no operator has said so of this spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ready: Option<bool>,
    /// Whether a person has to do something.
    pub(crate) stalled: bool,
    /// What its condition Ready says.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    /// Since when it is so, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<String>,
}

impl Manager {
    pub(crate) fn of(manager: &Value) -> Self {
        let ready = condition(manager, READY).filter(|_| is_current(manager));
        let word = |one: &Value| match text(one, "/status") {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        };
        let since = ready.map(|one| text(one, "/lastTransitionTime").to_owned());
        Self {
            namespace: namespace(manager).to_owned(),
            name: name(manager).to_owned(),
            ready: ready.and_then(word),
            stalled: condition_is(manager, STALLED, "True"),
            message: ready.map(|one| text(one, "/message").to_owned()).unwrap_or_default(),
            since: since.filter(|since| !since.is_empty()),
        }
    }
}

impl Manager {
    /// It, as what has to be looked at.
    pub(super) fn cause(&self) -> Cause {
        Cause {
            kind: "Manager".to_owned(),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            message: self.message.clone(),
            since: self.since.clone(),
            affects: Vec::new(),
            look: format!(
                "kubectl describe -n {} managers.tf.tungsten.io {}",
                self.namespace, self.name
            ),
        }
    }
}

/// Whether the status of the object is about its present spec.
pub(crate) fn is_current(object: &Value) -> bool {
    let seen = number(object, "/status/observedGeneration");
    seen.is_some() && seen == number(object, "/metadata/generation")
}

/// What has to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cause {
    /// Node, Operator, Webhook, Connectivity, or the kind of a component.
    pub(crate) kind: String,
    /// Its name.
    pub(crate) name: String,
    /// Its namespace, where it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    /// What is the matter.
    pub(crate) message: String,
    /// Since when, RFC 3339, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<String>,
    /// What does not work because of it: `Config config1`.
    pub(crate) affects: Vec<String>,
    /// A command that shows more.
    pub(crate) look: String,
}

/// A daemon of which one works at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Role {
    /// As contrail-status calls it: `schema`.
    pub(crate) daemon: String,
    /// How many work.
    pub(crate) active: usize,
    /// How many wait.
    pub(crate) backup: usize,
}

impl Role {
    /// `active+backup`: a component is as it should be with both.
    pub(crate) fn word(&self) -> &'static str {
        if self.active == 0 { "backup" } else { "active+backup" }
    }
}

/// How a component is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ComponentStatus {
    /// Its kind.
    pub(crate) kind: String,
    /// Its name.
    pub(crate) name: String,
    /// Its namespace.
    pub(crate) namespace: String,
    /// The Manager that it is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) manager: Option<String>,
    /// How it is.
    pub(crate) state: Word,
    /// Pods that are ready, of those that there should be.
    pub(crate) pods_ready: Counts,
    /// Daemons that work, by their own words, of those that run; where the operator has asked them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) daemons: Option<Counts>,
    /// How many daemons cannot be asked whether they work, and why the first cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_asked: Option<String>,
    /// Of Vrouter: agents that have a session with a control node, of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) xmpp: Option<Counts>,
    /// Of Control: BGP sessions of its nodes that are up, of all; one between two of them is counted at either end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bgp: Option<Counts>,
    /// The tags, or digests, of its images.
    pub(crate) versions: Vec<String>,
    /// When its pods were first asked for, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<String>,
    /// One word of the operator's that says why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// How it is, what it waits for, or what to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    /// Whether it is one of the causes.
    pub(crate) is_cause: bool,
    /// What it waits for: `Cassandra configdb1`, `Node w7`.
    pub(crate) blocked_by: Vec<String>,
    /// Whether it is known that it waits for that; else that may be why it is not active.
    pub(crate) is_block_certain: bool,
    /// Its daemons of which one works and the others wait for it to end, by what daemons said last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) roles: Vec<Role>,
    /// Its pods.
    pub(crate) pods: Vec<PodStatus>,
}

impl ComponentStatus {
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }
}

/// How a pod is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodStatus {
    /// Its name.
    pub(crate) name: String,
    /// Where it runs; empty where it does not yet.
    pub(crate) node: String,
    /// How it is.
    pub(crate) state: Word,
    /// Why, where it is not active.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    /// Since when, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<String>,
    /// Whether what is the matter is its own, and not what another component may be to blame for.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) is_own_trouble: bool,
    /// The container whose daemon says of itself that it does not work, though Kubernetes has nothing to say of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) daemon: Option<String>,
    /// Its containers.
    pub(crate) containers: Vec<ContainerStatus>,
}

/// How a container is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContainerStatus {
    /// Its name.
    pub(crate) name: String,
    /// How it is.
    pub(crate) state: Word,
    /// How often it was started again.
    pub(crate) restarts: i64,
    /// Why, where it is not active.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

/// One of our own programs, the policies, or the certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    /// operator, webhook, policies, certificates.
    pub(crate) name: String,
    /// How it is; nothing where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<Word>,
    /// How many are ready, of all.
    pub(crate) ready: Counts,
    /// Its version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) version: String,
    /// When it was made, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<String>,
    /// What there is to say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    /// Whether the cluster is degraded by it.
    pub(crate) degrades: bool,
    /// The command for a closer look, where it is not that of its kind.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) look: Option<String>,
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(crate) struct NotRead {
    /// What.
    pub(crate) what: String,
    /// Why.
    pub(crate) why: String,
}
