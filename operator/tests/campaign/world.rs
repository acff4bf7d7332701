//! What a cluster has of a component, or of a Manager with all its services, while users change what they say: the operator's pure steps
//! (validate, build, status) over objects that stay from one pass to the next, as they do in a cluster. What is written is what differs
//! from what is there. No pod runs, so that members neither come nor go.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kube::api::DynamicObject;
use opensdn_manifests::{Schemas, Severity, Source, read};
use opensdn_operator::manager::intent;
use opensdn_operator::services::services;
use serde_json::{Value, json};

use super::changes::Change;
use super::fields::{DEFINITIONS, cases};
use crate::built::ClusterState;
use crate::golden_managers;

/// Kind and name.
pub(super) type Key = (String, String);
/// Objects by kind and name.
pub(super) type Objects = BTreeMap<Key, Value>;

/// So many passes it may take until nothing is left to do.
const MOST_PASSES: usize = 4;

/// A component, and what is there of it.
#[derive(Clone, Debug)]
pub(super) struct Running {
    /// Its object, with its status.
    pub(super) object: Value,
    /// All that was applied for it.
    pub(super) applied: Objects,
    /// Why the last pass made nothing of it.
    pub(super) refused: Option<String>,
}

/// What is there.
#[derive(Clone, Debug)]
pub(super) struct World {
    around: Vec<Value>,
    manager: Option<Value>,
    pub(super) components: BTreeMap<Key, Running>,
}

/// All worlds to begin with, by name.
pub(super) fn worlds(of: Of) -> Vec<(String, World)> {
    match of {
        Of::Components => cases()
            .iter()
            .map(|case| {
                let around = ClusterState::read(&case.join("in.yaml"));
                (name_of(case), World::of_component(around))
            })
            .collect(),
        Of::Managers => golden_managers::cases()
            .iter()
            .map(|case| {
                let text = std::fs::read_to_string(case.join("in.yaml")).unwrap();
                let (manager, around) =
                    golden_managers::documents(&serde_saphyr::from_str(&text).unwrap());
                let components = BTreeMap::new();
                (name_of(case), World { around, manager: Some(manager), components })
            })
            .collect(),
    }
}

fn name_of(case: &std::path::Path) -> String {
    case.file_name().unwrap().to_string_lossy().into_owned()
}

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Components,
    Managers,
}

fn key(object: &Value) -> Key {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// What the API server says of an object that a user writes; nothing, where it stores it.
pub(super) fn refused_by_schema(object: &Value) -> Option<String> {
    static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas::new(DEFINITIONS.clone()));
    let parsed = read(&Source::new("an object", object.to_string()));
    let document = parsed.documents.first().unwrap();
    let problems = SCHEMAS.check(document, None);
    let error = problems.iter().find(|problem| problem.severity == Severity::Error)?;
    Some(format!("{}: {}", error.pointer.as_deref().unwrap_or_default(), error.message))
}

impl World {
    fn of_component(around: ClusterState) -> Self {
        let mut object = around.object.clone();
        object["metadata"]["resourceVersion"] = "1".into();
        let running = Running { object, applied: Objects::new(), refused: None };
        let components = [(key(&running.object), running)].into();
        Self { around: around.others, manager: None, components }
    }

    /// What a user changes.
    pub(super) fn subject(&self) -> &Value {
        let component = || &self.components.values().next().unwrap().object;
        self.manager.as_ref().unwrap_or_else(component)
    }

    fn subject_mut(&mut self) -> &mut Value {
        let Self { manager, components, .. } = self;
        manager.as_mut().unwrap_or_else(|| &mut components.values_mut().next().unwrap().object)
    }

