//! Two Managers in one cluster, each in a namespace and on nodes of its own, their services named alike, and an operator that looks
//! after these two namespaces and no other: each is Ready on its nodes and knows nothing of the other, one goes and the other does
//! not notice, and a namespace that is not on the list is not even read.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::{BTreeMap, BTreeSet};

use opensdn_deploy::names::operator::{NAMESPACE, USER};
use opensdn_testing::eventually::{eventually, eventually_within};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::settled;
use crate::operator_upgrade::{self, WHOLE, image};

const KINDS: [&str; 6] = ["Zookeeper", "Cassandra", "Rabbitmq", "Config", "Control", "Vrouter"];
const MANAGER: &str = "managers.tf.tungsten.io";
/// What the operator makes in a namespace, and what comes of that; but for Secrets, in which nothing can be read.
const MADE: &str = "statefulsets,daemonsets,configmaps,poddisruptionbudgets,pods";
/// It has a Manager, and the operator is not to look after it.
const ELSEWHERE: &str = "elsewhere";

/// A namespace, and its nodes with their addresses.
struct Site {
    namespace: &'static str,
    nodes: [&'static str; 3],
    addresses: [&'static str; 3],
}

const SITES: [Site; 2] = [
    Site {
        namespace: "tf",
        nodes: ["node-0", "node-1", "node-2"],
        addresses: ["10.91.0.1", "10.91.0.2", "10.91.0.3"],
    },
    Site {
        namespace: "tf-two",
        nodes: ["node-3", "node-4", "node-5"],
        addresses: ["10.91.0.4", "10.91.0.5", "10.91.0.6"],
    },
];

/// On nodes of that site alone.
fn manager(namespace: &str, site: &str) -> Value {
    let mut manager = opensdn_testing::manager::manager(namespace, "cluster1", &KINDS, |name| {
        image(name, "R24.1")
    });
    manager["spec"]["commonConfiguration"] = json!({"nodeSelector": {"site": site}});
    let vrouters = &mut manager["spec"]["services"]["vrouters"];
    vrouters[0]["spec"]["serviceConfiguration"]["controlInstance"] = json!("control1");
    manager
}

async fn list(sandbox: &Sandbox, namespace: &str, kinds: &str) -> Vec<Value> {
    let all = read(sandbox, &["-n", namespace, kinds]).await.unwrap_or_default();
    all["items"].as_array().cloned().unwrap_or_default()
}

async fn is_ready(sandbox: &Sandbox, namespace: &str) -> bool {
    let manager = read(sandbox, &["-n", namespace, MANAGER, "cluster1"]).await;
    operator_upgrade::is_ready(&manager.unwrap_or_default())
}

/// Two Managers that are Ready, and one that is not looked after.
async fn running() -> Result<(Sandbox, Operator), Failed> {
    let sandbox = Sandbox::builder().simulated_nodes(6).with_crds().await?;
    kubectl(&sandbox, &["create", "namespace", ELSEWHERE]).await?.success();
    send(&sandbox, &["create"], &manager(ELSEWHERE, "tf")).await?.success();
    for site in &SITES {
        let label = format!("site={}", site.namespace);
        kubectl(&sandbox, &[&["label", "nodes"], &site.nodes[..], &[label.as_str()]].concat())
            .await?
            .success();
    }
    let namespaces = SITES.each_ref().map(|site| site.namespace);
    let operator = Operator::install_for(&sandbox, &namespaces).await?;
    for namespace in namespaces {
        send(&sandbox, &["create"], &manager(namespace, namespace)).await?.success();
    }
    for namespace in namespaces {
        let ready = async || is_ready(&sandbox, namespace).await;
        eventually_within(WHOLE, &format!("the Manager in {namespace} is Ready"), ready).await;
    }
    Ok((sandbox, operator))
}

/// Its pods are on its nodes, all of which have one of each service, and nothing in it names a node of the other.
async fn is_apart(sandbox: &Sandbox, own: &Site, other: &Site) {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for one in list(sandbox, own.namespace, MADE).await {
        let text = one.to_string();
        let named = other.nodes.iter().chain(&other.addresses).find(|name| text.contains(**name));
        assert_eq!(named, None, "{} names a node of {}: {one:#}", own.namespace, other.namespace);
        if one["kind"] == "Pod" {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let service = text(&one["metadata"]["labels"]["tf_manager"]);
            places.entry(service).or_default().insert(text(&one["spec"]["nodeName"]));
        }
    }
    assert_eq!(places.len(), KINDS.len(), "{places:?}");
    let nodes: BTreeSet<String> = own.nodes.iter().map(ToString::to_string).collect();
    assert!(places.values().all(|places| *places == nodes), "{}: {places:?}", own.namespace);
}

/// The CA of a namespace.
async fn authority(sandbox: &Sandbox, namespace: &str) -> Value {
    let secret = read(sandbox, &["-n", namespace, "secret", "opensdn-ca"]).await;
    secret.unwrap_or_default()["data"]["ca.crt"].clone()
}

/// What there is in a namespace, but for what others write by themselves (a DaemonSet's controller counts after 30 s which of its
/// pods are available): Events, what tells of a Lease, each status.
async fn stored(sandbox: &Sandbox, namespace: &str) -> BTreeMap<String, Value> {
    let kinds = format!("{MADE},secrets,serviceaccounts,{MANAGER},configs.tf.tungsten.io");
    let all = list(sandbox, namespace, &kinds).await.into_iter().map(|mut one| {
        let name = format!("{} {}", one["kind"], one["metadata"]["name"]);
        one["status"].take();
        one["metadata"]["resourceVersion"].take();
        one["metadata"]["managedFields"].take();
        (name, one)
    });
    all.collect()
}

/// How often the operator has written something in a namespace.
fn writes(sandbox: &Sandbox, namespace: &str) -> Result<usize, Failed> {
    let is_write = |event: &&Value| {
        event["objectRef"]["namespace"] == namespace
            && !["get", "list", "watch"].iter().any(|verb| event["verb"] == *verb)
    };
    Ok(sandbox.requests_of(USER)?.iter().filter(is_write).count())
}

/// The services of the Manager in that namespace of which a metric says whether they are ready.
async fn counted(operator: &Operator, namespace: &str) -> usize {
    let of = format!("opensdn_service_ready{{manager=\"{namespace}/cluster1\"");
    operator.metrics(0).await.lines().filter(|line| line.starts_with(&of)).count()
}

/// Where the operator has asked for something: by namespace, and of the whole cluster for what.
fn asked(sandbox: &Sandbox) -> Result<(BTreeSet<String>, BTreeSet<String>), Failed> {
    let (mut namespaces, mut everywhere) = (BTreeSet::new(), BTreeSet::new());
    for event in sandbox.requests_of(USER)? {
        let object = &event["objectRef"];
        if object.is_null() {
            continue;
        }
        match object["namespace"].as_str() {
            Some(namespace) => namespaces.insert(namespace.to_owned()),
            None => everywhere.insert(object["resource"].as_str().unwrap_or_default().to_owned()),
        };
    }
    Ok((namespaces, everywhere))
}

fn set(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|&one| one.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn managers_on_nodes_of_their_own_do_not_notice_each_other_and_other_namespaces_are_not_read()
-> Outcome {
    let (sandbox, operator) = running().await?;
    let [first, second] = &SITES;
    is_apart(&sandbox, first, second).await;
    is_apart(&sandbox, second, first).await;
    let authorities = (authority(&sandbox, "tf").await, authority(&sandbox, "tf-two").await);
    assert!(authorities.0.is_string() && authorities.0 != authorities.1, "each has its own CA");

    settled(&sandbox, &operator).await?;
    let before = stored(&sandbox, second.namespace).await;
    let written = writes(&sandbox, second.namespace)?;
    assert!(written > 4 * KINDS.len(), "what it has made is in the log: {written}");
    assert!(before.len() > 4 * KINDS.len(), "{before:#?}");
    assert_eq!(counted(&operator, first.namespace).await, KINDS.len());
    kubectl(&sandbox, &["delete", "-n", first.namespace, MANAGER, "cluster1"]).await?.success();
    let is_gone = async || {
        let left = list(&sandbox, first.namespace, "statefulsets,daemonsets,pods").await;
        left.is_empty() && counted(&operator, first.namespace).await == 0
    };
    eventually("all of the first is gone", is_gone).await;
    with_its_namespace(&sandbox, first.namespace).await?;
    assert_eq!(stored(&sandbox, second.namespace).await, before, "the other is as it was");
    assert_eq!(writes(&sandbox, second.namespace)?, written, "nothing was written there");
    assert_eq!(counted(&operator, second.namespace).await, KINDS.len());
    assert!(is_ready(&sandbox, second.namespace).await);

    let (namespaces, everywhere) = asked(&sandbox)?;
    let expected = [first.namespace, second.namespace, NAMESPACE, "default", "kube-system"];
    assert_eq!(namespaces, set(&expected), "the operator's namespaces");
    assert_eq!(everywhere, set(&["nodes", "servicecidrs"]), "what it reads of all of them");
    let left = read(&sandbox, &["-n", ELSEWHERE, MANAGER, "cluster1"]).await?;
    assert!(left["status"].is_null(), "{left:#}");
    assert_eq!(list(&sandbox, ELSEWHERE, "statefulsets,daemonsets,pods").await, [Value::Null; 0]);
    Ok(())
}

/// A namespace goes while something in it waits for a cloud that is not there any more: neither does its finalizer keep it, nor
/// that the rights of the operator there are gone before.
async fn with_its_namespace(sandbox: &Sandbox, namespace: &str) -> Outcome {
    let nested = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "NestedCluster",
        "metadata": {"name": "n1", "namespace": namespace, "finalizers": ["opensdn.io/cloud"],
            "annotations": {"opensdn.io/leave-behind": "true"}},
        // None listens there.
        "spec": {"clusterName": "n1", "clusterNetwork": {"project": "admin", "name": "vms"},
            "configApi": {"urls": ["http://127.0.0.1:9"]},
            "services": {"config": {"addresses": ["192.168.1.100"]}}, "serviceAddresses": ["10.10.10.0/24"]}});
    send(sandbox, &["create"], &nested).await?.success();
    let is_said = async || {
        let nested = read(sandbox, &["-n", namespace, "nestedclusters.opensdn.io", "n1"]).await;
        nested.unwrap_or_default()["status"]["conditions"].is_array()
    };
    eventually("its cloud was asked for", is_said).await;
    kubectl(sandbox, &["delete", "namespace", namespace, "--wait=false"]).await?.success();
    let is_gone = async || read(sandbox, &["namespace", namespace]).await.is_err();
    eventually("the namespace is gone", is_gone).await;
    Ok(())
}
