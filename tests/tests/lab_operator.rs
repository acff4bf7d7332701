//! The operator and what it runs, in pods on real nodes: a Manager with Redis, whose members are deleted, all at
//! once, and lose a node. The beginning of it is of the gate (`lab_short`). What differs between components is
//! shown by their golden files, what the API server sees by `operator.rs`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::time::{Duration, Instant};

use opensdn_testing::Outcome;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::lab_operator::{REDIS_IMAGE, install};
use opensdn_testing::sandbox::Sandbox;
use serde_json::{Value, json};

/// Of what happens in pods and on nodes: a lost node is noticed after some 50 s.
const LONGEST: Duration = Duration::from_secs(180);
const MANAGER: [&str; 3] = ["managers.tf.tungsten.io", "-n=tf", "cluster1"];
pub(crate) const PODS: [&str; 3] = ["pods", "-n=tf", "--selector=tf_manager=redis"];

/// As `eventually`, for as long as pods take.
pub(crate) async fn in_time(what: &str, is_so: impl AsyncFn() -> bool) -> Outcome {
    let begun = Instant::now();
    while !is_so().await {
        if begun.elapsed() > LONGEST {
            return Err(format!("{what}: not within {} s", LONGEST.as_secs()).into());
        }
        // A pod takes a second or two.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

/// Status and message of a condition of the Manager.
pub(crate) async fn condition(sandbox: &Sandbox, type_: &str) -> (String, String) {
    let manager = read(sandbox, &MANAGER).await.unwrap_or_default();
    let all = manager["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["type"] == type_).unwrap_or_default();
    let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

async fn uids(sandbox: &Sandbox) -> Vec<String> {
    let pods = read(sandbox, &PODS).await.unwrap_or_default();
    let items = pods["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|pod| pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The Manager is Ready with three members, none of which is one of those.
pub(crate) async fn ready_without(sandbox: &Sandbox, gone: &[String]) -> Outcome {
    let is_ready = async || {
        let members = uids(sandbox).await;
        members.len() == 3
            && members.iter().all(|uid| !gone.contains(uid))
            && condition(sandbox, "Ready").await.0 == "True"
    };
    let ended = in_time("the Manager is Ready", is_ready).await;
    if ended.is_err() {
        let (_, why) = condition(sandbox, "Ready").await;
        let pods = kubectl(sandbox, &["describe", PODS[0], PODS[1], PODS[2]]).await?;
        return Err(format!("the Manager is not Ready: {why}\n{}", pods.out).into());
    }
    ended
}

/// A Manager with Redis.
pub(crate) fn manager_of_redis() -> Value {
    let image = |name: &str| json!({"name": name, "image": REDIS_IMAGE});
    let containers = [image("redis"), image("stunnel")];
    let redis = json!({"metadata": {"name": "redis1"},
        "spec": {"serviceConfiguration": {"containers": containers, "redisPort": 6390}}});
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": "cluster1", "namespace": "tf"},
        "spec": {"services": {"redis": [redis]}}})
}

/// A Manager with Redis on three nodes, Ready.
pub(crate) async fn running(sandbox: &Sandbox) -> Outcome {
    install(sandbox).await?;
    let label = "node-role.kubernetes.io/control-plane=";
    kubectl(sandbox, &["label", "nodes", "--all", "--overwrite", label]).await?.success();
    send(sandbox, &["create"], &manager_of_redis()).await?.success();
    ready_without(sandbox, &[]).await
}

/// Every member is reached from every other by TLS, with a certificate of the operator's CA.
pub(crate) async fn members_answer_each_other(sandbox: &Sandbox) -> Outcome {
    let pods = read(sandbox, &PODS).await?;
    let pods = pods["items"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let members: Vec<(String, String)> = pods
        .iter()
        .map(|pod| (text(&pod["metadata"]["name"]), text(&pod["status"]["podIP"])))
        .collect();
    for (from, _) in &members {
        for (to, address) in &members {
            let ask = format!(
                "redis-cli -h {address} -p 6390 --tls --cacert /etc/ssl/certs/kubernetes/ca-bundle.crt ping"
            );
            let exec = ["exec", "-n=tf", from, "-c=redis", "--", "sh", "-c", &ask];
            let said = kubectl(sandbox, &exec).await?;
            if said.out.trim() != "PONG" {
                return Err(
                    format!("{from} asks {to} at {address}: {} {}", said.out, said.err).into()
                );
            }
        }
    }
    Ok(())
}

/// One is deleted, then all at once.
pub(crate) async fn lost_members_come_back(sandbox: &Sandbox) -> Outcome {
    let one = uids(sandbox).await.first().cloned().ok_or("there is no member")?;
    let pod = "redis1-redis-statefulset-0";
    let named = read(sandbox, &["pod", "-n=tf", pod]).await?["metadata"]["uid"].clone();
    let one = named.as_str().map_or(one, str::to_owned);
    kubectl(sandbox, &["delete", "pod", "-n=tf", pod]).await?.success();
    ready_without(sandbox, &[one]).await?;
    let all = uids(sandbox).await;
    kubectl(sandbox, &["delete", PODS[0], PODS[1], PODS[2]]).await?.success();
    ready_without(sandbox, &all).await?;
    members_answer_each_other(sandbox).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_lost_is_said_and_its_member_comes_back_with_it() -> Outcome {
    let sandbox = Sandbox::with_real_nodes(3).await?;
    running(&sandbox).await?;
    members_answer_each_other(&sandbox).await?;
    let lab = sandbox.lab().ok_or("the sandbox has no real nodes")?;
    let node = lab.nodes().last().map(|node| node.name().to_owned());
    let node = node.ok_or("the lab has no node")?;
    lab.kill_node(&node)?;
    let said = async || {
        let (status, message) = condition(&sandbox, "Ready").await;
        status == "False" && message.contains("2 of 3 pods ready")
    };
    in_time("the Manager says that a member is missing", said).await?;
    assert_eq!(condition(&sandbox, "Available").await.0, "True", "two of three are enough");
    lab.start_node(&sandbox.client()?, &node).await?;
    ready_without(&sandbox, &[]).await?;
    members_answer_each_other(&sandbox).await
}
