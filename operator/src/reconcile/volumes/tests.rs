//! What volumes are to be, by what is there.

use std::sync::Arc;

use opensdn_runtime::watch::Event;
use serde_json::{Value, json};

use super::super::validate::validate;
use super::*;
use crate::cache::{Cache, Feed};
use crate::components::of_kind;
use crate::names::{APPLIED, Instance};

const CLAIM: &str = "data-zookeeper1-zookeeper-a";

/// A ZooKeeper on nodes `a` and `b` with this storage, and what else is there.
fn fetched(storage: &Value, others: &[(Kind, Value)]) -> Fetched {
    let cache = Cache::default();
    let put = |kind: Kind, mut object: Value| {
        object["metadata"]["namespace"] =
            if kind == Kind::Node { json!(null) } else { json!("tf") };
        object["metadata"]["resourceVersion"] = "1".into();
        Feed::new(kind, "").take(&cache, Event::Apply(object));
    };
    for (node, address) in [("a", "192.0.2.1"), ("b", "192.0.2.2")] {
        put(
            Kind::Node,
            json!({"metadata": {"name": node, "labels": {"node-role.kubernetes.io/control-plane": ""}},
                "status": {"addresses": [{"type": "InternalIP", "address": address}]}}),
        );
    }
    for (kind, object) in others {
        put(*kind, object.clone());
    }
    let object = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
        "metadata": {"name": "zookeeper1", "namespace": "tf", "uid": "u"},
        "spec": {"serviceConfiguration": {"storage": storage,
            "containers": [{"name": "zookeeper", "image": "zookeeper:3.7.1"}]}}});
    let object = Arc::new(serde_json::from_value(object).unwrap());
    let instance = Instance { word: "zookeeper".to_owned(), name: "zookeeper1".to_owned() };
    Fetched::read(&cache, object, &instance)
}

fn valid(fetched: &Fetched) -> Result<Valid, Invalid> {
    validate(of_kind("Zookeeper").unwrap(), fetched)
}

fn set(name: &str, node: Option<&str>, replicas: i64) -> (Kind, Value) {
    let owner = json!({"apiVersion": "a/v1", "kind": "Zookeeper", "name": "zookeeper1", "uid": "u", "controller": true});
    let mut set = json!({"metadata": {"name": name, "uid": name, "ownerReferences": [owner],
        "annotations": {(APPLIED): "1"}}, "spec": {"replicas": replicas}});
    if let Some(node) = node {
        set["metadata"]["annotations"][NODE] = node.into();
    }
    (Kind::StatefulSet, set)
}

fn pod_of(set: &str) -> (Kind, Value) {
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": set, "uid": set, "controller": true});
    let labels = json!({"tf_manager": "zookeeper", "zookeeper": "zookeeper1"});
    (
        Kind::Pod,
        json!({"metadata": {"name": format!("{set}-0"), "labels": labels, "ownerReferences": [owner]}}),
    )
}

fn claim(class: &str, size: &str, capacity: &str) -> (Kind, Value) {
    let labels = json!({"tf_manager": "zookeeper", "zookeeper": "zookeeper1"});
    (
        Kind::PersistentVolumeClaim,
        json!({"metadata": {"name": CLAIM, "labels": labels},
            "spec": {"storageClassName": class, "volumeName": "v", "resources": {"requests": {"storage": size}}},
            "status": {"capacity": {"storage": capacity}}}),
    )
}

fn storage(size: &str) -> Value {
    json!({"class": "fast", "size": size})
}

/// The size and class of the volume of node `a`, and what is refused.
fn decided(storage: &Value, there: (Kind, Value)) -> (String, Option<String>, Option<String>) {
    let valid = valid(&fetched(storage, &[there])).unwrap();
    let home = valid.homes.unwrap().remove(0);
    (home.claim.size, home.claim.class, valid.refused_volume)
}

#[test]
fn a_volume_grows_and_never_shrinks() {
    let fast = Some("fast".to_owned());
    let there = || claim("fast", "10Gi", "10Gi");
    assert_eq!(decided(&storage("20Gi"), there()), ("20Gi".into(), fast.clone(), None));
    // As the API server wrote it, however the settings say it.
    assert_eq!(decided(&storage("10240Mi"), there()), ("10Gi".into(), fast.clone(), None));
    let (size, class, refused) = decided(&storage("5Gi"), there());
    let refused = refused.unwrap();
    assert_eq!((size.as_str(), class), ("10Gi", fast.clone()));
    assert!(refused.contains("volumes never shrink. Set it to 10Gi or more"), "{refused}");
    // A user has asked for what is no whole number of mebibytes.
    assert_eq!(decided(&storage("10Gi"), claim("fast", "20G", "10Gi")).0, "20G");
}

