//! What the operator knows of the cluster, kept by one watch for each kind and namespace: nodes, pods, and
//! what the operator itself has made. Objects lose on the way in what is not needed.
//!
//! An object that the operator has just written is in here before its watch reports it: the next
//! pass must not write it again. What a watch reports that is older than that is passed over.

pub(crate) mod metadata;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_runtime::watch::{Event, Listed};
use serde_json::{Map, Value, json};

use crate::kind::Kind;
use crate::names::{ADDRESSES, DRAINED_FOR, MANAGED_BY, OPERATOR, TYPE};

/// Which of them are asked for: what is not ours does not come.
#[must_use]
pub fn label_selector(kind: Kind) -> String {
    match kind {
        Kind::Node
        | Kind::GivenCa
        | Kind::Fact(_)
        | Kind::Manager
        | Kind::Component(_)
        | Kind::Profile(_)
        | Kind::NestedCluster
        | Kind::LinkLocalService
        | Kind::Upgrade => String::new(),
        Kind::Pod => TYPE.to_owned(),
        _ => format!("{MANAGED_BY}={OPERATOR}"),
    }
}

/// Only what is needed of an object.
fn prune(kind: Kind, mut object: DynamicObject) -> DynamicObject {
    metadata::bound(kind, &mut object.metadata);
    let parts: &[&str] = match kind {
        Kind::Node => {
            &["/spec/unschedulable", "/spec/taints", "/status/addresses", "/status/conditions"]
        }
        Kind::Pod => &[
            "/spec/nodeName",
            "/spec/hostNetwork",
            "/spec/containers",
            "/spec/initContainers",
            "/spec/imagePullSecrets",
            "/status/phase",
            "/status/reason",
            "/status/message",
            "/status/podIP",
            "/status/conditions",
            "/status/containerStatuses",
            "/status/initContainerStatuses",
        ],
        // Those that it has made look at what else it has, and at nothing else of it.
        Kind::Manager => {
            let spec = object.data.pointer("/spec").cloned().unwrap_or_default();
            object.data = json!({ "spec": spec });
            object.metadata.generation = None;
            return object;
        }
        Kind::Upgrade => return only_the_upgrade(object),
        _ => return object,
    };
    match kind {
        Kind::Pod => only_images(&mut object.data),
        Kind::Node => only_readiness(&mut object.data),
        _ => {}
    }
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.retain(|key, _| {
            kind == Kind::Node && [ADDRESSES, DRAINED_FOR].contains(&key.as_str())
        });
    }
    object.metadata.generation = None;
    let mut picked = Map::new();
    for part in parts {
        if let (Some(value), Some((parent, key))) =
            (object.data.pointer(part), part.rsplit_once('/'))
            && let Value::Object(map) = picked
                .entry(parent.trim_start_matches('/'))
                .or_insert_with(|| Value::Object(Map::new()))
        {
            map.insert(key.to_owned(), value.clone());
        }
    }
    object.data = Value::Object(picked);
    object
}

/// Of one that is over nothing is done any more.
fn only_the_upgrade(mut object: DynamicObject) -> DynamicObject {
    if !is_over(&object) {
        return object;
    }
    let keep = |pointer: &str| object.data.pointer(pointer).cloned().unwrap_or_default();
    let (manager, phase) = (keep("/spec/manager"), keep("/status/phase"));
    object.data = json!({"spec": {"manager": manager}, "status": {"phase": phase}});
    object
}

/// Whether nothing of it is to be done any more.
pub(crate) fn is_over(upgrade: &DynamicObject) -> bool {
    let is =
        |pointer: &str, text: &str| upgrade.data.pointer(pointer).is_some_and(|one| one == text);
    is("/status/phase", "RolledBack")
        || (is("/status/phase", "Succeeded") && !is("/spec/goal", "RollBack"))
}

/// Of the containers of a pod, which are long.
fn only_images(pod: &mut Value) {
    for list in ["/spec/containers", "/spec/initContainers"] {
        let containers = pod.pointer_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            container.retain(|key, _| ["name", "image"].contains(&key.as_str()));
        }
    }
}

/// Of the conditions of a node, whose times change all the time.
fn only_readiness(node: &mut Value) {
    let conditions = node.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    let Some(conditions) = conditions else { return };
    conditions.retain(|condition| condition["type"] == "Ready");
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        condition.retain(|key, _| ["type", "status"].contains(&key.as_str()));
    }
}

