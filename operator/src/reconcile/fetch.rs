//! What one pass looks at: the object and what the caches have of everything around it. No call is
//! made, but for the CA, where there is none yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;
use time::OffsetDateTime;

use crate::cache::{Cache, Kind};
use crate::cluster::Cluster;
use crate::component::Workload;
use crate::components;
use crate::ensemble::DATA_LOST;
use crate::names::{ADDRESSES, Instance, TYPE};
use crate::network::is_address;
use crate::peers::Peers;
use crate::reconcile::validate::Valid;

/// Either of them marks a node of the control plane; kubeadm sets only the first since 1.24.
pub const CONTROL_PLANE: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// So far the clocks of the API server and of the operator may be apart.
pub(super) const CLOCKS_DIFFER: time::Duration = time::Duration::minutes(10);

/// What one pass looks at.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The object.
    pub object: Arc<DynamicObject>,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// The pods of the component, by name.
    pub pods: Vec<Pod>,
    /// What the operator has made for the object, by kind and name.
    pub owned: BTreeMap<(Kind, String), Arc<DynamicObject>>,
    /// The components around it.
    pub peers: Peers,
    /// What the cluster says of itself.
    pub cluster: Cluster,
    /// The profiles of the namespace, by name.
    pub profiles: BTreeMap<String, Arc<DynamicObject>>,
    /// The Manager that has made the object.
    pub manager: Option<Arc<DynamicObject>>,
    /// Who has the Secret with the name of its certificates, if another has: the kind is not in it.
    pub holder: Option<String>,
    /// The ConfigMap of the namespace with the certificates that are trusted.
    pub trust: Option<Arc<DynamicObject>>,
}

/// What matters of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The address of pods on its network.
    pub address: Option<String>,
    /// Its others.
    pub others: Vec<String>,
}

/// What matters of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub node: String,
    /// Its address.
    pub address: Option<String>,
    /// Whether it is ready.
    pub is_ready: bool,
    /// Why a container does not run, in Kubernetes' words.
    pub trouble: Option<String>,
    /// Whether it is terminating.
    pub is_going: bool,
    /// Of which template it is, as its StatefulSet names it.
    pub revision: Option<String>,
    /// Whether it has found that what its member had stored is gone.
    pub has_lost_data: bool,
    /// When it was made, by the clock of the API server.
    pub created: Option<OffsetDateTime>,
}

impl Fetched {
    /// What the caches have for the object.
    #[must_use]
    pub fn read(cache: &Cache, object: Arc<DynamicObject>, instance: &Instance) -> Self {
        let namespace = object.namespace().unwrap_or_default();
        let uid = object.uid().unwrap_or_default();
        let nodes: Vec<Node> =
            cache.list(Kind::Node, "").iter().map(|node| Node::of(node)).collect();
        let peers = Peers::read(cache, &object, &nodes);
        let profiles =
            components::profiles().flat_map(|kind| cache.list(Kind::Profile(kind), &namespace));
        let profiles = profiles.map(|profile| (profile.name_any(), profile)).collect();
        let mut owned = BTreeMap::new();
        for kind in Kind::OWNED {
            let all = cache.list(kind, &namespace).into_iter();
            for one in all.filter(|one| is_controlled_by(one, &uid)) {
                owned.insert((kind, one.name_any()), one);
            }
        }
        let keepers: Vec<String> = owned
            .iter()
            .filter(|((kind, _), _)| [Kind::StatefulSet, Kind::DaemonSet].contains(kind))
            .filter_map(|(_, keeper): (_, &Arc<DynamicObject>)| keeper.metadata.uid.clone())
            .collect();
        let pods = cache.list(Kind::Pod, &namespace);
        let mine = |pod: &&Arc<DynamicObject>| {
            let label = |key: &str| pod.labels().get(key);
            // Labels anybody can set.
            let is_kept = controller_of(pod).is_some_and(|keeper| keepers.contains(&keeper.uid));
            is_kept
                && label(TYPE) == Some(&instance.word)
                && label(&instance.word) == Some(&instance.name)
        };
        let pods = pods.iter().filter(mine).map(|pod| Pod::of(pod)).collect();
        let trust = cache.get(Kind::ConfigMap, &namespace, crate::names::TRUST);
        let manager = controller_of(&object).filter(|owner| owner.kind == Kind::Manager.name());
        let manager = manager.and_then(|owner| cache.get(Kind::Manager, &namespace, &owner.name));
        let secret = cache.get(Kind::Secret, &namespace, &instance.certificates());
        // One that had the name before it goes by itself.
        let is_other = |owner: &&OwnerReference| {
            owner.name != instance.name || owner.kind.to_lowercase() != instance.word
        };
        let holder = secret.as_deref().and_then(controller_of).filter(is_other);
        let holder = holder.map(|owner| format!("{} {}", owner.kind, owner.name));
        let cluster = Cluster::read(cache);
        Self { object, nodes, pods, owned, peers, cluster, profiles, manager, holder, trust }
    }

    /// The object's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// Whether a pod may be away for a new certificate: all are ready, and of a component that reads it only when it
    /// starts all have been there for a while, so that those are known that started before.
    #[must_use]
    pub fn pods_can_spare_one(&self, valid: &Valid, reads_once: bool, now: OffsetDateTime) -> bool {
        let is_old =
            |pod: &Pod| pod.created.is_some_and(|created| now - created > 2 * CLOCKS_DIFFER);
        i32::try_from(self.pods.len()) == Ok(valid.replicas_now())
            && self.pods.iter().all(|pod| pod.is_ready && (!reads_once || is_old(pod)))
    }