#[test]
fn the_class_of_a_volume_that_is_there_stays() {
    let (size, class, refused) = decided(&storage("20Gi"), claim("slow", "10Gi", "10Gi"));
    assert_eq!((size.as_str(), class.as_deref()), ("20Gi", Some("slow")));
    assert!(refused.unwrap().contains("set it back to slow"));
    let of_the_cluster = json!({"size": "10Gi"});
    let left = decided(&of_the_cluster, claim("slow", "10Gi", "10Gi"));
    assert_eq!(left, ("10Gi".into(), Some("slow".into()), None));
    let new = valid(&fetched(&of_the_cluster, &[])).unwrap();
    assert_eq!(new.homes.unwrap()[0].claim.class, None);
}

#[test]
fn a_growth_that_is_not_done_may_be_taken_back_and_no_more() {
    let of = |size: &str| decided(&storage(size), claim("fast", "2Ti", "10Gi"));
    assert_eq!((of("20Gi").0, of("20Gi").2), ("20Gi".into(), None));
    for size in ["10Gi", "5Gi"] {
        let (size, _, refused) = of(size);
        assert_eq!(size, "2Ti");
        assert!(refused.unwrap().contains("never shrink"));
    }
}

#[test]
fn of_a_volume_that_is_not_made_yet_it_is_said_how_to_have_another() {
    let pending = |class: Value| {
        let (kind, mut claim) = claim("typo", "10Gi", "");
        claim["metadata"]["namespace"] = "tf".into();
        claim["spec"]["volumeName"] = Value::Null;
        claim["spec"]["storageClassName"] = class;
        (kind, claim)
    };
    let (size, class, refused) = decided(&storage("20Gi"), pending("typo".into()));
    let refused = refused.unwrap();
    assert_eq!((size.as_str(), class.as_deref()), ("10Gi", Some("typo")), "else it is refused");
    assert!(refused.ends_with(&format!("kubectl delete pvc -n tf {CLAIM}")), "{refused}");
    // Where the cluster has no default class one is named later.
    let named = decided(&storage("10Gi"), pending(Value::Null));
    assert_eq!(named, ("10Gi".into(), Some("fast".into()), None));
    let as_set = decided(&json!({"class": "typo", "size": "10Gi"}), pending("typo".into()));
    assert_eq!(as_set.2, None);
}