type Key = (String, String);

/// What the operator knows; cheap to share.
#[derive(Debug, Default)]
pub struct Cache {
    objects: RwLock<BTreeMap<Kind, BTreeMap<Key, Arc<DynamicObject>>>>,
}

impl Cache {
    /// The object.
    #[must_use]
    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        let key = (namespace.to_owned(), name.to_owned());
        self.read().get(&kind)?.get(&key).cloned()
    }

    /// Whether that object is not there any more; another of its name may be.
    #[must_use]
    pub fn is_gone(&self, kind: Kind, object: &DynamicObject) -> bool {
        let there = self.get(kind, &object.namespace().unwrap_or_default(), &object.name_any());
        there.is_none_or(|there| there.metadata.uid != object.metadata.uid)
    }

    /// Those of a namespace, by name; nodes are in none.
    #[must_use]
    pub fn list(&self, kind: Kind, namespace: &str) -> Vec<Arc<DynamicObject>> {
        let objects = self.read();
        let all = objects.get(&kind).into_iter();
        let from = (namespace.to_owned(), String::new());
        let all = all.flat_map(|all| all.range(from.clone()..));
        all.take_while(|((other, _), _)| other == namespace).map(|(_, one)| one.clone()).collect()
    }

    /// Those of all namespaces.
    #[must_use]
    pub fn all(&self, kind: Kind) -> Vec<Arc<DynamicObject>> {
        self.read().get(&kind).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// Stores an object, unless what is here is newer. Returns what was here before, and whether
    /// anything that is kept of it is different now.
    pub fn put(&self, kind: Kind, object: DynamicObject) -> (Option<Arc<DynamicObject>>, bool) {
        let object = prune(kind, object);
        let mut objects = self.write();
        let all = objects.entry(kind).or_default();
        let key = key(&object);
        let before = all.get(&key).cloned();
        if before.as_ref().is_some_and(|before| version(before) > version(&object)) {
            return (before, false);
        }
        let is_same = before.as_ref().is_some_and(|before| same(before, &object));
        all.insert(key, Arc::new(object));
        (before, !is_same)
    }

    /// Whether what is here is newer than that.
    fn is_older(&self, kind: Kind, object: &DynamicObject) -> bool {
        let objects = self.read();
        let here = objects.get(&kind).and_then(|all| all.get(&key(object)));
        here.is_some_and(|here| version(here) > version(object))
    }

    /// Stores an earlier state of an object in the place of one that is void. Returns both.
    fn take_back(
        &self,
        kind: Kind,
        object: DynamicObject,
        is_void: impl Fn(&DynamicObject) -> bool,
    ) -> Vec<Arc<DynamicObject>> {
        let mut objects = self.write();
        let Some(here) = objects.get_mut(&kind).and_then(|all| all.get_mut(&key(&object))) else {
            return Vec::new();
        };
        if !is_void(here) {
            return Vec::new();
        }
        let object = Arc::new(object);
        vec![std::mem::replace(here, object.clone()), object]
    }

    /// Stores a later state of an object, if it is still here: one that is gone meanwhile stays so.
    pub fn put_if_there(&self, kind: Kind, object: DynamicObject) {
        let is_there = self
            .get(kind, &object.namespace().unwrap_or_default(), &object.name_any())
            .is_some_and(|here| here.metadata.uid == object.metadata.uid);
        if is_there {
            self.put(kind, object);
        }
    }

    /// Notes that an object is being deleted, which its watch says later.
    pub fn mark_going(&self, kind: Kind, object: &DynamicObject) {
        let mut objects = self.write();
        let Some(here) = objects.get_mut(&kind).and_then(|all| all.get_mut(&key(object))) else {
            return;
        };
        if here.metadata.uid == object.metadata.uid {
            let mut going = (**here).clone();
            going.metadata.deletion_timestamp.get_or_insert_with(|| Time(Timestamp::now()));
            *here = Arc::new(going);
        }
    }

    /// Takes an object out.
    pub fn remove(&self, kind: Kind, object: &DynamicObject) -> Option<Arc<DynamicObject>> {
        let mut objects = self.write();
        let all = objects.get_mut(&kind)?;
        let key = key(object);
        // Another one of the name may have been stored since.
        if all.get(&key).is_some_and(|here| here.metadata.uid != object.metadata.uid) {
            return None;
        }
        all.remove(&key)
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Kind, BTreeMap<Key, Arc<DynamicObject>>>> {
        // Maps of whole objects cannot be left half changed.
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<Kind, BTreeMap<Key, Arc<DynamicObject>>>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one watch brings into the cache, and which objects have to be looked at again for it.
#[derive(Debug)]
pub struct Feed {
    kind: Kind,
    /// Of which namespace it reports; all, if it is empty.
    namespace: String,
    /// What a new list has had so far.
    listed: Option<BTreeSet<Key>>,
    /// Of that, what is older than what is known.
    older: Vec<DynamicObject>,
}

impl Feed {
    /// A watch of that kind.
    #[must_use]
    pub fn new(kind: Kind, namespace: &str) -> Self {
        Self { kind, namespace: namespace.to_owned(), listed: None, older: Vec::new() }
    }

    /// Of which kind it reports.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Takes an event. Returns the objects that are new, different or gone, as they are or were.
    pub fn take(&mut self, cache: &Cache, event: Event) -> Vec<Arc<DynamicObject>> {
        match event {
            Event::Init => {
                self.listed = Some(BTreeSet::new());
                self.older.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                let Some(object) = read(object) else { return Vec::new() };
                if let Some(listed) = &mut self.listed {
                    listed.insert(key(&object));
                }
                if cache.is_older(self.kind, &object) {
                    self.older.push(prune(self.kind, object));
                    return Vec::new();
                }
                self.put(cache, object)
            }
            Event::InitDone(listed) => {
                let mut changed = self.forget_unlisted(cache);
                changed.extend(self.take_back(cache, listed));
                changed
            }
            Event::Apply(object) => {
                read(object).map(|object| self.put(cache, object)).unwrap_or_default()
            }
            Event::Delete(object) => {
                let gone = read(object).and_then(|object| cache.remove(self.kind, &object));
                gone.into_iter().collect()
            }
            Event::Heartbeat | Event::Disconnected { .. } => Vec::new(),
        }
    }

    fn put(&self, cache: &Cache, object: DynamicObject) -> Vec<Arc<DynamicObject>> {
        let key = key(&object);
        let (before, has_changed) = cache.put(self.kind, object);
        if !has_changed {
            return Vec::new();
        }
        // The one before too: it may have belonged to another.
        before.into_iter().chain(cache.get(self.kind, &key.0, &key.1)).collect()
    }

    /// Of an etcd that was put back. An object whose state here is older than the list, and newer than what the list has of it, is
    /// one of a history that there is not any more; one that was written since the list is newer than that.
    fn take_back(&mut self, cache: &Cache, listed: Listed) -> Vec<Arc<DynamicObject>> {
        let is_void = |here: &DynamicObject| {
            listed.is_restored
                || version(here).zip(listed.version).is_some_and(|(here, list)| here <= list)
        };
        let older = std::mem::take(&mut self.older).into_iter();
        older.flat_map(|object| cache.take_back(self.kind, object, is_void)).collect()
    }

    /// What went while the watch was lost.
    fn forget_unlisted(&mut self, cache: &Cache) -> Vec<Arc<DynamicObject>> {
        let Some(listed) = self.listed.take() else { return Vec::new() };
        let mut objects = cache.write();
        let Some(all) = objects.get_mut(&self.kind) else { return Vec::new() };
        let of_here = |key: &Key| self.namespace.is_empty() || key.0 == self.namespace;
        let gone: Vec<Key> =
            all.keys().filter(|key| of_here(key) && !listed.contains(*key)).cloned().collect();
        gone.iter().filter_map(|key| all.remove(key)).collect()
    }
}

/// What the API server sends is an object with metadata.
fn read(object: Value) -> Option<DynamicObject> {
    serde_json::from_value(object).ok()
}

fn key(object: &DynamicObject) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// Kubernetes promises since 1.35 that versions of one kind can be compared as numbers, and etcd has
/// made them so that they can since ever.
fn version(object: &DynamicObject) -> Option<u64> {
    object.metadata.resource_version.as_ref()?.parse().ok()
}

/// Whether two states of an object differ in nothing but the version.
fn same(one: &DynamicObject, other: &DynamicObject) -> bool {
    let mut metadata = one.metadata.clone();
    metadata.resource_version.clone_from(&other.metadata.resource_version);
    metadata == other.metadata && one.data == other.data
}

#[cfg(test)]
mod tests;
