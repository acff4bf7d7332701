//! All pods of a namespace, by a watch: of which name there were how many, how many of a service were away at the same
//! moment, and on which nodes there was one that pulls images. A look now and then would miss a pod that is back at once.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use opensdn_testing::Failed;
use opensdn_testing::sandbox::Sandbox;

#[derive(Default)]
struct Seen {
    /// Whether each is well now, by service and [place](place). One that is deleted is not.
    now: BTreeMap<(String, String), bool>,
    listed: BTreeSet<(String, String)>,
    identities: BTreeSet<(String, String)>,
    most_away: BTreeMap<String, BTreeSet<String>>,
    /// The nodes that pulled, and those of them that did when a pod of a service had been made since the first list.
    pulled: BTreeSet<String>,
    pulled_late: BTreeSet<String>,
    is_replacing: bool,
}

/// The watch. It ends with this.
pub(crate) struct Pods {
    seen: Arc<Mutex<Seen>>,
    task: tokio::task::AbortHandle,
}

impl Pods {
    pub(crate) fn watch(sandbox: &Sandbox, namespace: &str) -> Result<Self, Failed> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let pods: Api<Pod> = Api::namespaced(sandbox.client()?, namespace);
        let all = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut stream = pin!(watcher(pods, Config::default()).default_backoff());
            while let Some(event) = stream.next().await {
                if let Ok(event) = event {
                    lock(&all).take(event);
                }
            }
        });
        Ok(Self { seen, task: task.abort_handle() })
    }

    /// How many pods there were of each name.
    pub(crate) fn by_name(&self) -> BTreeMap<String, usize> {
        let mut number = BTreeMap::new();
        for (name, _) in &lock(&self.seen).identities {
            *number.entry(name.clone()).or_default() += 1;
        }
        number
    }

    /// Which of each service were not well at the same moment, where they were most.
    pub(crate) fn most_away(&self) -> BTreeMap<String, BTreeSet<String>> {
        lock(&self.seen).most_away.clone()
    }

    /// How many pods of the service there are or were, by their places.
    pub(crate) fn places(&self, service: &str) -> usize {
        lock(&self.seen).now.keys().filter(|(of, _)| of == service).count()
    }

    /// The nodes on which there was a pod that pulls images.
    pub(crate) fn pulled(&self) -> BTreeSet<String> {
        lock(&self.seen).pulled.clone()
    }

    /// Those on which there was one only when pods of services were replaced already.
    pub(crate) fn pulled_late(&self) -> BTreeSet<String> {
        lock(&self.seen).pulled_late.clone()
    }

    /// From here on it is counted again.
    pub(crate) fn forget(&self) {
        let mut seen = lock(&self.seen);
        (seen.identities, seen.most_away) = Default::default();
    }
}

impl Seen {
    fn take(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => {
                self.listed.extend(key(&pod));
                self.put(&pod);
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                for (pod, is_well) in &mut self.now {
                    *is_well = *is_well && listed.contains(pod);
                }
            }
            Event::Apply(pod) => {
                let is_new = !self.identities.contains(&identity(&pod));
                self.is_replacing |= is_new && is_of_service(&pod);
                self.put(&pod);
                self.count();
            }
            Event::Delete(pod) => {
                if let Some(is_well) = key(&pod).and_then(|key| self.now.get_mut(&key)) {
                    *is_well = false;
                }
                self.count();
            }
        }
    }

    fn put(&mut self, pod: &Pod) {
        if service(pod) == "upgrade" {
            let node = place(pod).unwrap_or_default();
            if self.pulled.insert(node.clone()) && self.is_replacing {
                self.pulled_late.insert(node);
            }
        }
        if !is_of_service(pod) {
            return;
        }
        if let Some(key) = key(pod) {
            self.now.insert(key, is_well(pod));
        }
        self.identities.insert(identity(pod));
    }

    fn count(&mut self) {
        let mut away: BTreeMap<&String, BTreeSet<String>> = BTreeMap::new();
        for ((service, pod), _) in self.now.iter().filter(|(_, is_well)| !**is_well) {
            away.entry(service).or_default().insert(pod.clone());
        }
        for (service, pods) in away {
            let most = self.most_away.entry(service.clone()).or_default();
            if pods.len() > most.len() {
                *most = pods;
            }
        }
    }
}

fn identity(pod: &Pod) -> (String, String) {
    (pod.name_any(), pod.uid().unwrap_or_default())
}

fn key(pod: &Pod) -> Option<(String, String)> {
    Some((service(pod), place(pod)?))
}

fn service(pod: &Pod) -> String {
    pod.labels().get("tf_manager").cloned().unwrap_or_default()
}

/// Where its successor will be: the name of a StatefulSet's, and the node of all others, once they have one.
fn place(pod: &Pod) -> Option<String> {
    let has_name = pod.owner_references().iter().any(|owner| owner.kind == "StatefulSet");
    if has_name { Some(pod.name_any()) } else { pod.spec.as_ref()?.node_name.clone() }
}

/// Not one that brings images onto a node.
fn is_of_service(pod: &Pod) -> bool {
    pod.owner_references().iter().any(|owner| ["StatefulSet", "DaemonSet"].contains(&&*owner.kind))
}

fn is_well(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    pod.metadata.deletion_timestamp.is_none()
        && conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Pods {
    fn drop(&mut self) {
        self.task.abort();
    }
}
