//! Services that count their own members, on a real control plane with simulated nodes: members come and go one at a
//! time. A pod that is ready serves there (`--simulated-pods`). What the service
//! itself makes of it is shown on ZooKeeper in `operator/tests/servers`, and in pods in `lab_operator`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::{LABEL, LOOKED_AGAIN, calls, change, get, settled};

const ZOOKEEPER: [&str; 2] = ["zookeepers.tf.tungsten.io", "zookeeper1"];
const STATEFUL_SET: [&str; 2] = ["statefulset", "zookeeper1-zookeeper-statefulset"];
const CONFIG_MAP: [&str; 2] = ["configmap", "zookeeper1-zookeeper-files"];

/// Five nodes, of which three are of the control plane, the operator, and a ZooKeeper that is Ready on these.
pub(crate) async fn running() -> Result<(Sandbox, Operator), Failed> {
    let sandbox = Sandbox::builder().simulated_nodes(5).with_crds().await?;
    let operator = Operator::install(&sandbox, 1).await?;
    label(&sandbox, &["node-0", "node-1", "node-2"]).await?;
    let container = json!({"name": "zookeeper", "image": "registry.example.com/zookeeper:R24.1"});
    let zookeeper = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
        "metadata": {"name": "zookeeper1", "namespace": "tf"},
        "spec": {"serviceConfiguration": {"containers": [container]}}});
    send(&sandbox, &["create"], &zookeeper).await?.success();
    ready(&sandbox, 3).await;
    Ok((sandbox, operator))
}

pub(crate) async fn label(sandbox: &Sandbox, nodes: &[&str]) -> Outcome {
    kubectl(sandbox, &[&["label", "nodes"], nodes, &[LABEL]].concat()).await?.success();
    Ok(())
}

pub(crate) async fn unlabel(sandbox: &Sandbox, nodes: &[&str]) -> Outcome {
    let label = LABEL.replace('=', "-");
    kubectl(sandbox, &[&["label", "nodes"], nodes, &[label.as_str()]].concat()).await?.success();
    Ok(())
}

/// Status, reason and message of `Ready`.
async fn condition(sandbox: &Sandbox) -> [String; 3] {
    let zookeeper = get(sandbox, ZOOKEEPER).await;
    let all = zookeeper["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["type"] == "Ready").unwrap_or_default();
    ["status", "reason", "message"].map(|key| one[key].as_str().unwrap_or_default().to_owned())
}

async fn replicas(sandbox: &Sandbox) -> Value {
    get(sandbox, STATEFUL_SET).await["spec"]["replicas"].clone()
}

/// Each change of its pods or their number has another.
async fn generation(sandbox: &Sandbox) -> i64 {
    get(sandbox, STATEFUL_SET).await["metadata"]["generation"].as_i64().unwrap_or_default()
}

/// What is on record of the members.
async fn record(sandbox: &Sandbox) -> Value {
    let set = get(sandbox, STATEFUL_SET).await;
    let text = set["metadata"]["annotations"]["opensdn.io/ensemble"].as_str().map(str::to_owned);
    serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default()
}

async fn ready(sandbox: &Sandbox, members: usize) {
    let what = format!("ZooKeeper is Ready with {members} members");
    eventually(&what, async || is_ready(sandbox, members).await).await;
}

pub(crate) async fn is_ready(sandbox: &Sandbox, members: usize) -> bool {
    condition(sandbox).await[0] == "True"
        && replicas(sandbox).await == members
        && record(sandbox).await["members"] == members
}

/// The nodes of the pods, in order.
pub(crate) async fn places(sandbox: &Sandbox) -> Vec<String> {
    let pods = read(sandbox, &["pods", "-n", "tf", "-l", "tf_manager=zookeeper"]).await;
    let pods = pods.unwrap_or_default()["items"].as_array().cloned().unwrap_or_default();
    let node = |pod: &Value| pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
    let mut places: Vec<String> = pods.iter().map(node).collect();
    places.sort();
    places
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_members_become_five_and_three_again_one_at_a_time() -> Outcome {
    let (sandbox, operator) = running().await?;
    let first = generation(&sandbox).await;
    let files = async || get(&sandbox, CONFIG_MAP).await["data"].clone();
    assert!(
        !files().await["ensemble.10.91.0.1"].as_str().unwrap_or_default().contains("server.1="),
        "with whom to start is known only until they have served"
    );

    label(&sandbox, &["node-3", "node-4"]).await?;
    ready(&sandbox, 5).await;
    assert_eq!(generation(&sandbox).await, first + 2, "one pod at a time");
    assert_eq!(record(&sandbox).await["ids"]["10.91.0.5"], 5);

    // Two go, and one of them leads.
    unlabel(&sandbox, &["node-0", "node-3"]).await?;
    ready(&sandbox, 3).await;
    assert_eq!(generation(&sandbox).await, first + 4, "one pod at a time");
    assert_eq!(places(&sandbox).await, ["node-1", "node-2", "node-4"]);

    let asked = settled(&sandbox, &operator).await?;
    let passes = async || operator.metric(0, "opensdn_reconcile_total").await;
    let before = passes().await;
    change(&sandbox, &["label"], ZOOKEEPER, &["looked-at=again"]).await?;
    eventually("it has looked at it", async || passes().await > before).await;
    operator.stop(0).await;
    operator.start(0)?;
    eventually("it has looked after a restart", async || passes().await >= 1.0).await;
    // Nothing reports a call that is not made.
    tokio::time::sleep(LOOKED_AGAIN).await;
    assert_eq!(calls(&sandbox)?, asked, "calls of passes that had nothing to do");
    Ok(())
}
