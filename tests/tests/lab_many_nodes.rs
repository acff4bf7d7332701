//! A Vrouter on more nodes than one Secret has room for.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::time::Duration;

use futures::stream::{self, TryStreamExt as _};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use opensdn_testing::eventually::eventually_within;
use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::get;

/// More than 201 of them were refused as one Secret.
const NODES: usize = 230;
/// 460 RSA keys, with a neighbour on the machine.
const WITHIN: Duration = Duration::from_secs(300);
/// What the API server takes.
const MOST_BYTES: usize = 1 << 20;

async fn node(api: &Api<Node>, number: usize) -> Result<(), Failed> {
    let name = format!("vrouter-{number}");
    let node: Node =
        serde_json::from_value(json!({"metadata": {"name": name, "labels": {"vrouter": ""}}}))?;
    api.create(&PostParams::default(), &node).await?;
    let address = format!("192.0.{}.{}", number / 200, number % 200 + 1);
    let status = json!({"status": {"addresses": [{"type": "InternalIP", "address": address}]}});
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

/// The keys and the bytes of one of the Secrets of the Vrouter.
async fn secret(sandbox: &Sandbox, suffix: &str) -> (usize, usize) {
    let name = format!("vrouter1-secret-certificates{suffix}");
    let stored = get(sandbox, ["secret", &name]).await;
    let data = stored["data"].as_object().cloned().unwrap_or_default();
    let bytes = data.values().filter_map(Value::as_str).map(|text| text.len() / 4 * 3);
    (data.len(), bytes.sum())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_hundreds_of_vrouters_has_its_certificates() -> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(1).start().await?;
    let api = Api::all(sandbox.client()?);
    stream::iter((0..NODES).map(Ok))
        .try_for_each_concurrent(8, |number| node(&api, number))
        .await?;
    let _operator = Operator::install(&sandbox, 1).await?;
    for (kind, name) in [("Config", "config1"), ("Control", "control1")] {
        let needed = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": kind,
            "metadata": {"name": name, "namespace": "tf"}, "spec": {"serviceConfiguration": {}}});
        send(&sandbox, &["create"], &needed).await?.success();
    }
    let images = [
        "vrouteragent",
        "provisioner",
        "nodemanager",
        "vroutercni",
        "vrouterkernelinit",
        "vrouterkernelbuildinit",
        "nodeinit",
    ];
    let images = images.map(|name| json!({"name": name, "image": format!("registry.example.com/contrail-{name}:R24.1")}));
    let vrouter = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
        "metadata": {"name": "vrouter1", "namespace": "tf"},
        "spec": {"commonConfiguration": {"nodeSelector": {"vrouter": ""}},
            "serviceConfiguration": {"controlInstance": "control1", "containers": images}}});
    send(&sandbox, &["create"], &vrouter).await?.success();
    let all = async || {
        let (one, other) = (secret(&sandbox, "").await, secret(&sandbox, "-2").await);
        one.0 + other.0 == 4 * NODES
    };
    eventually_within(WITHIN, "each node has its certificates", all).await;
    for suffix in ["", "-2"] {
        let (keys, bytes) = secret(&sandbox, suffix).await;
        assert!(keys > 0 && bytes < MOST_BYTES, "{suffix}: {keys} keys, {bytes} bytes");
    }
    // Also of more than are issued in one pass.
    let first = ["secret", "vrouter1-secret-certificates"];
    let data = get(&sandbox, first).await["data"].clone();
    let label = "app.kubernetes.io/managed-by-";
    kubectl(&sandbox, &["-n", "tf", "label", first[0], first[1], label]).await?.success();
    let is_back = async || {
        let labels = get(&sandbox, first).await["metadata"]["labels"].clone();
        labels["app.kubernetes.io/managed-by"].is_string()
    };
    eventually_within(WITHIN, "the Secret has its label again", is_back).await;
    assert!(get(&sandbox, first).await["data"] == data, "certificates were issued again");
    Ok(())
}
