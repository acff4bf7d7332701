//! What one pass looks at: the object and what the caches have of everything around it. No call is
//! made, but for the CA, where there is none yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::DynamicObject;
use time::OffsetDateTime;

use crate::build::Valid;
use crate::cache::Cache;
use crate::canary::{Pace, pace};
use crate::cluster::Cluster;
use crate::components;
use crate::kind::Kind;
use crate::names::Instance;
use crate::node::Node;
use crate::object::{controller_of, is_controlled_by};
use crate::peers::Peers;
use crate::pod::{Pod, labelled};

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
    /// All with its labels, also of what is not there any more.
    pub labelled: Vec<Pod>,
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
    /// How an Upgrade has its pods replaced.
    pub pace: Pace,
}

impl Fetched {
    /// What the caches have for the object.
    #[must_use]
    pub fn read(cache: &Cache, object: Arc<DynamicObject>, instance: &Instance) -> Self {
        let namespace = object.namespace().unwrap_or_default();
        let uid = object.uid().unwrap_or_default();
        let nodes: Vec<Node> =
            cache.list(Kind::Node, "").iter().map(|node| Node::of(node)).collect();
        let peers = Peers::read(cache, &object, &nodes, components::workload_of);
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
        let all = labelled(cache, &namespace, instance);
        // Labels anybody can set.
        let is_kept = |pod: &&Arc<DynamicObject>| {
            controller_of(pod).is_some_and(|keeper| keepers.contains(&keeper.uid))
        };
        let pods = all.iter().filter(is_kept).map(|pod| Pod::of(pod)).collect();
        let labelled = all.iter().map(|pod| Pod::of(pod)).collect();
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
        let pace = pace(cache, &object);
        Self {
            object,
            nodes,
            pods,
            labelled,
            owned,
            peers,
            cluster,
            profiles,
            manager,
            holder,
            trust,
            pace,
        }
    }

    /// The object's namespace.
    #[must_use]
    pub fn namespace(&self) -> String {
        self.object.namespace().unwrap_or_default()
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
