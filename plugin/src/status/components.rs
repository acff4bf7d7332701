//! Which components there are and how each is: by what the operator says of the services of its Managers, by the
//! objects that are in no Manager, and by workloads that neither explains.

use std::collections::BTreeSet;

use opensdn_crds::component::{COMPONENTS, Component};
use opensdn_crds::status::{IntrospectStatus, READY, STALLED};
use opensdn_upgrade::images;
use serde_json::Value;

use super::introspect;
use super::pods;
use super::report::{ComponentStatus, Counts, PodStatus, Word, is_current};
use super::surroundings::Nodes;
use super::world::World;
use crate::snapshot::{condition, condition_is, label, list, name, namespace, number, text};

/// The label with the word for a component's kind, on its workloads and pods.
pub(crate) const TYPE: &str = "tf_manager";
/// The reason of a component of which no pod is to run.
pub(super) const STOPPED: &str = "Stopped";

/// What is said of a component, by whoever says it.
struct Said<'a> {
    facts: &'static Component,
    name: String,
    namespace: &'a str,
    manager: Option<&'a str>,
    /// Nothing where nothing is said of the present spec.
    ready: Option<bool>,
    /// Whether it can do its work, if less well.
    available: Option<bool>,
    is_stalled: bool,
    reason: String,
    message: String,
    versions: Vec<String>,
    /// What its daemons say.
    introspect: Option<IntrospectStatus>,
}

/// A component, and what the search for causes needs besides.
pub(super) struct Known {
    pub(super) status: ComponentStatus,
    pub(super) facts: &'static Component,
    pub(super) is_stalled: bool,
    pub(super) is_available: bool,
}

/// All of them.
pub(super) fn components(world: &World, nodes: &Nodes) -> Vec<Known> {
    let mut said: Vec<Said> = world.managers.items().iter().flat_map(of_manager).collect();
    for facts in COMPONENTS {
        let objects = world.alone.get(facts.kind).map_or(&[][..], |read| read.items());
        for object in objects {
            let same = |one: &Said| {
                one.facts.kind == facts.kind
                    && one.name == name(object)
                    && one.namespace == namespace(object)
            };
            match said.iter_mut().find(|one| same(one)) {
                Some(known) => known.available = available(object).or(known.available),
                None => said.push(of_object(facts, object)),
            }
        }
    }
    let mut unexplained = BTreeSet::new();
    for workload in workloads(world) {
        let Some((facts, name)) = owner(workload) else { continue };
        let key = (facts.kind, name.to_owned(), namespace(workload));
        let is_known =
            said.iter().any(|one| (one.facts.kind, one.name.clone(), one.namespace) == key);
        if !is_known {
            unexplained.insert(key);
        }
    }
    said.extend(unexplained.into_iter().filter_map(|(kind, name, namespace)| {
        let facts = Component::of_kind(kind)?;
        Some(Said { namespace, ..Said::nothing(facts, name) })
    }));
    said.into_iter().map(|one| one.with_pods(world, nodes)).collect()
}

impl<'a> Said<'a> {
    fn nothing(facts: &'static Component, name: String) -> Self {
        Self {
            facts,
            name,
            namespace: "",
            manager: None,
            ready: None,
            available: None,
            is_stalled: false,
            reason: String::new(),
            message: String::new(),
            versions: Vec::new(),
            introspect: None,
        }
    }

    /// Whether the pod, or what runs it, is of the component.
    fn has(&self, object: &Value) -> bool {
        owner(object).is_some_and(|(facts, name)| {
            facts.kind == self.facts.kind
                && name == self.name
                && namespace(object) == self.namespace
        })
    }

    fn pods(&self, world: &World, nodes: &Nodes) -> Vec<PodStatus> {
        let mine = world.pods.items().iter().filter(|pod| self.has(pod));
        let mut pods: Vec<PodStatus> = mine.filter_map(|pod| pods::status(pod, nodes)).collect();
        pods.sort_by(|one, other| (&one.node, &one.name).cmp(&(&other.node, &other.name)));
        pods
    }