#[test]
fn a_pod_is_known_whose_volume_goes_with_it() {
    let set_of_a = set("zookeeper1-zookeeper-a", Some("a"), 1);
    let said = |going: bool| {
        let (kind, mut claim) = claim("fast", "10Gi", "10Gi");
        if going {
            claim["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z".into();
        }
        let others = [set_of_a.clone(), pod_of("zookeeper1-zookeeper-a"), (kind, claim)];
        let fetched = fetched(&storage("10Gi"), &others);
        leaving(&fetched, &valid(&fetched).unwrap())
    };
    assert_eq!(said(false), None);
    let said = said(true).unwrap();
    assert!(
        said.contains(CLAIM) && said.ends_with("kubectl delete pod -n tf zookeeper1-zookeeper-a-0")
    );
}

#[test]
fn what_helps_where_a_volume_cannot_grow_is_said_of_its_class_alone() {
    assert!(not_grown("… must support resize").contains("allowVolumeExpansion: true"));
    assert!(!not_grown("exceeded quota").contains("allowVolumeExpansion"));
}

#[test]
fn a_volume_that_kubernetes_is_not_done_with_is_named() {
    let said = |capacity| {
        let fetched = fetched(&storage("20Gi"), &[claim("fast", "20Gi", capacity)]);
        let valid = valid(&fetched).unwrap();
        growing(&fetched, &valid)
    };
    let said_of_10 = said("10Gi").unwrap();
    assert!(
        said_of_10.contains("volume data-zookeeper1-zookeeper-a of node a grows from 10Gi to 20Gi")
    );
    assert_eq!(said("20Gi"), None);
    assert_eq!(said(""), None, "not made yet");
}

#[test]
fn each_node_has_a_stateful_set_whatever_became_of_the_record() {
    let homes = |others: &[(Kind, Value)]| {
        let valid = valid(&fetched(&storage("1Gi"), others)).unwrap();
        let homes = valid.homes.unwrap().into_iter();
        homes.map(|home| (home.stateful_set, home.ends)).collect::<Vec<_>>()
    };
    let of = |node: &str| format!("zookeeper1-zookeeper-{node}");
    assert_eq!(homes(&[]), [(of("a"), false), (of("b"), false)]);
    let left = set(&of("c"), Some("c"), 1);
    assert_eq!(homes(&[left]), [(of("a"), false), (of("b"), false), (of("c"), false)]);
    // That of a node that was given up is there until its pod has ended.
    let over = set(&of("c"), Some("c"), 0);
    let runs = set(&of("a"), Some("a"), 1);
    let one_is_over = [runs.clone(), over.clone()];
    assert_eq!(homes(&one_is_over), [(of("a"), false), (of("b"), false)]);
    let stopped = [set(&of("a"), Some("a"), 0), over.clone()];
    assert_eq!(homes(&stopped), [(of("a"), false), (of("c"), false)], "as it was stopped");
    let ends = [runs, over, pod_of(&of("c"))];
    assert_eq!(homes(&ends), [(of("a"), false), (of("b"), false), (of("c"), true)]);
}

#[test]
fn a_home_has_the_address_of_its_node_and_an_invented_node_none() {
    let fetched = fetched(&storage("1Gi"), &[]);
    let homes = |recorded: &[(&str, &str)]| {
        let recorded = recorded.iter().map(|(at, node)| ((*at).to_owned(), (*node).to_owned()));
        homes_of(&fetched, Some(recorded.collect()), &fetched.nodes)
    };
    let right = homes(&[("192.0.2.1", "a"), ("192.0.2.2", "b")]);
    assert_eq!(right["192.0.2.1"], "a");
    assert_eq!(homes(&[("192.0.2.1", "b"), ("192.0.2.2", "a")]), right, "they were exchanged");
    assert_eq!(homes(&[("192.0.2.1", "a"), ("192.0.2.2", "b"), ("192.0.2.9", "none")]), right);
    assert_eq!(homes(&[]), right, "they had no address when it was written");
    assert_eq!(homes(&[("192.0.2.2", "b")]).len(), 1, "one that has been given up stays so");
}

#[test]
fn no_home_is_lost_while_two_nodes_have_one_address() {
    let recorded = |all: &[(&str, &str)]| {
        all.iter().map(|(at, node)| ((*at).to_owned(), (*node).to_owned())).collect()
    };
    let of = |node: &str| set(&format!("zookeeper1-zookeeper-{node}"), Some(node), 1);
    // The fixture's nodes, as they change places: `a` has the address of `b` already, or `b` that of `a`.
    for (first, second) in [("192.0.2.2", "192.0.2.2"), ("192.0.2.1", "192.0.2.1")] {
        let mut fetched = fetched(&storage("1Gi"), &[of("a"), of("b")]);
        for (node, address) in fetched.nodes.iter_mut().zip([first, second]) {
            node.address = Some(address.to_owned());
        }
        let before = recorded(&[("192.0.2.1", "a"), ("192.0.2.2", "b")]);
        let homes = homes_of(&fetched, Some(before), &fetched.nodes);
        assert_eq!(homes.values().collect::<Vec<_>>(), ["a", "b"], "{homes:?}");
        let none = homes_of(&fetched, None, &fetched.nodes);
        assert_eq!(none.len(), 2, "nor where the record is lost: {none:?}");
    }
    // A node that is gone, and another one that has its address.
    let gone = fetched(&storage("1Gi"), &[of("gone"), of("b")]);
    let before = recorded(&[("192.0.2.1", "gone"), ("192.0.2.2", "b")]);
    let homes = homes_of(&gone, Some(before), &gone.nodes);
    let expected: BTreeMap<_, _> = recorded(&[("gone", "gone"), ("192.0.2.2", "b")]);
    assert_eq!(homes, expected, "its address is free for the other");
}

#[test]
fn a_stateful_set_that_is_not_named_after_its_node_is_not_ours() {
    let forged = [
        set("forged", None, 1),
        set("zookeeper1-zookeeper-b", Some("a"), 1),
        set("other", Some("a"), 3),
    ];
    let fetched = fetched(&storage("1Gi"), &forged);
    assert_eq!(fetched.keepers(Workload::StatefulSet).count(), 0);
    assert!(valid(&fetched).is_ok(), "nor has it a say in where data are");
}

#[test]
fn a_claim_that_goes_with_another_object_or_is_another_services_is_not_used() {
    let fetched = fetched(&storage("1Gi"), &[]);
    let why = |claim: Value| {
        let there = serde_json::from_value(claim).unwrap();
        is_ours(&fetched, &there).err().map(|error| error.to_string())
    };
    let (_, ours) = claim("fast", "1Gi", "1Gi");
    assert_eq!(why(ours.clone()), None);
    let mut owned = ours.clone();
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "trap", "uid": "x"}]);
    assert!(why(owned).unwrap().contains("belongs to ConfigMap trap, and goes with it"));
    let mut others = ours;
    others["metadata"]["labels"]["zookeeper"] = "zookeeper2".into();
    assert!(why(others).unwrap().contains("labels of another service"));
}

#[test]
fn what_runs_in_folders_is_given_no_volumes_and_what_runs_in_volumes_keeps_them() {
    let single = set("zookeeper1-zookeeper-statefulset", None, 2);
    let refused = valid(&fetched(&storage("1Gi"), std::slice::from_ref(&single))).unwrap_err();
    assert_eq!(refused.reason, "StorageAdded");
    let home = set("zookeeper1-zookeeper-a", Some("a"), 1);
    let refused = valid(&fetched(&Value::Null, std::slice::from_ref(&home))).unwrap_err();
    assert_eq!(refused.reason, "StorageRemoved");
    assert!(valid(&fetched(&Value::Null, &[single])).unwrap().homes.is_none());
    assert!(valid(&fetched(&storage("1Gi"), &[home])).is_ok());
}