    /// The subject after a change, where the API server stores it.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) fn after(&self, change: &Change) -> Result<Value, String> {
        let changed = change.of(self.subject());
        let mut written = changed.clone();
        written.as_object_mut().unwrap().remove("status");
        refused_by_schema(&written).map_or(Ok(changed["spec"].clone()), Err)
    }

    /// A user writes that.
    pub(super) fn write(&mut self, spec: Value) {
        let subject = self.subject_mut();
        if subject["spec"] != spec {
            let generation = subject["metadata"]["generation"].as_i64().unwrap_or_default();
            subject["metadata"]["generation"] = (generation + 1).into();
            subject["spec"] = spec;
        }
    }

    /// The same with nothing applied yet.
    pub(super) fn afresh(&self) -> Self {
        let mut fresh = self.clone();
        match fresh.manager {
            Some(_) => fresh.components.clear(),
            None => fresh.components.values_mut().for_each(|one| {
                one.applied.clear();
                one.refused = None;
                one.object.as_object_mut().unwrap().remove("status");
            }),
        }
        fresh
    }

    /// Whether each component has something that keeps its pods.
    pub(super) fn has_started(&self) -> bool {
        let is_keeper =
            |key: &Key| ["StatefulSet", "DaemonSet", "Deployment"].contains(&key.0.as_str());
        self.components.values().all(|one| one.applied.keys().any(is_keeper))
    }

    /// Passes until nothing is left to do. Returns what was written.
    ///
    /// # Errors
    /// It takes too many.
    pub(super) fn settle(&mut self) -> Result<Vec<String>, String> {
        let mut all = Vec::new();
        for _ in 0..MOST_PASSES {
            let written = self.pass();
            if written.is_empty() {
                return Ok(all);
            }
            all.extend(written);
        }
        Err(format!("after {MOST_PASSES} passes something is still written: {all:?}"))
    }

    /// A pass over the Manager, and over each component. Returns what was written.
    pub(super) fn pass(&mut self) -> Vec<String> {
        let mut written = self.write_components();
        let keys: Vec<Key> = self.components.keys().cloned().collect();
        written.extend(keys.iter().flat_map(|key| self.pass_over(key)));
        written
    }

    /// A pass over the Manager.
    fn write_components(&mut self) -> Vec<String> {
        let Some(manager) = &self.manager else { return Vec::new() };
        let object: DynamicObject = serde_json::from_value(manager.clone()).unwrap();
        let (services, _) = services(&manager["spec"]);
        let mut written = Vec::new();
        for service in &services {
            let intent = serde_json::to_value(intent(&object, service).unwrap().object).unwrap();
            let key = key(&intent);
            let there = self.components.get(&key).map(|running| &running.object);
            if there.is_some_and(|there| covers(there, &intent)) {
                continue;
            }
            written.push(format!("{} {}", key.0, key.1));
            let generation = there.and_then(|there| there["metadata"]["generation"].as_i64());
            let mut stored = intent;
            stored["metadata"]["uid"] = format!("uid-{}-{}", key.0, key.1).into();
            stored["metadata"]["resourceVersion"] = "1".into();
            stored["metadata"]["generation"] = (generation.unwrap_or_default() + 1).into();
            if let Some(status) = there.map(|there| there["status"].clone()) {
                stored["status"] = status;
            } else {
                stored["status"] = json!({"active": true});
            }
            let running = self.components.remove(&key);
            let running = running.map(|running| Running { object: stored.clone(), ..running });
            let first =
                || Running { object: stored.clone(), applied: Objects::new(), refused: None };
            self.components.insert(key, running.unwrap_or_else(first));
        }
        written
    }

    /// A pass over a component.
    fn pass_over(&mut self, of: &Key) -> Vec<String> {
        let running = &self.components[of];
        let others = self.components.iter().filter(|(key, _)| *key != of);
        let documents = [running.object.clone()]
            .into_iter()
            .chain(self.manager.clone())
            .chain(others.map(|(_, other)| other.object.clone()))
            .chain(self.around.iter().cloned())
            .chain(running.applied.values().map(live));
        let cluster = ClusterState::of(documents.collect());
        let made = cluster.made(&cluster.object);
        let running = self.components.get_mut(of).unwrap();
        let mut written = Vec::new();
        running.refused = None;
        match made {
            Ok((intents, mut status)) => {
                // As if its pods were ready.
                status["active"] = true.into();
                running.object["status"] = status;
                let wanted: Objects = intents
                    .iter()
                    .map(|intent| serde_json::to_value(&intent.object).unwrap())
                    .map(|object| (key(&object), object))
                    .collect();
                // All else goes with its owner.
                let is_over =
                    |key: &Key| key.0 == "PodDisruptionBudget" && !wanted.contains_key(key);
                let over: Vec<Key> =
                    running.applied.keys().filter(|key| is_over(key)).cloned().collect();
                for key in over {
                    running.applied.remove(&key);
                    written.push(format!("{} {}", key.0, key.1));
                }
                for (key, object) in wanted {
                    let is_so = running.applied.get(&key).map(without_secrets)
                        == Some(without_secrets(&object));
                    if !is_so {
                        written.push(format!("{} {}", key.0, key.1));
                        running.applied.insert(key, object);
                    }
                }
            }
            Err(message) => running.refused = Some(message),
        }
        written
    }

    /// What is there of all components, as it is compared.
    pub(super) fn snapshot(&self) -> Objects {
        let mut all = Objects::new();
        for ((kind, name), running) in &self.components {
            for ((of, object), value) in &running.applied {
                all.insert((of.clone(), format!("{object} of {kind} {name}")), compared(value));
            }
            if self.manager.is_some() {
                all.insert((kind.clone(), name.clone()), running.object["spec"].clone());
            }
        }
        all
    }
}

/// An object without what is random: of a Secret there are the keys.
fn without_secrets(object: &Value) -> Value {
    let mut object = object.clone();
    if object["kind"] == "Secret" {
        let keys = object["data"].as_object().map(|data| data.keys().cloned().collect::<Vec<_>>());
        object["data"] = json!(keys);
        object["metadata"]["annotations"] = Value::Null;
    }
    object
}

/// And without what depends on what was before: how large a volume is, which never shrinks.
fn compared(object: &Value) -> Value {
    let mut object = without_secrets(object);
    if object["kind"] == "PersistentVolumeClaim" {
        object["spec"]["resources"] = Value::Null;
        object["metadata"]["annotations"] = Value::Null;
    }
    object
}

/// As the API server and what runs in the cluster have made it.
fn live(applied: &Value) -> Value {
    let mut object = applied.clone();
    let (kind, name) = key(applied);
    object["metadata"]["uid"] = format!("uid-{kind}-{name}").into();
    object["metadata"]["resourceVersion"] = "1".into();
    object["metadata"]["generation"] = 1.into();
    if kind == "PersistentVolumeClaim" {
        object["spec"]["volumeName"] = format!("volume-of-{name}").into();
        let size = object["spec"]["resources"]["requests"].clone();
        object["status"] = json!({"phase": "Bound", "capacity": size});
    }
    if kind == "Service" {
        object["spec"]["clusterIP"] = "10.96.0.7".into();
    }
    object
}

/// Whether what is there has all of that.
fn covers(there: &Value, intent: &Value) -> bool {
    match (there, intent) {
        (Value::Object(there), Value::Object(intent)) => intent
            .iter()
            .all(|(key, value)| there.get(key).is_some_and(|there| covers(there, value))),
        (there, intent) => there == intent,
    }
}