    fn with_pods(self, world: &World, nodes: &Nodes) -> Known {
        let mut pods = self.pods(world, nodes);
        let workloads: Vec<&Value> = workloads(world).filter(|one| self.has(one)).collect();
        let counts = counts(&workloads, world, &pods);
        let heard = self.introspect.as_ref();
        if let Some(heard) = heard {
            introspect::add(heard, &mut pods);
        }
        let mut state = self.state(world, &pods, counts);
        let others = heard.and_then(|heard| introspect::others(heard, &pods));
        if state == Word::Active && others.is_some() {
            state = Word::Initializing;
        }
        let message = message(self.message, state, &pods, others);
        let created =
            workloads.iter().map(|one| text(one, "/metadata/creationTimestamp").to_owned());
        // Of several it is the first, and RFC 3339 sorts as it is.
        let created = created.min();
        let has_pods = counts.ready.is_some_and(|ready| ready > 0);
        let (daemons, xmpp, bgp) = (
            heard.and_then(introspect::daemons),
            introspect::counts(heard.and_then(|one| one.xmpp)),
            introspect::counts(heard.and_then(|one| one.bgp)),
        );
        let status = ComponentStatus {
            kind: self.facts.kind.to_owned(),
            name: self.name,
            namespace: self.namespace.to_owned(),
            manager: self.manager.map(str::to_owned),
            state,
            pods_ready: counts,
            daemons,
            not_asked: heard.and_then(introspect::not_asked),
            xmpp,
            bgp,
            versions: self.versions,
            created: created.filter(|created| !created.is_empty()),
            reason: self.reason,
            message,
            is_cause: false,
            blocked_by: Vec::new(),
            is_block_certain: true,
            roles: introspect::roles(&pods),
            pods,
        };
        Known {
            status,
            facts: self.facts,
            is_stalled: self.is_stalled,
            is_available: state == Word::Active || self.available.unwrap_or(has_pods),
        }
    }

    fn state(&self, world: &World, pods: &[PodStatus], counts: Counts) -> Word {
        let worst = pods.iter().map(|pod| pod.state).filter(|state| *state != Word::Active).max();
        let is_stopped = self.reason == STOPPED;
        match (self.ready, worst) {
            (Some(true), _) if is_stopped => Word::Inactive,
            // A pod is looked at now, and the operator's word may be a moment old.
            (_, Some(worst)) => worst,
            (Some(true), None) => Word::Active,
            (Some(false), None) if self.is_stalled && pods.is_empty() => Word::Inactive,
            (Some(false), None) => Word::Initializing,
            (None, None) => {
                match (counts.ready, counts.wanted) {
                    // Its own word is missing: of a Manager that is not read, or not yet of this spec.
                    (Some(ready), Some(wanted)) if ready >= wanted && wanted > 0 => {
                        if self.is_named() { Word::Initializing } else { Word::Active }
                    }
                    (Some(_), Some(_)) => Word::Initializing,
                    _ if world.managers.known().is_some() && self.is_named() => Word::Initializing,
                    _ => Word::Unknown,
                }
            }
        }
    }

    /// Whether a Manager or an object asks for it, whose status has to say something.
    fn is_named(&self) -> bool {
        !self.reason.is_empty()
    }
}

/// What there is to say of a service: of a pod that makes it what it is, of daemons, or what its own status says.
fn message(own: String, state: Word, pods: &[PodStatus], others: Option<String>) -> String {
    match pods.iter().find(|pod| pod.state == state && !pod.message.is_empty()) {
        Some(pod) if own.is_empty() => format!("pod {}: {}", pod.name, pod.message),
        _ => others.filter(|_| state == Word::Initializing).unwrap_or(own),
    }
}

/// The services of a Manager: those that its spec has, and those that its status knows besides.
fn of_manager(manager: &Value) -> Vec<Said<'_>> {
    let mut said = Vec::new();
    let rows: Vec<&Value> = list(manager, "/status/services").collect();
    for facts in COMPONENTS {
        let spec = manager.pointer("/spec/services").and_then(|services| services.get(facts.key));
        let names = items(spec).filter_map(|item| item.pointer("/metadata/name")?.as_str());
        let rows = rows.iter().filter(|row| text(row, "/kind") == facts.kind);
        let rows = rows.map(|row| text(row, "/name"));
        // A set: what is in both is one.
        let names: BTreeSet<&str> = names.chain(rows).filter(|name| !name.is_empty()).collect();
        said.extend(names.into_iter().map(|name| of_service(manager, facts, name)));
    }
    said
}

/// Whether the Manager has that service.
pub(super) fn has(manager: &Value, facts: &Component, name: &str) -> bool {
    let spec = manager.pointer("/spec/services").and_then(|services| services.get(facts.key));
    let mut rows = list(manager, "/status/services");
    items(spec).any(|item| text(item, "/metadata/name") == name)
        || rows.any(|row| text(row, "/kind") == facts.kind && text(row, "/name") == name)
}

/// One item, or a list of them.
fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    let list = value.and_then(Value::as_array);
    let single = value.filter(|value| value.is_object());
    list.into_iter().flatten().chain(single)
}

