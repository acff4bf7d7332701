//! The operator and Managers, on a real control plane with simulated nodes: what becomes of the services of a
//! Manager, of those that it gives up, and of what others own. What an object of one service becomes is in
//! `operator.rs`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::time::Duration;

use opensdn_crds::component::COMPONENTS;
use opensdn_deploy::names::operator::{NAME, NAMESPACE, USER};
use opensdn_testing::eventually::{eventually, eventually_within};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::manager::{service, service_name, services};
use opensdn_testing::operator::Operator;
use opensdn_testing::product::Installation;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::deploy::rights::{Right, requests, rights};
use crate::operator::{BUDGET, FIRST_POD, LABEL, REDIS, STATEFUL_SET, change, get};
use crate::operator_nested::nested;
use crate::operator_storage;

/// Until a kind among all of them is ready.
const MANY_KINDS: Duration = Duration::from_secs(600);
const MANAGER: [&str; 2] = ["managers.tf.tungsten.io", "cluster1"];

async fn world() -> Result<(Sandbox, Operator), Failed> {
    let sandbox = Sandbox::builder().simulated_nodes(3).with_crds().await?;
    let operator = Operator::install(&sandbox, 1).await?;
    kubectl(&sandbox, &["label", "nodes", "--all", LABEL]).await?.success();
    Ok((sandbox, operator))
}

/// The services, each named after its kind, with images for all of its containers.
fn manager(kinds: &[&str]) -> Value {
    let services = services(kinds, |facts| {
        let mut item = service(facts, |name| format!("registry.example.com/{name}:R24.1"));
        item["metadata"]["labels"] = json!({"tf_cluster": "cluster1"});
        if ["Webui", "Vrouter"].contains(&facts.kind) {
            item["spec"]["serviceConfiguration"]["controlInstance"] = json!("control1");
        }
        item
    });
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": "cluster1", "namespace": "tf"},
        "spec": {"commonConfiguration": {"logLevel": "info"}, "services": services}})
}

/// Status, reason and message of a condition of the Manager.
async fn condition(sandbox: &Sandbox, type_: &str) -> [String; 3] {
    let manager = get(sandbox, MANAGER).await;
    let all = manager["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| {
        one["type"] == type_ && one["observedGeneration"] == manager["metadata"]["generation"]
    });
    let one = one.unwrap_or_default();
    ["status", "reason", "message"].map(|key| one[key].as_str().unwrap_or_default().to_owned())
}

async fn ready(sandbox: &Sandbox) {
    eventually("the Manager is Ready", async || condition(sandbox, "Ready").await[0] == "True")
        .await;
}

/// What the status says of a service.
async fn row(sandbox: &Sandbox, kind: &str) -> Value {
    let rows = get(sandbox, MANAGER).await["status"]["services"].clone();
    let row = rows.as_array().into_iter().flatten().find(|row| row["kind"] == kind);
    row.cloned().unwrap_or_default()
}

