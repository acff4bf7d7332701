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
use crate::kind::{Kind, Workload};
use crate::names::Instance;
use crate::node::Node;
use crate::object::{controller_of, is_controlled_by};
use crate::peers::Peers;
use crate::pod::{Pod, labelled};
use crate::services::services;

/// So far the clocks of the API server and of the operator may be apart.
pub(super) const CLOCKS_DIFFER: time::Duration = time::Duration::minutes(10);

/// What one pass looks at.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The object.
    pub object: Arc<DynamicObject>,
    /// What is named after it.
    pub instance: Instance,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// The pods of the component, by name.
    pub pods: Vec<Pod>,
    /// All with its labels, also of what is not there any more.
    pub labelled: Vec<Pod>,
    /// What the operator has made for the object, by kind and name.
    pub owned: BTreeMap<(Kind, String), Arc<DynamicObject>>,
    /// The volumes of its nodes, by name; they outlast the object.
    pub claims: BTreeMap<String, Arc<DynamicObject>>,
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
        let manager = manager_of(cache, &object);
        let peers = peers(cache, &object, manager.as_deref(), &nodes);
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
        let claims = cache.list(Kind::PersistentVolumeClaim, &namespace).into_iter();
        let claims = claims.filter(|claim| instance.has_labels(claim));
        let claims = claims.map(|claim| (claim.name_any(), claim)).collect();
        let keepers: Vec<String> = owned
            .iter()
            .filter(|((kind, _), keeper)| instance.is_keeper(*kind, keeper))
            .filter_map(|(_, keeper): (_, &Arc<DynamicObject>)| keeper.metadata.uid.clone())
            .collect();
        let all = labelled(cache, &namespace, instance);
        // Labels anybody can set.
        let is_kept = |pod: &&Arc<DynamicObject>| {
            controller_of(pod).is_some_and(|keeper| keepers.contains(&keeper.uid))
        };
        let pods = all.iter().filter(is_kept).map(|pod| Pod::among(pod, &nodes)).collect();
        let labelled = all.iter().map(|pod| Pod::of(pod)).collect();
        let trust = cache.get(Kind::ConfigMap, &namespace, crate::names::TRUST);
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
            instance: instance.clone(),
            nodes,
            pods,
            labelled,
            owned,
            claims,
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

    /// The StatefulSets or DaemonSets that keep its usual pods: one, or one for each node.
    pub fn keepers(&self, workload: Workload) -> impl Iterator<Item = &Arc<DynamicObject>> {
        let kind = workload.kind();
        let all = self.owned.iter().filter(move |(key, _)| key.0 == kind);
        all.map(|(_, keeper)| keeper).filter(move |keeper| self.instance.is_keeper(kind, keeper))
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

/// The Manager that has made the object.
fn manager_of(cache: &Cache, object: &DynamicObject) -> Option<Arc<DynamicObject>> {
    let owner = controller_of(object).filter(|owner| owner.kind == Kind::Manager.name())?;
    let manager = cache.get(Kind::Manager, &object.namespace().unwrap_or_default(), &owner.name);
    manager.filter(|manager| manager.metadata.uid.as_ref() == Some(&owner.uid))
}

/// The components around it, also those that the Manager has and has not written yet. An object of such a name that is
/// another's, it does not write.
fn peers(
    cache: &Cache,
    object: &DynamicObject,
    manager: Option<&DynamicObject>,
    nodes: &[Node],
) -> Peers {
    let namespace = object.namespace().unwrap_or_default();
    let owner = controller_of(object).map(|owner| &owner.uid);
    let manager = manager.filter(|manager| {
        manager.metadata.uid.as_ref() == owner && manager.metadata.deletion_timestamp.is_none()
    });
    let spec = manager.and_then(|manager| manager.data.get("spec"));
    let (mut planned, _) = spec.map(services).unwrap_or_default();
    planned.retain(|one| {
        let there = cache.get(Kind::Component(one.facts.kind), &namespace, &one.name);
        there.is_none_or(|there| there.metadata.deletion_timestamp.is_some())
    });
    let planned = planned.iter().map(|one| (one.facts, one.name.as_str(), &one.spec));
    Peers::read(cache, object, nodes, components::workload_of).with_planned(
        planned,
        nodes,
        components::workload_of,
    )
}

#[cfg(test)]
mod tests {
    use opensdn_runtime::watch::Event;
    use serde_json::{Value, json};

    use super::*;
    use crate::cache::Feed;

    fn database(name: &str, owner: &str) -> Value {
        let owner = json!({"apiVersion": "a/v1", "kind": "Manager", "name": "cluster1", "uid": owner, "controller": true});
        json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Cassandra",
            "metadata": {"name": name, "namespace": "tf", "uid": name, "resourceVersion": "1",
                "ownerReferences": [owner]}})
    }

    /// A cache with these of the databases that the Manager has.
    fn cache(there: &[Value]) -> Cache {
        let cache = Cache::default();
        let item = |name: &str| json!({"metadata": {"name": name}, "spec": {}});
        let both = json!([item("configdb1"), item("analyticsdb1")]);
        let manager = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
            "metadata": {"name": "cluster1", "namespace": "tf", "uid": "m", "resourceVersion": "1"},
            "spec": {"services": {"cassandras": both}, "commonConfiguration": {"certKeyLength": 4096}}});
        Feed::new(Kind::Manager, "").take(&cache, Event::Apply(manager));
        for one in there {
            Feed::new(Kind::Component("Cassandra"), "").take(&cache, Event::Apply(one.clone()));
        }
        cache
    }

    /// The databases around `configdb1`, where these are there.
    fn around(there: &[Value]) -> Vec<String> {
        let cache = cache(there);
        let object = cache.get(Kind::Component("Cassandra"), "tf", "configdb1").unwrap();
        let manager = manager_of(&cache, &object);
        let peers = peers(&cache, &object, manager.as_deref(), &[]);
        peers.of_kind("Cassandra").map(|peer| peer.name.clone()).collect()
    }

    #[test]
    fn the_length_of_keys_is_what_the_manager_says() {
        let cache = cache(&[database("configdb1", "m")]);
        let object = cache.get(Kind::Component("Cassandra"), "tf", "configdb1").unwrap();
        let instance = Instance { word: "cassandra".to_owned(), name: "configdb1".to_owned() };
        let fetched = Fetched::read(&cache, object, &instance);
        assert_eq!(super::super::validate::key_length(&fetched), Some(4096));
    }

    /// Which folder of its nodes a database has depends on whether it is the only one.
    #[test]
    fn a_database_knows_the_other_before_the_manager_has_written_it() {
        let (own, other) = (database("configdb1", "m"), database("analyticsdb1", "m"));
        let both = ["analyticsdb1", "configdb1"];
        assert_eq!(around(&[own.clone(), other.clone()]), both);
        assert_eq!(around(std::slice::from_ref(&own)), both);
        let mut going = other;
        going["metadata"]["deletionTimestamp"] = json!("2026-11-30T00:00:00Z");
        assert_eq!(around(&[own.clone(), going]), both, "it is written again");
        assert_eq!(around(&[own, database("analyticsdb1", "another")]), ["configdb1"]);
        assert_eq!(around(&[database("configdb1", "an-earlier-one")]), ["configdb1"]);
    }
}
