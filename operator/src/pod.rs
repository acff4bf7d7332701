//! Pods, as the operator sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_upgrade::health::trouble;
use time::OffsetDateTime;

use crate::cache::Cache;
use crate::ensemble::DATA_LOST;
use crate::kind::Kind;
use crate::names::Instance;
use crate::network::is_address;
use crate::node::Node;
use crate::object::{condition, controller_of, created, is_controlled_by, list, text};

/// What matters of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// The images of its containers, those that run before included.
    pub images: BTreeMap<String, String>,
    /// Where it runs.
    pub node: String,
    /// What keeps it, by kind and name; of a ReplicaSet it is the Deployment.
    pub keeper: Option<(Kind, String)>,
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
    /// The same, as its DaemonSet counts them.
    pub generation: Option<String>,
    /// Whether it has found that what its member had stored is gone.
    pub has_lost_data: bool,
    /// When it was made, by the clock of the API server.
    pub created: Option<OffsetDateTime>,
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
            images: list(&pod.data, "/spec/containers")
                .chain(list(&pod.data, "/spec/initContainers"))
                .map(|one| (text(one, "/name").to_owned(), text(one, "/image").to_owned()))
                .collect(),
            node: text(&pod.data, "/spec/nodeName").to_owned(),
            keeper: keeper(pod),
            address: is_address(address).then(|| address.to_owned()),
            is_ready: is_ready && pod.metadata.deletion_timestamp.is_none(),
            trouble: trouble(&pod.data),
            is_going: pod.metadata.deletion_timestamp.is_some(),
            revision: pod.labels().get("controller-revision-hash").cloned(),
            generation: pod.labels().get("pod-template-generation").cloned(),
            has_lost_data: has_lost_data(pod),
            created: created(pod),
        }
    }

    /// As the API server has it, and with what its node says of it: a pod on the node's network keeps the address that this had when it came, also when the
    /// node has another one by now, and nothing reaches it there any more.
    #[must_use]
    pub fn among(pod: &DynamicObject, nodes: &[Node]) -> Self {
        let own = Self::of(pod);
        let node = nodes.iter().find(|node| node.name == own.node);
        let (Some(node), Some(address)) = (node, &own.address) else { return own };
        let is_there = pod.data.pointer("/spec/hostNetwork") == Some(&true.into());
        let has_it = |one: &String| one == address || node.others.contains(address);
        match &node.address {
            Some(now) if is_there && !has_it(now) && !own.is_ready && !own.is_going => {
                let trouble = format!(
                    "it came with the address {address}, and node {} has {now} now: delete the pod, so that it comes with that",
                    node.name
                );
                Self { trouble: Some(trouble), ..own }
            }
            _ => own,
        }
    }
}

/// The pods with the labels of a component, which anybody can set.
pub(crate) fn labelled(
    cache: &Cache,
    namespace: &str,
    instance: &Instance,
) -> Vec<Arc<DynamicObject>> {
    let mut all = cache.list(Kind::Pod, namespace);
    all.retain(|pod| instance.has_labels(pod));
    all
}

/// What keeps the usual pods of a component, whose UID is `owner`: a StatefulSet or a DaemonSet, or a StatefulSet for each node.
pub(crate) fn keepers(
    cache: &Cache,
    namespace: &str,
    instance: &Instance,
    owner: &str,
) -> Vec<Arc<DynamicObject>> {
    let kinds = [Kind::StatefulSet, Kind::DaemonSet].into_iter();
    let of_kind = |kind| cache.list(kind, namespace).into_iter().map(move |one| (kind, one));
    let owned = kinds.flat_map(of_kind).filter(|(_, keeper)| is_controlled_by(keeper, owner));
    owned.filter(|(kind, one)| instance.is_keeper(*kind, one)).map(|(_, keeper)| keeper).collect()
}

fn keeper(pod: &DynamicObject) -> Option<(Kind, String)> {
    let controller = controller_of(pod)?;
    if controller.kind == "ReplicaSet" {
        let hash = pod.labels().get("pod-template-hash")?;
        let deployment = controller.name.strip_suffix(hash)?.strip_suffix('-')?;
        return Some((Kind::Deployment, deployment.to_owned()));
    }
    Some((Kind::named(&controller.kind)?, controller.name.clone()))
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lost(status: &Value) -> bool {
        let pod = json!({"metadata": {"name": "p"}, "status": {"containerStatuses": [status]}});
        has_lost_data(&serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn a_pod_that_is_not_ready_says_that_its_node_has_another_address_now() {
        let node = |addresses: &[&str]| {
            let all: Vec<Value> = addresses
                .iter()
                .map(|address| json!({"type": "InternalIP", "address": address}))
                .collect();
            let node = json!({"metadata": {"name": "n1"}, "status": {"addresses": all}});
            [Node::of(&serde_json::from_value(node).unwrap())]
        };
        let trouble = |ready: &str, host_network: bool, nodes: &[Node]| {
            let pod = json!({"metadata": {"name": "p", "namespace": "tf", "uid": "p"},
                "spec": {"nodeName": "n1", "hostNetwork": host_network},
                "status": {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": ready}]}});
            // What a cache keeps of it.
            let cache = Cache::default();
            cache.put(Kind::Pod, serde_json::from_value(pod).unwrap());
            Pod::among(&cache.get(Kind::Pod, "tf", "p").unwrap(), nodes).trouble
        };
        let moved = node(&["10.0.0.9"]);
        let said = trouble("False", true, &moved).unwrap();
        assert!(said.contains("10.0.0.1, and node n1 has 10.0.0.9 now: delete the pod"), "{said}");
        for (ready, addresses) in [
            ("False", &["10.0.0.1"][..]),
            ("False", &["10.0.0.9", "10.0.0.1"]),
            ("False", &[]),
            ("True", &["10.0.0.9"]),
        ] {
            assert_eq!(trouble(ready, true, &node(addresses)), None, "{ready} {addresses:?}");
        }
        assert_eq!(trouble("False", false, &moved), None, "it is on the network of pods");
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