fn of_service<'a>(manager: &'a Value, facts: &'static Component, name: &str) -> Said<'a> {
    let mut rows = list(manager, "/status/services");
    let row = rows.find(|row| text(row, "/kind") == facts.kind && text(row, "/name") == name);
    let state = manager.pointer("/status").and_then(|status| status.get(facts.key));
    let state = items(state).find(|one| text(one, "/name") == name);
    let active = state.and_then(|state| state.pointer("/active")?.as_bool());
    let said = Said {
        namespace: namespace(manager),
        manager: Some(crate::snapshot::name(manager)),
        available: active,
        ..Said::nothing(facts, name.to_owned())
    };
    match row {
        Some(row) if is_current(manager) => {
            let reason = text(row, "/reason").to_owned();
            let versions = list(row, "/versions").filter_map(Value::as_str).map(str::to_owned);
            // Of a row it is not said whether it is stalled, but these are.
            let is_stalled = STALLED_REASONS.contains(&reason.as_str());
            Said {
                ready: row.pointer("/ready").and_then(Value::as_bool),
                is_stalled,
                message: text(row, "/message").to_owned(),
                versions: versions.collect(),
                introspect: introspect::of(row, "/introspect"),
                reason: if reason.is_empty() { "NoReason".to_owned() } else { reason },
                ..said
            }
        }
        // tf-operator has no rows.
        None if active.is_some() && manager.pointer("/status/services").is_none() => {
            let reason = if active == Some(true) { "Active" } else { "NotActive" };
            Said { ready: active, reason: reason.to_owned(), ..said }
        }
        _ => Said {
            reason: "NotReported".to_owned(),
            message: "no operator has said anything about it since its Manager changed".to_owned(),
            ..said
        },
    }
}

/// Reasons with which waiting does not help, as the operator gives them.
const STALLED_REASONS: [&str; 12] = [
    "DpdkIncomplete",
    "ImageMissing",
    "ImageWrong",
    "NameTaken",
    "NameTooLong",
    "NeedMissing",
    "NotOurs",
    "NotSupported",
    "RemovalNotConfirmed",
    "StorageAdded",
    "StorageRemoved",
    "UnreadableSpec",
];

fn of_object<'a>(facts: &'static Component, object: &'a Value) -> Said<'a> {
    let ready = condition(object, READY).filter(|_| is_current(object));
    let text_of = |pointer: &str| ready.map(|one| text(one, pointer).to_owned());
    let images = list(object, "/spec/serviceConfiguration/containers");
    let tags = images.filter_map(|one| images::digest_or_tag(one.pointer("/image")?.as_str()?));
    let versions: BTreeSet<String> = tags.map(str::to_owned).collect();
    let mut reason = text_of("/reason").unwrap_or_default();
    let mut message = text_of("/message").unwrap_or_default();
    if ready.is_none() {
        reason = "NotReported".to_owned();
        message = "no operator has said anything about it since it changed".to_owned();
    }
    Said {
        namespace: namespace(object),
        ready: ready.and_then(|one| match text(one, "/status") {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }),
        available: available(object),
        is_stalled: condition_is(object, STALLED, "True"),
        reason,
        message,
        versions: versions.into_iter().collect(),
        introspect: introspect::of(object, "/status/introspect").filter(|_| ready.is_some()),
        ..Said::nothing(facts, name(object).to_owned())
    }
}

fn available(object: &Value) -> Option<bool> {
    object.pointer("/status/active").and_then(Value::as_bool)
}

fn workloads(world: &World) -> impl Iterator<Item = &Value> {
    world.stateful_sets.items().iter().chain(world.daemon_sets.items())
}

/// The component whose workload or pod an object is, by its labels: `tf_manager: redis, redis: redis1`.
pub(crate) fn owner(object: &Value) -> Option<(&'static Component, &str)> {
    let word = label(object, TYPE)?;
    let facts = COMPONENTS.iter().find(|facts| facts.kind.to_lowercase() == word)?;
    Some((facts, label(object, word)?))
}

/// Pods that are ready, of those that there should be: by the pods, where they are known, else by the workload, of which there is one
/// for each node where these have volumes.
fn counts(workloads: &[&Value], world: &World, pods: &[PodStatus]) -> Counts {
    let number = |pointers: [&str; 2]| {
        let of = |one: &&Value| pointers.into_iter().find_map(|at| number(one, at));
        let numbers: Vec<i64> = workloads.iter().filter_map(of).collect();
        (!numbers.is_empty()).then(|| numbers.iter().sum())
    };
    let wanted = number(["/status/desiredNumberScheduled", "/spec/replicas"]);
    let active = pods.iter().filter(|pod| pod.state == Word::Active).count();
    let (active, all) = (i64::try_from(active).ok(), i64::try_from(pods.len()).ok());
    if world.pods.known().is_some() {
        return Counts { ready: active, wanted: wanted.or(all) };
    }
    let ready = number(["/status/numberReady", "/status/readyReplicas"]);
    // A StatefulSet without a ready pod leaves the field out.
    Counts { ready: ready.or((!workloads.is_empty()).then_some(0)), wanted }
}
