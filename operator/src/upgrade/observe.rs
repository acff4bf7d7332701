//! What a pass over an Upgrade looks at: how the services of its Manager are, and which other Upgrade comes first.

use std::collections::BTreeSet;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_crds::component::COMPONENTS;
use opensdn_crds::upgrade::Phase;
use opensdn_upgrade::daemons::Daemons;
use opensdn_upgrade::health::Service;
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::canary::{is_at_work, phase};
use crate::component::word;
use crate::introspect::{self, Introspect};
use crate::kind::Kind;
use crate::names::Instance;
use crate::node::Node;
use crate::object::is_controlled_by;
use crate::pod::{keepers, labelled};

/// The services that the Manager has made, with their pods, and what their daemons have said last.
pub(super) fn services(
    cache: &Cache,
    introspect: &Introspect,
    manager: &DynamicObject,
) -> Vec<Service> {
    let namespace = manager.namespace().unwrap_or_default();
    let manager = manager.uid().unwrap_or_default();
    let mut services = Vec::new();
    for facts in COMPONENTS {
        for object in cache.list(Kind::Component(facts.kind), &namespace) {
            if !is_controlled_by(&object, &manager) {
                continue;
            }
            let instance = Instance { word: word(facts), name: object.name_any() };
            let keepers = keepers(cache, &namespace, &instance, &object.uid().unwrap_or_default());
            let keepers: Vec<String> = keepers.iter().filter_map(|keeper| keeper.uid()).collect();
            let is_kept = |pod: &DynamicObject| {
                keepers.is_empty() || keepers.iter().any(|keeper| is_controlled_by(pod, keeper))
            };
            let pods = labelled(cache, &namespace, &instance);
            let pods: Vec<Value> =
                pods.iter().filter(|pod| is_kept(pod)).map(|pod| json!(**pod)).collect();
            let mut service = Service::of_objects(facts.kind, &json!(*object), &pods);
            // What is known here is in the status a moment later.
            let stored = service.daemons.take().map(|daemons| daemons.said);
            let asked = introspect::Service::of(facts, &object);
            let heard = introspect.heard(&asked, stored.as_ref());
            service.daemons = heard
                .map(|last| Daemons { said: last.said.unwrap_or_default(), asked_at: last.began });
            services.push(service);
        }
    }
    services
}

/// The nodes that are drained for an Upgrade, by its namespace and name.
pub(super) fn drained(cache: &Cache, upgrade: &str) -> BTreeSet<String> {
    let nodes = cache.list(Kind::Node, "").into_iter().map(|node| Node::of(&node));
    let nodes = nodes.filter(|node| node.drained_for.as_deref() == Some(upgrade));
    nodes.map(|node| node.name).collect()
}

/// Another Upgrade of the Manager that is at work, or that waits and is older; in words. Of those that wait none is named: which
/// is the first changes often, and each time all others would be written.
pub(super) fn comes_first(cache: &Cache, object: &DynamicObject, manager: &str) -> Option<String> {
    let namespace = object.namespace().unwrap_or_default();
    let age =
        |one: &DynamicObject| (one.metadata.creation_timestamp.clone(), one.metadata.uid.clone());
    let all = cache.list(Kind::Upgrade, &namespace);
    let of_manager = all.iter().filter(|other| {
        other.metadata.uid != object.metadata.uid
            && other.data.pointer("/spec/manager").and_then(Value::as_str) == Some(manager)
    });
    let is_older = |other: &DynamicObject| {
        phase(other) == Phase::Pending
            && other.metadata.deletion_timestamp.is_none()
            && age(other) < age(object)
    };
    let mut waits = false;
    for other in of_manager {
        if is_at_work(other) {
            return Some(format!("the Upgrade {}", other.name_any()));
        }
        waits |= is_older(other);
    }
    waits.then(|| "an older Upgrade".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upgrade(name: &str, created: &str, phase: Option<Phase>) -> DynamicObject {
        serde_json::from_value(json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
            "metadata": {"name": name, "namespace": "tf", "uid": name, "creationTimestamp": created},
            "spec": {"manager": "m"}, "status": {"phase": phase}}))
        .unwrap()
    }

    #[test]
    fn of_two_upgrades_of_a_manager_one_comes_first() {
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let first = |other: DynamicObject, manager: &str| {
            let cache = Cache::default();
            cache.put(Kind::Upgrade, other);
            comes_first(&cache, &upgrade("this", "2026-01-01T12:00:00Z", None), manager).is_some()
        };
        assert!(first(upgrade("o", new, Some(Phase::Running)), "m"), "one at work");
        assert!(
            first(upgrade("o", new, Some(Phase::Stopped)), "m"),
            "a person has to decide first"
        );
        assert!(first(upgrade("o", old, None), "m"), "the older");
        assert!(!first(upgrade("o", new, None), "m"));
        assert!(!first(upgrade("o", old, Some(Phase::Succeeded)), "m"));
        assert!(!first(upgrade("o", old, Some(Phase::Refused)), "m"), "nothing of it is done");
        assert!(!first(upgrade("o", old, None), "another"));
    }
}
