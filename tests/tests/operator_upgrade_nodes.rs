//! What an upgrade does on nodes, on a real control plane with simulated ones: they pull the new images before anything is
//! changed, and of vrouters the first is looked at before the others are replaced, as many at a time as was asked for.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use opensdn_testing::eventually::{eventually, eventually_within};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::{LABEL, get};
use crate::operator_upgrade::{MANAGER, WHOLE, World, image, manager};
use crate::watched_pods::Pods;

const NODES: u32 = 4;
const AT_ONCE: usize = 2;
/// Not as their names would be sorted.
const ZONES: [(&str, [&str; 2]); 2] = [("a", ["node-0", "node-2"]), ("b", ["node-1", "node-3"])];
const SOAK: i64 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_no_node_can_pull_changes_nothing_and_is_named() -> Outcome {
    let world = World::of(&manager(&["Redis", "Zookeeper"]), 1).await?;
    let before = get(&world.sandbox, MANAGER).await["metadata"]["generation"].clone();
    let images = json!([{"container": "stunnel", "image": image("stunnel", "bad")}]);
    let more =
        json!({"version": "R24.1.1", "images": images, "onFailure": "Stop", "waveTimeout": "40s"});
    world.create("bad", more).await?;
    world.until("bad", "Stopped").await;
    let message = world.status("bad").await["message"].to_string();
    for part in
        ["0 of 3 nodes have the new images", "contrail-stunnel:bad: ImagePullBackOff", "node-0"]
    {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(get(&world.sandbox, MANAGER).await["metadata"]["generation"], before);
    eventually("no pod that pulls is left", async || pullers(&world).await.is_empty()).await;
    // The service whose image there is not is left out, and the other one gets its own.
    world
        .patch(
            "bad",
            json!({"skip": [{"step": "Redis/redis1", "reason": "its image is not there"}]}),
        )
        .await?;
    world.until_from("bad", "Succeeded").await;
    let status = world.status("bad").await;
    assert_eq!(status["waves"][0]["name"], "images", "{status:#}");
    assert_eq!(status["waves"][0]["state"], "Succeeded", "{status:#}");
    assert!(pullers(&world).await.is_empty());
    Ok(())
}

/// The nodes on which there is a pod that pulls.
async fn pullers(world: &World) -> BTreeSet<String> {
    let pods = read(&world.sandbox, &["pods", "-n=tf", "--selector=tf_manager=upgrade"]).await;
    let pods = pods.unwrap_or_default();
    let node = |pod: &Value| pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
    pods["items"].as_array().into_iter().flatten().map(node).collect()
}

/// A Manager with vrouters on all nodes, and one of them of the control plane.
async fn world() -> Result<World, Failed> {
    let sandbox = Sandbox::builder().simulated_nodes(NODES).with_crds().await?;
    let operator = Operator::install(&sandbox, 1).await?;
    kubectl(&sandbox, &["label", "node", "node-0", LABEL]).await?.success();
    for (zone, nodes) in ZONES {
        let label = format!("topology.kubernetes.io/zone={zone}");
        kubectl(&sandbox, &["label", "node", nodes[0], nodes[1], &label]).await?.success();
    }
    let kinds = ["Zookeeper", "Redis", "Cassandra", "Rabbitmq", "Config", "Control", "Vrouter"];
    let mut manager = manager(&kinds);
    manager["spec"]["services"]["vrouters"][0]["spec"]["serviceConfiguration"]["controlInstance"] =
        json!("control1");
    send(&sandbox, &["create"], &manager).await?.success();
    let world = World { sandbox, operator };
    eventually_within(WHOLE, "the Manager is Ready", async || world.is_ready().await).await;
    Ok(world)
}

/// When each vrouter with the new images was made, in seconds.
async fn vrouters_made(world: &World) -> Result<Vec<i64>, Failed> {
    let pods: Api<Pod> = Api::namespaced(world.sandbox.client()?, "tf");
    let pods = pods.list(&ListParams::default().labels("tf_manager=vrouter")).await?;
    let is_new = |pod: &&Pod| {
        let images = pod.spec.iter().flat_map(|spec| &spec.containers);
        images.filter_map(|one| one.image.as_ref()).all(|image| image.contains("R24.1.1"))
    };
    let made = pods.items.iter().filter(is_new);
    let made = made.filter_map(|pod| pod.metadata.creation_timestamp.as_ref());
    Ok(made.map(|time| time.0.as_second()).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_vrouters_the_first_is_looked_at_and_then_as_many_are_replaced_at_a_time_as_was_asked()
-> Outcome {
    let world = world().await?;
    let pods = Pods::watch(&world.sandbox, "tf")?;
    eventually("all are seen", async || pods.places("vrouter") == NODES as usize).await;
    let away = pods.most_away();
    assert!(away.is_empty(), "{away:?}");
    let images = vrouter_images("R24.1.1");
    let more = json!({"images": images, "vroutersAtOnce": AT_ONCE, "soak": format!("{SOAK}s"), "waveTimeout": "5m"});
    world.create("nodes", more).await?;
    world.until("nodes", "Succeeded").await;
    assert_eq!(pods.pulled().len(), NODES as usize, "{:?}", pods.pulled());
    let late = pods.pulled_late();
    assert!(late.is_empty(), "all is pulled before a pod is replaced: {late:?}");
    let away = pods.most_away();
    let most = away.get("vrouter").map_or(0, BTreeSet::len);
    assert!((1..=AT_ONCE).contains(&most), "{away:?}");
    let is_of_zone = |nodes: &[&str]| {
        away.get("vrouter").is_some_and(|all| all.iter().all(|node| nodes.contains(&&**node)))
    };
    assert!(ZONES.iter().any(|(_, nodes)| is_of_zone(nodes)), "of two zones: {away:?}");
    let mut made = vrouters_made(&world).await?;
    assert_eq!(made.len(), NODES as usize, "{made:?}");
    made.sort_unstable();
    // Seconds are cut off.
    assert!(made[1] - made[0] >= SOAK - 1, "the first is looked at: {made:?}");
    each_interruption_is_in_the_report(&world).await;
    each_waits_for_its_node_to_be_drained(&world).await
}

/// Where one vrouter works with the new image, another that does not is the matter of its node: nothing goes back, and nothing
/// goes on either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_has_stopped_replaces_no_vrouter_also_when_the_cause_is_gone() -> Outcome {
    let world = world().await?;
    let more = json!({"images": vrouter_images("R24.1.3"), "soak": "1s", "waveTimeout": "30s", "prePull": false});
    world.create("held", more).await?;
    let new = async || {
        let pods = read(&world.sandbox, &["pods", "-n=tf", "--selector=tf_manager=vrouter"]).await;
        let pods = pods.unwrap_or_default()["items"].as_array().cloned().unwrap_or_default();
        let mut new: Vec<(String, String)> = pods
            .iter()
            .filter(|pod| pod["spec"].to_string().contains(":R24.1.3") && is_ready(pod))
            .map(|pod| &pod["metadata"])
            .map(|of| {
                (
                    of["creationTimestamp"].to_string(),
                    of["name"].as_str().unwrap_or_default().to_owned(),
                )
            })
            .collect();
        new.sort_unstable();
        new
    };
    eventually("the second has the new image", async || new().await.len() == 2).await;
    let second = new().await[1].1.clone();
    say_ready(&world.sandbox, &second, false).await?;
    world.until("held", "Stopped").await;
    let message = world.status("held").await["message"].to_string();
    assert!(message.contains(&second), "{message}");

    say_ready(&world.sandbox, &second, true).await?;
    // A DaemonSet would replace the next at once.
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let phase = world.status("held").await["phase"].clone();
    assert_eq!((new().await.len(), phase), (2, json!("Stopped")));
    world.patch("held", json!({"retries": 1})).await?;
    eventually("the next one follows", async || new().await.len() > 2).await;
    Ok(())
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// As a kubelet would.
async fn say_ready(sandbox: &Sandbox, pod: &str, is_ready: bool) -> Outcome {
    let status = if is_ready { "True" } else { "False" };
    let now = k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let conditions = json!([{"type": "Ready", "status": status, "lastTransitionTime": now}]);
    let patch = json!({"status": {"conditions": conditions}}).to_string();
    let patch =
        ["patch", "pod", pod, "-n=tf", "--subresource=status", "--type=strategic", "-p", &patch];
    kubectl(sandbox, &patch).await?.success();
    Ok(())
}

/// Of each node one, whose end is known.
async fn each_interruption_is_in_the_report(world: &World) {
    let status = world.status("nodes").await;
    let steps = status["steps"].as_array().into_iter().flatten();
    let all = steps.flat_map(|step| step["interruptions"].as_array().cloned().unwrap_or_default());
    let nodes: BTreeMap<String, i64> =
        all.map(|one| (one["node"].to_string(), one["seconds"].as_i64().unwrap_or(-1))).collect();
    assert_eq!(nodes.len(), NODES as usize, "{status:#}");
    // Not longer than the wave was.
    assert!(nodes.values().all(|seconds| (0..300).contains(seconds)), "{nodes:?}");
}

/// Cordoned alone is not drained: pods of others are being evicted then, and need the network until they end.
async fn each_waits_for_its_node_to_be_drained(world: &World) -> Outcome {
    let sandbox = &world.sandbox;
    let says = async |part: &str| {
        world.status("drained").await["message"].as_str().is_some_and(|text| text.contains(part))
    };
    let with_new = async || {
        let pods = read(sandbox, &["pods", "-n=tf", "--selector=tf_manager=vrouter"]).await;
        let pods = pods.unwrap_or_default()["items"].as_array().cloned().unwrap_or_default();
        let new = pods.iter().filter(|pod| pod["spec"].to_string().contains(":R24.1.2"));
        new.map(|pod| pod["spec"]["nodeName"].clone()).collect::<Vec<_>>()
    };
    // All four at a time.
    kubectl(sandbox, &["label", "nodes", "--all", "topology.kubernetes.io/zone-"]).await?.success();
    let more = json!({"images": vrouter_images("R24.1.2"), "vroutersAtOnce": NODES, "waitForDrain": true, "prePull": false,
        "waveTimeout": "10s"});
    world.create("drained", more).await?;
    let start = std::time::Instant::now();
    let all = async || says("left: node-0, node-1, node-2, node-3").await;
    eventually("it says which nodes are to be drained", all).await;
    let drain = ["drain", "node-1", "--ignore-daemonsets", "--pod-selector=!tf_manager"];
    kubectl(sandbox, &drain).await?.success();
    // Longer than a wave may be without progress.
    let is_late = async || start.elapsed().as_secs() > 20;
    eventually("time passes", is_late).await;
    assert!(says("left: node-0, node-1").await && with_new().await.is_empty());

    let annotation = "opensdn.io/drained-for=tf/drained";
    kubectl(sandbox, &["annotate", "node", "node-1", annotation]).await?.success();
    let next = async || says("kubectl uncordon NODE: node-1; ").await;
    eventually_within(WHOLE, "the first node is done", next).await;
    assert_eq!(with_new().await, ["node-1"]);

    // Another Upgrade's, or left from one, counts for nothing.
    let others = "opensdn.io/drained-for=tf/nodes";
    for node in ["node-0", "node-2", "node-3"] {
        kubectl(sandbox, &["cordon", node]).await?.success();
        kubectl(sandbox, &["annotate", "node", node, others]).await?.success();
    }
    assert!(says("left: node-0, node-2, node-3").await, "{:#}", world.status("drained").await);
    let all = ["annotate", "--overwrite", "node", "--all", annotation];
    kubectl(sandbox, &all).await?.success();
    world.until("drained", "Succeeded").await;
    assert_eq!(with_new().await.len(), NODES as usize);
    Ok(())
}

fn vrouter_images(tag: &str) -> Vec<Value> {
    let image =
        |name: &&str| json!({"kind": "Vrouter", "container": name, "image": image(name, tag)});
    ["vrouteragent", "nodemanager", "provisioner"].iter().map(image).collect()
}