    /// The addresses that pods have there or may get, in order and each once. Pods have that of their
    /// node, so their files can be there before they are.
    #[must_use]
    pub fn addresses(&self, nodes: &[Node]) -> Vec<String> {
        let nodes = nodes.iter().filter_map(|node| node.address.clone());
        let mut all: Vec<String> =
            nodes.chain(self.pods.iter().filter_map(|pod| pod.address.clone())).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// The nodes with these labels; without a selector those that have a pod of such a workload then.
#[must_use]
pub fn nodes_of(
    nodes: &[Node],
    selector: Option<&BTreeMap<String, String>>,
    workload: Workload,
) -> Vec<Node> {
    let selector = selector.filter(|selector| !selector.is_empty());
    let wanted = |node: &&Node| match (selector, workload) {
        (Some(selector), _) => node.has(selector),
        (None, Workload::StatefulSet) => node.is_of_control_plane(),
        (None, Workload::DaemonSet) => true,
    };
    nodes.iter().filter(wanted).cloned().collect()
}

/// The object that has made this one.
#[must_use]
pub fn controller_of(object: &DynamicObject) -> Option<&OwnerReference> {
    object.owner_references().iter().find(|owner| owner.controller == Some(true))
}

fn is_controlled_by(object: &DynamicObject, uid: &str) -> bool {
    controller_of(object).is_some_and(|owner| owner.uid == uid)
}

impl Node {
    /// Whether it has these labels.
    #[must_use]
    pub fn has(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.iter().all(|(key, value)| self.labels.get(key) == Some(value))
    }

    /// Whether it is of the control plane.
    #[must_use]
    pub fn is_of_control_plane(&self) -> bool {
        CONTROL_PLANE.iter().any(|label| self.labels.contains_key(*label))
    }

    fn of(node: &DynamicObject) -> Self {
        let mut internal = list(&node.data, "/status/addresses")
            .filter(|address| text(address, "/type") == "InternalIP")
            .map(|address| text(address, "/address"))
            // It becomes a name in a certificate.
            .filter(|address| is_address(address));
        let address = internal.next().map(str::to_owned);
        let told = node.annotations().get(ADDRESSES).into_iter().flat_map(|told| told.split(','));
        let others = internal.chain(told.map(str::trim)).map(str::to_owned).collect();
        Self { name: node.name_any(), labels: node.labels().clone(), address, others }
    }
}

impl Pod {
    /// As the API server has it.
    #[must_use]
    pub fn of(pod: &DynamicObject) -> Self {
        let is_ready =
            condition(pod, "Ready").is_some_and(|ready| text(ready, "/status") == "True");
        let address = text(&pod.data, "/status/podIP");
        Self {
            name: pod.name_any(),
            node: text(&pod.data, "/spec/nodeName").to_owned(),
            address: is_address(address).then(|| address.to_owned()),
            is_ready: is_ready && pod.metadata.deletion_timestamp.is_none(),
            trouble: trouble(pod),
            is_going: pod.metadata.deletion_timestamp.is_some(),
            revision: pod.labels().get("controller-revision-hash").cloned(),
            has_lost_data: has_lost_data(pod),
            created: created(pod),
        }
    }
}

/// When an object was made, by the clock of the API server.
#[must_use]
pub fn created(object: &DynamicObject) -> Option<OffsetDateTime> {
    let seconds = object.metadata.creation_timestamp.as_ref()?.0.as_second();
    OffsetDateTime::from_unix_timestamp(seconds).ok()
}

fn condition<'a>(pod: &'a DynamicObject, type_: &str) -> Option<&'a Value> {
    list(&pod.data, "/status/conditions").find(|condition| text(condition, "/type") == type_)
}

/// Why a pod does not run: what the scheduler says, else what a container waits for.
fn trouble(pod: &DynamicObject) -> Option<String> {
    let scheduled = condition(pod, "PodScheduled");
    if let Some(unscheduled) = scheduled.filter(|one| text(one, "/status") == "False") {
        return Some(text(unscheduled, "/message").to_owned());
    }
    let init = list(&pod.data, "/status/initContainerStatuses");
    let mut all = init.chain(list(&pod.data, "/status/containerStatuses"));
    all.find_map(|container| {
        let reason = text(container, "/state/waiting/reason");
        let is_usual = ["", "ContainerCreating", "PodInitializing"].contains(&reason);
        let (name, message) = (text(container, "/name"), text(container, "/state/waiting/message"));
        (!is_usual).then(|| format!("container {name}: {reason} {message}").trim_end().to_owned())
    })
}

/// By the last message of one of its containers, also while that is not started again yet. One that runs has got over
/// it, or says so again; else a node that is lost later would have its member taken out for what was long ago.
fn has_lost_data(pod: &DynamicObject) -> bool {
    let mut containers = list(&pod.data, "/status/containerStatuses");
    let states = ["/state/terminated/message", "/lastState/terminated/message"];
    containers.any(|container| {
        container.pointer("/state/running").is_none()
            && states.iter().any(|state| text(container, state) == DATA_LOST)
    })
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lost(status: &Value) -> bool {
        let pod = json!({"metadata": {"name": "p"}, "status": {"containerStatuses": [status]}});
        has_lost_data(&serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn data_is_lost_by_the_last_message_until_the_container_runs_again() {
        let said = json!({"terminated": {"message": DATA_LOST}});
        assert!(lost(&json!({"state": said})));
        let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        assert!(lost(&json!({"state": waits, "lastState": said})));
        assert!(!lost(&json!({"state": {"running": {}}, "lastState": said})));
        assert!(!lost(&json!({"state": waits, "lastState": {"terminated": {"message": "x"}}})));
    }
}