async fn object(sandbox: &Sandbox, kind: &str) -> Value {
    let facts = COMPONENTS.iter().find(|facts| facts.kind == kind);
    let plural = facts.map_or("", |facts| facts.plural);
    get(sandbox, [&format!("{plural}.tf.tungsten.io"), &service_name(kind)]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_service_becomes_an_object_and_goes_only_when_that_is_confirmed() -> Outcome {
    let (sandbox, _operator) = world().await?;
    let kinds: Vec<&str> = COMPONENTS.iter().map(|facts| facts.kind).collect();
    send(&sandbox, &["apply"], &manager(&kinds)).await?.success();
    let told = async || row(&sandbox, "Redis").await["ready"] == true;
    // Of thirteen kinds at once it is one, on two cores with other control planes beside it.
    eventually_within(MANY_KINDS, "Redis is ready", told).await;
    for kind in &kinds {
        let object = object(&sandbox, kind).await;
        assert_eq!(object["spec"]["commonConfiguration"]["logLevel"], "info", "{kind}: {object:#}");
        assert_eq!(object["metadata"]["labels"]["tf_cluster"], "cluster1", "{kind}");
        assert_eq!(object["metadata"]["ownerReferences"][0]["name"], "cluster1", "{kind}");
    }
    for kind in &kinds {
        let has_status = async || object(&sandbox, kind).await["status"]["conditions"].is_array();
        eventually_within(MANY_KINDS, &format!("{kind} has a status"), has_status).await;
    }
    let redis = row(&sandbox, "Redis").await;
    assert_eq!(redis["nodes"], json!(["node-0", "node-1", "node-2"]), "{redis:#}");
    assert_eq!((&redis["versions"], &redis["reason"]), (&json!(["R24.1"]), &json!("PodsReady")));
    let status = get(&sandbox, MANAGER).await["status"].clone();
    assert_eq!(status["redis"], json!([{"name": "redis1", "active": true}]), "{status:#}");
    // What a user changes in an object that the Manager has made is put right; what it does not name stays.
    let port = r#"{"spec":{"commonConfiguration":{"logLevel":"debug","distribution":"ubuntu"}}}"#;
    change(&sandbox, &["patch", "--type=merge", "-p", port], REDIS, &[]).await?;
    let common = async || object(&sandbox, "Redis").await["spec"]["commonConfiguration"].clone();
    eventually("the level is back", async || common().await["logLevel"] == "info").await;
    assert_eq!(common().await["distribution"], "ubuntu");

    // Without its service it runs on, until the loss is confirmed as the status says.
    send(&sandbox, &["apply"], &manager(&["Redis", "Webui"])).await?.success();
    let told = async || row(&sandbox, "Zookeeper").await["reason"] == "RemovalNotConfirmed";
    eventually("it says that the removal is not confirmed", told).await;
    assert!(object(&sandbox, "Zookeeper").await.is_object());
    do_as_the_message_says(&sandbox, &row(&sandbox, "Zookeeper").await["message"]).await?;
    let is_gone = async || object(&sandbox, "Zookeeper").await.is_null();
    eventually("it is deleted", is_gone).await;
    let gone: Vec<String> =
        kinds.iter().map(|kind| format!("{kind}/{}", service_name(kind))).collect();
    let confirm = format!("opensdn.io/confirm-loss={}", gone.join(", "));
    change(&sandbox, &["annotate", "--overwrite"], MANAGER, &[&confirm]).await?;
    for kind in kinds.iter().filter(|kind| !["Redis", "Webui"].contains(*kind)) {
        eventually(kind, async || object(&sandbox, kind).await.is_null()).await;
    }
    assert!(object(&sandbox, "Webui").await.is_object(), "what is confirmed and wanted stays");
    let confirmed = gone_with(&manager(&[]), &confirm);
    send(&sandbox, &["apply"], &confirmed).await?.success();
    for kind in ["Redis", "Webui"] {
        eventually(kind, async || object(&sandbox, kind).await.is_null()).await;
    }
    ready(&sandbox).await;
    let events = read(&sandbox, &["events.events.k8s.io", "-n", "tf"]).await?["items"].to_string();
    for part in ["PodsNotReady", "PodsReady", "ServicesReady"] {
        assert!(events.contains(&format!("\"{part}\"")), "no Event tells of {part}: {events}");
    }
    only_what_is_granted(&sandbox).await
}

/// Runs the command in a message.
async fn do_as_the_message_says(sandbox: &Sandbox, message: &Value) -> Outcome {
    let message = message.as_str().unwrap_or_default();
    let (_, command) = message.split_once("kubectl ").ok_or(format!("no command: {message}"))?;
    kubectl(sandbox, &command.split(' ').collect::<Vec<_>>()).await?.success();
    Ok(())
}

/// The Manager with the annotation.
fn gone_with(manager: &Value, annotation: &str) -> Value {
    let (key, value) = annotation.split_once('=').unwrap_or_default();
    let mut manager = manager.clone();
    manager["metadata"]["annotations"] = json!({ key: value });
    manager
}

/// The operator may do all that it has done, and nothing that it has not.
async fn only_what_is_granted(sandbox: &Sandbox) -> Outcome {
    send(sandbox, &["apply"], &manager(&["Redis"])).await?.success();
    ready(sandbox).await;
    let first = async || get(sandbox, ["pod", FIRST_POD]).await["spec"]["nodeName"].clone();
    let node = first().await;
    let node = node.as_str().ok_or("the pod is on no node")?;
    operator_storage::give_volumes(sandbox, 3).await?;
    let in_volumes = operator_storage::zookeeper(&json!({"class": "fast", "size": "1Gi"}));
    send(sandbox, &["create"], &in_volumes).await?.success();
    let served = async || {
        let zookeeper = get(sandbox, operator_storage::ZOOKEEPER).await;
        zookeeper["status"]["conditions"].to_string().contains("MembersServed")
    };
    eventually("a ZooKeeper in volumes serves", served).await;
    kubectl(sandbox, &["label", "node", node, "node-role.kubernetes.io/control-plane-"])
        .await?
        .success();
    let is_gone = async || get(sandbox, BUDGET).await.is_null();
    eventually("two members have no budget", is_gone).await;
    let has_moved = async || first().await.as_str().is_some_and(|place| place != node);
    eventually("the pod that is left there moves", has_moved).await;
    let set = format!("zookeeper1-zookeeper-{node}");
    let is_gone = async || get(sandbox, ["statefulset", &set]).await.is_null();
    eventually("a node that is given up has no StatefulSet any more", is_gone).await;
    send(sandbox, &["create"], &nested("nested1")).await?.success();
    let starts = async || get(sandbox, ["deployment", "nested1-kube-manager"]).await.is_object();
    eventually("a nested one is started", starts).await;
    let rights = rights(sandbox, NAME, &[NAMESPACE, "tf"]).await?;
    let unused = || -> Result<Vec<String>, Failed> {
        let (seen, forbidden) = requests(sandbox, USER)?;
        assert!(forbidden.is_empty(), "not granted: {forbidden:#?}");
        let unused = rights.iter().filter(|right| !seen.iter().any(|one| right.allows(one)));
        Ok(unused.map(Right::text).filter(|text| !is_not_seen(text)).collect())
    };
    // On a quick machine all this is done before the Lease is renewed for the first time.
    for _ in 0..60 {
        if unused()?.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let unused = unused()?;
    assert!(unused.is_empty(), "granted, but never used: {unused:#?}");
    Ok(())
}

/// What no request shows: an Event that is repeated within minutes is counted up; the API server asks by itself
/// whether an owner may be named that keeps its owner from going before; a CA is written again only when it is
/// rotated; no program can be run in simulated pods; what is written of clouds is seen in `operator_cloud`; an Upgrade
/// alone sets images, has nodes pull them, and has a report.
fn is_not_seen(right: &str) -> bool {
    const NOT_SEEN: [&str; 17] = [
        "patch nestedclusters of opensdn.io",
        "patch nestedclusters/status of opensdn.io in tf",
        "patch linklocalservices of opensdn.io",
        "patch linklocalservices/status of opensdn.io in tf",
        "create reports of openreports.io in tf",
        "patch reports of openreports.io in tf",
        "create policyreports of wgpolicyk8s.io in tf",
        "patch policyreports of wgpolicyk8s.io in tf",
        "create pods in tf",
        "patch pods in tf",
        "get managers of tf.tungsten.io in tf",
        "patch managers of tf.tungsten.io in tf",
        "patch upgrades/status of opensdn.io in tf",
        "patch events of events.k8s.io in tf",
        "update secrets opensdn-ca in tf",
        "get pods/exec in tf",
        "create pods/exec in tf",
    ];
    NOT_SEEN.contains(&right)
        || (right.starts_with("update ") && right.ends_with("/finalizers of tf.tungsten.io in tf"))
}

/// The Secret of its certificates is named without the kind.
async fn a_twin_learns_who_has_its_name(sandbox: &Sandbox) -> Outcome {
    let mut twin = manager(&["Redis"])["spec"]["services"]["redis"][0].clone();
    twin["apiVersion"] = json!("tf.tungsten.io/v1alpha1");
    twin["kind"] = json!("Redis");
    twin["metadata"] = json!({"name": "queryengine1", "namespace": "tf"});
    send(sandbox, &["create"], &twin).await?.success();
    let taken = async || {
        let twin = get(sandbox, [REDIS[0], "queryengine1"]).await;
        twin["status"]["conditions"].to_string().contains("that of QueryEngine queryengine1")
    };
    eventually("it says who has the name", taken).await;
    change(sandbox, &["delete"], [REDIS[0], "queryengine1"], &[]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_is_started_when_what_it_needs_is_active_and_not_stopped_when_that_ends()
-> Outcome {
    const NEEDS: [&str; 5] = ["Cassandra", "Zookeeper", "Rabbitmq", "Config", "Analytics"];
    const PODS: [&str; 2] = ["statefulset", "queryengine1-queryengine-statefulset"];
    let (sandbox, _operator) = world().await?;
    send(&sandbox, &["create"], &manager(&["QueryEngine", "Redis"])).await?.success();
    // Redis, which it needs too, is there a moment later.
    let missing = "Cassandra and Zookeeper and Rabbitmq and Config and Analytics";
    let said = async || {
        let row = row(&sandbox, "QueryEngine").await;
        let message = row["message"].as_str().unwrap_or_default();
        row["reason"] == "NeedMissing" && message.contains(missing)
    };
    eventually("it says what is missing", said).await;

    let all = [&NEEDS[..], &["QueryEngine", "Redis"]].concat();
    let spec = |config_on: Value| {
        let mut spec = manager(&all)["spec"].clone();
        spec["services"]["config"]["spec"]["commonConfiguration"]["nodeSelector"] = config_on;
        json!({ "spec": spec }).to_string()
    };
    let nowhere = spec(json!({"on-no-node": ""}));
    change(&sandbox, &["patch", "--type=merge", "-p", &nowhere], MANAGER, &[]).await?;
    let waits = async || {
        let row = row(&sandbox, "QueryEngine").await;
        row["message"]
            .as_str()
            .is_some_and(|message| message.starts_with("waits for Config config1"))
    };
    eventually("it waits for Config", waits).await;
    for kind in NEEDS.iter().filter(|kind| **kind != "Config") {
        eventually(kind, async || row(&sandbox, kind).await["ready"] == true).await;
    }
    assert!(get(&sandbox, PODS).await.is_null(), "Config is not active");
    let anywhere = spec(json!({"on-no-node": null}));
    change(&sandbox, &["patch", "--type=merge", "-p", &anywhere], MANAGER, &[]).await?;
    let told = async || row(&sandbox, "QueryEngine").await["ready"] == true;
    eventually("QueryEngine is ready", told).await;
    let files = get(&sandbox, ["configmap", "queryengine1-queryengine-files"]).await;
    let file = files["data"]
        .as_object()
        .into_iter()
        .flatten()
        .find(|(key, _)| key.starts_with("queryengine."));
    let text = file.and_then(|(_, text)| text.as_str()).unwrap_or_default();
    assert!(
        text.contains(":9041 ") && text.contains(":8086 ") && text.contains(":6389 "),
        "{text}"
    );

    a_twin_learns_who_has_its_name(&sandbox).await?;
    let cassandra = ["cassandras.tf.tungsten.io", "configdb1"];
    change(&sandbox, &["annotate"], cassandra, &["opensdn.io/stopped=true"]).await?;
    let is_stopped = async || get(&sandbox, cassandra).await["status"]["active"] == false;
    eventually("Cassandra is stopped", is_stopped).await;
    change(&sandbox, &["scale"], PODS, &["--replicas=1"]).await?;
    let kept = async || get(&sandbox, PODS).await["spec"]["replicas"] == 3;
    eventually("it is kept as it shall be without what it needs", kept).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belongs_to_others_is_left_alone_and_a_paused_manager_changes_nothing() -> Outcome {
    let (sandbox, _operator) = world().await?;
    let mut own = manager(&["Redis"])["spec"]["services"]["redis"][0].clone();
    own["apiVersion"] = json!("tf.tungsten.io/v1alpha1");
    own["kind"] = json!("Redis");
    own["metadata"]["namespace"] = json!("tf");
    own["spec"]["serviceConfiguration"]["redisPort"] = json!(7000);
    send(&sandbox, &["create"], &own).await?.success();
    send(&sandbox, &["create"], &manager(&["Redis"])).await?.success();
    let told = async || condition(&sandbox, "Stalled").await[1] == "NotOurs";
    eventually("it says that the object is not the Manager's", told).await;
    let port =
        async || get(&sandbox, REDIS).await["spec"]["serviceConfiguration"]["redisPort"].clone();
    assert_eq!(port().await, 7000);
    do_as_the_message_says(&sandbox, &json!(condition(&sandbox, "Stalled").await[2])).await?;
    ready(&sandbox).await;
    // Of what only its first writer says it keeps the value: an apply adds to it.
    assert_eq!(get(&sandbox, REDIS).await["metadata"]["ownerReferences"][0]["name"], "cluster1");

    change(&sandbox, &["annotate"], MANAGER, &["opensdn.io/paused=true"]).await?;
    let is_paused = async || {
        let redis = get(&sandbox, REDIS).await;
        let all = redis["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let own = all.iter().find(|one| one["type"] == "Paused").cloned().unwrap_or_default();
        own["message"].as_str().is_some_and(|why| why.contains("on Manager cluster1"))
            && condition(&sandbox, "Paused").await[0] == "True"
    };
    eventually("both say that they are paused", is_paused).await;
    change(&sandbox, &["scale"], STATEFUL_SET, &["--replicas=1"]).await?;
    let debug = r#"{"spec":{"commonConfiguration":{"logLevel":"debug"}}}"#;
    change(&sandbox, &["patch", "--type=merge", "-p", debug], MANAGER, &[]).await?;
    let seen = async || condition(&sandbox, "Paused").await[0] == "True";
    eventually("it has seen the change", seen).await;
    let level =
        async || get(&sandbox, REDIS).await["spec"]["commonConfiguration"]["logLevel"].clone();
    let replicas = async || get(&sandbox, STATEFUL_SET).await["spec"]["replicas"].clone();
    assert_eq!((level().await, replicas().await), (json!("info"), json!(1)));
    change(&sandbox, &["annotate"], MANAGER, &["opensdn.io/paused-"]).await?;
    eventually("it goes on", async || level().await == "debug" && replicas().await == 3).await;

    change(&sandbox, &["delete"], MANAGER, &[]).await?;
    eventually("its service goes with it", async || get(&sandbox, REDIS).await.is_null()).await;
    eventually("and the pods", async || get(&sandbox, STATEFUL_SET).await.is_null()).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_webhook_lets_the_operator_do_its_work() -> Outcome {
    let (sandbox, _operator) = world().await?;
    let product = Installation::built()?.install(&sandbox).await?;
    product.wait_until_ready(&sandbox).await?;
    let kinds: Vec<&str> = COMPONENTS.iter().map(|facts| facts.kind).collect();
    let cluster = manager(&kinds);
    let created = send(&sandbox, &["create"], &cluster).await?;
    created.success();
    let is_there = async || object(&sandbox, "QueryEngine").await.is_object();
    eventually("the objects are there", is_there).await;
    eventually("Redis is ready", async || row(&sandbox, "Redis").await["ready"] == true).await;
    let without = |annotations: Value| {
        let metadata = json!({"annotations": annotations});
        json!({"metadata": metadata, "spec": {"services": {"queryengine": null}}}).to_string()
    };
    let patch = ["patch", "-n", "tf", MANAGER[0], MANAGER[1], "--type=merge", "-p"];
    let refused = kubectl(&sandbox, &[&patch[..], &[&without(json!({}))]].concat()).await?;
    assert!(refused.err.contains("OSDN1112"), "{} {}", refused.out, refused.err);
    let confirmed = without(json!({"opensdn.io/confirm-loss": "QueryEngine/queryengine1"}));
    kubectl(&sandbox, &[&patch[..], &[&confirmed]].concat()).await?.success();
    eventually("it is deleted", async || object(&sandbox, "QueryEngine").await.is_null()).await;
    Ok(())
}
