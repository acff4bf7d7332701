//! Upgrades while something else happens, on a real control plane with simulated nodes: the API server is restarted,
//! certificates change, a node is lost, a pod is evicted or its volume is full, a user edits the Manager. Never is a second
//! pod of a service away by our doing. An operator that fails at a write is in `operator_upgrade_faults`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use opensdn_testing::eventually::{eventually, eventually_within};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::{CA, CERTIFICATES, REDIS, TRUST, change, get, pem};
use crate::operator_upgrade::{MANAGER, WHOLE, World, image, manager, steps};
use crate::watched_pods::Pods;

const DATA_STORES: [&str; 2] = ["Zookeeper", "Redis"];
const ZOOKEEPER: &str = "Zookeeper/zookeeper1";

impl World {
    async fn has_canaries(&self, name: &str) -> bool {
        let steps = self.status(name).await["steps"].as_array().cloned().unwrap_or_default();
        !steps.is_empty() && steps.iter().all(|step| step["canarySince"].is_string())
    }

    async fn pods(&self) -> Vec<Value> {
        let pods = read(&self.sandbox, &["pods", "-n", "tf"]).await.unwrap_or_default();
        pods["items"].as_array().cloned().unwrap_or_default()
    }

    /// The pod of a service that has an image with the tag.
    async fn pod_with(&self, service: &str, tag: &str) -> Option<Value> {
        let is_it = |pod: &Value| {
            pod["metadata"]["labels"]["tf_manager"] == service
                && pod["spec"]["containers"].to_string().contains(&format!(":{tag}\""))
        };
        self.pods().await.into_iter().find(is_it)
    }

    /// When each pod of a service was made, in seconds, in order.
    async fn made(&self, service: &str) -> Result<Vec<i64>, Failed> {
        let pods = self.pods().await;
        let pods = pods.iter().filter(|pod| pod["metadata"]["labels"]["tf_manager"] == service);
        let made = pods.map(|pod| {
            let time: Time = serde_json::from_value(pod["metadata"]["creationTimestamp"].clone())?;
            Ok(time.0.as_second())
        });
        let mut made = made.collect::<Result<Vec<_>, Failed>>()?;
        made.sort_unstable();
        Ok(made)
    }

    async fn message(&self, name: &str) -> String {
        self.status(name).await["message"].as_str().unwrap_or_default().to_owned()
    }

    async fn until_message(&self, name: &str, parts: &[&str]) {
        let says = async || {
            let message = self.message(name).await;
            parts.iter().all(|part| message.contains(part))
        };
        eventually(&format!("{name} says {parts:?}"), says).await;
    }

    async fn patch_pod(&self, name: &str, patch: &Value, subresource: Option<&str>) -> Outcome {
        let patch = patch.to_string();
        let mut arguments = vec!["patch", "-n", "tf", "pod", name, "-p", &patch];
        let subresource = subresource.map(|one| format!("--subresource={one}"));
        arguments.extend(subresource.as_deref());
        // It may be gone by now.
        kubectl(&self.sandbox, &arguments).await?;
        Ok(())
    }

    /// What becomes of pods when no kubelet answers any more: the node controller says that they are not ready, and one
    /// that is deleted stays.
    async fn lose(&self, node: &str) -> Outcome {
        for pod in self.pods_on(node).await {
            self.patch_pod(&pod, &kept(), None).await?;
            self.patch_pod(&pod, &not_ready(), Some("status")).await?;
        }
        Ok(())
    }

    async fn bring_back(&self, node: &str) -> Outcome {
        for pod in self.pods_on(node).await {
            self.patch_pod(&pod, &json!({"metadata": {"finalizers": null}}), None).await?;
            self.patch_pod(&pod, &ready(), Some("status")).await?;
        }
        Ok(())
    }

    async fn pods_on(&self, node: &str) -> Vec<String> {
        let pods = self.pods().await;
        let there = pods.iter().filter(|pod| pod["spec"]["nodeName"] == node);
        there.filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned)).collect()
    }
}

fn is_ready(status: &str) -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": status}]}})
}

/// It stays when it is deleted.
fn kept() -> Value {
    json!({"metadata": {"finalizers": ["test.opensdn.io/kept"]}})
}

fn not_ready() -> Value {
    is_ready("False")
}

fn ready() -> Value {
    is_ready("True")
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Each pod was made so often, and of no service two were away at once.
fn one_after_the_other(pods: &Pods, times: usize) {
    let (number, most) = (pods.by_name(), pods.most_away());
    assert!(number.values().all(|one| *one == times), "{number:?}");
    assert!(most.values().all(|away| away.len() <= 1), "{most:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_restarts_or_certificates_that_change_in_a_wave_replace_no_pod_twice()
-> Outcome {
    let world = World::of(&manager(&DATA_STORES), 1).await?;
    let pods = Pods::watch(&world.sandbox, "tf")?;
    // Until the API server is back: a scheduler ends for good where it loses the answer to a binding.
    world.create("to-1", json!({"version": "R24.1.1", "soak": "12s"})).await?;
    eventually("one pod is looked at", async || world.has_canaries("to-1").await).await;
    world.sandbox.restart_api_server().await?;
    world.until("to-1", "Succeeded").await;
    assert_eq!(world.tags().await?, ["R24.1.1"]);
    one_after_the_other(&pods, 2);

    world.create("to-2", json!({"version": "R24.1.2", "soak": "2s"})).await?;
    eventually("one pod is looked at", async || world.has_canaries("to-2").await).await;
    let before = get(&world.sandbox, CERTIFICATES).await;
    change(&world.sandbox, &["delete"], CERTIFICATES, &[]).await?;
    let old = pem(&world.sandbox, "ca.crt").await?;
    change(&world.sandbox, &["annotate"], CA, &["opensdn.io/rotate-ca=now"]).await?;
    let is_announced = async || {
        text(&get(&world.sandbox, TRUST).await, "/data/ca-bundle.crt").matches("BEGIN").count() == 2
    };
    eventually("the next CA is announced", is_announced).await;
    // As if ten minutes had passed.
    let long_ago = ["opensdn.io/published-at=2026-01-01T00:00:00Z", "--overwrite"];
    change(&world.sandbox, &["annotate"], TRUST, &long_ago).await?;
    world.until("to-2", "Succeeded").await;
    assert_eq!(world.tags().await?, ["R24.1.2"]);
    one_after_the_other(&pods, 3);
    let after = get(&world.sandbox, CERTIFICATES).await;
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    change(&world.sandbox, &["label"], REDIS, &["looked-at=again"]).await?;
    let signs = async || pem(&world.sandbox, "ca.crt").await.is_ok_and(|ca| ca != old);
    eventually("the new CA signs", signs).await;
    Ok(())
}

/// Rabbitmq has an image that is in no registry, all the time.
async fn with_a_bad_service() -> Result<World, Failed> {
    let world = World::empty(1).await?;
    let kinds = [&DATA_STORES[..], &["Rabbitmq"]].concat();
    let mut manager = manager(&kinds);
    let rabbitmq = &mut manager["spec"]["services"]["rabbitmq"]["spec"]["serviceConfiguration"];
    rabbitmq["containers"][0]["image"] = json!(image("rabbitmq", "bad"));
    send(&world.sandbox, &["create"], &manager).await?.success();
    let are_ready = async || {
        let rows = get(&world.sandbox, MANAGER).await["status"]["services"].clone();
        let rows = rows.as_array().cloned().unwrap_or_default();
        let ready: Vec<_> = rows.iter().filter(|row| row["ready"] == true).collect();
        ready.len() == DATA_STORES.len() && ready.iter().all(|row| row["kind"] != "Rabbitmq")
    };
    eventually_within(WHOLE, "all but Rabbitmq are ready", are_ready).await;
    Ok(world)
}

/// Without Rabbitmq.
fn images(tag: &str, more: &[(&str, Value)]) -> Value {
    let all = ["zookeeper", "redis", "stunnel"]
        .map(|name| json!({"container": name, "image": image(name, tag)}));
    let mut spec = json!({"images": all, "soak": "2s"});
    for (key, value) in more {
        spec[*key] = value.clone();
    }
    spec
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_node_is_lost_no_other_pod_is_replaced_and_it_is_named() -> Outcome {
    let world = with_a_bad_service().await?;
    let pods = Pods::watch(&world.sandbox, "tf")?;
    world.create("to-1", images("R24.1.1", &[("soak", json!("5s"))])).await?;
    eventually("one pod is looked at", async || world.has_canaries("to-1").await).await;
    let first = world.pod_with("zookeeper", "R24.1.1").await.ok_or("no first pod")?;
    let (name, node) = (text(&first, "/metadata/name"), text(&first, "/spec/nodeName"));
    world.lose(node).await?;
    world.until_message("to-1", &[ZOOKEEPER, name, node]).await;
    world.bring_back(node).await?;
    world.until("to-1", "Succeeded").await;
    let mut most = pods.most_away();
    assert!(most.remove("rabbitmq").is_some(), "it was bad before");
    assert!(most.values().all(|away| away.len() <= 1), "{most:?}");

    // This time it does not come back.
    pods.forget();
    let short = [("soak", json!("5s")), ("waveTimeout", json!("10s"))];
    world.create("to-2", images("R24.1.2", &short)).await?;
    eventually("one pod is looked at", async || world.has_canaries("to-2").await).await;
    let first = world.pod_with("zookeeper", "R24.1.2").await.ok_or("no first pod")?;
    let (name, node) = (text(&first, "/metadata/name"), text(&first, "/spec/nodeName"));
    world.lose(node).await?;
    world.until_from("to-2", "RollingBack").await;
    world.until_from("to-2", "Stopped").await;
    let message = world.message("to-2").await;
    assert!(message.contains(name) && message.contains(node), "{message}");
    let mut most = pods.most_away();
    most.remove("rabbitmq");
    assert!(most.values().all(|away| away.len() <= 1), "{most:?}");
    world.bring_back(node).await?;
    world.patch("to-2", json!({"retries": 1})).await?;
    world.until_from("to-2", "RolledBack").await;
    let most: BTreeMap<_, _> = pods.most_away();
    assert!(
        most.iter().all(|(service, away)| service == "rabbitmq" || away.len() <= 1),
        "{most:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_is_evicted_or_whose_volume_is_full_is_named_with_the_reason() -> Outcome {
    let world = World::of(&manager(&DATA_STORES), 1).await?;
    let evicted = json!({"status": {"phase": "Failed", "reason": "Evicted",
        "message": "The node was low on resource: ephemeral-storage.",
        "conditions": [{"type": "Ready", "status": "False"}]}});
    let parts = ["Evicted", "ephemeral-storage"];
    failed_by(&world, ["evicted", "R24.1.1", "redis"], &evicted, &parts).await?;

    let full = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [{"name": "zookeeper", "ready": false, "restartCount": 3, "image": "i", "imageID": "",
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": "No space left on device"}}}]}});
    let parts = ["container zookeeper", "CrashLoopBackOff", "No space left on device"];
    failed_by(&world, ["full", "R24.1.2", "zookeeper"], &full, &parts).await
}

/// An Upgrade whose first pod of a service is like that until it goes back. The pod stays, so that no successor is well for a
/// moment: here a pod is ready as soon as it is there.
async fn failed_by(
    world: &World,
    [name, tag, service]: [&str; 3],
    status: &Value,
    parts: &[&str],
) -> Outcome {
    let pods = Pods::watch(&world.sandbox, "tf")?;
    let fields = [("soak", json!("5s")), ("waveTimeout", json!("15s"))];
    world.create(name, images(tag, &fields)).await?;
    eventually("one pod is looked at", async || world.has_canaries(name).await).await;
    let pod = world.pod_with(service, tag).await.ok_or("no first pod")?;
    let pod = text(&pod, "/metadata/name");
    world.patch_pod(pod, &kept(), None).await?;
    world.patch_pod(pod, status, Some("status")).await?;
    world.until_message(name, parts).await;
    world.until_from(name, "RollingBack").await;
    world.patch_pod(pod, &json!({"metadata": {"finalizers": null}}), None).await?;
    world.until_from(name, "RolledBack").await;
    let most = pods.most_away();
    assert!(most.values().all(|away| away.len() <= 1), "{most:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_a_user_changes_in_a_running_wave_stops_it_and_another_field_does_not()
-> Outcome {
    let world = World::of(&manager(&DATA_STORES), 1).await?;
    let pods = Pods::watch(&world.sandbox, "tf")?;
    world.create("to-1", json!({"version": "R24.1.1", "soak": "2s"})).await?;
    eventually("one pod is looked at", async || world.has_canaries("to-1").await).await;
    let debug = r#"{"spec":{"commonConfiguration":{"logLevel":"debug"}}}"#;
    change(&world.sandbox, &["patch", "--type=merge", "-p", debug], MANAGER, &[]).await?;
    world.until("to-1", "Succeeded").await;
    eventually_within(WHOLE, "the Manager is Ready", async || world.is_ready().await).await;
    assert_eq!(world.tags().await?, ["R24.1.1"]);
    for pod in world.pods().await {
        assert!(pod["spec"].to_string().contains("SYS_DEBUG"), "{pod:#}");
    }
    let most = pods.most_away();
    assert!(most.values().all(|away| away.len() <= 1), "{most:?}");

    world.create("to-2", json!({"version": "R24.1.2", "soak": "2s"})).await?;
    eventually("one pod is looked at", async || world.has_canaries("to-2").await).await;
    let set = async |tag: &str| {
        let entry = "/spec/services/redis/0/spec/serviceConfiguration/containers/0";
        let patch = json!([{"op": "test", "path": format!("{entry}/name"), "value": "redis"},
            {"op": "replace", "path": format!("{entry}/image"), "value": image("redis", tag)}]);
        let patch = patch.to_string();
        change(&world.sandbox, &["patch", "--type=json", "-p", &patch], MANAGER, &[]).await
    };
    set("of-a-user").await?;
    world.until("to-2", "Stopped").await;
    let message = world.message("to-2").await;
    assert!(message.contains("edited") && message.contains(":of-a-user"), "{message}");
    let services = get(&world.sandbox, MANAGER).await["spec"]["services"].to_string();
    assert!(services.contains(":of-a-user"), "nothing overwrites it: {services}");
    set("R24.1.2").await?;
    world.patch("to-2", json!({"retries": 1})).await?;
    world.until("to-2", "Succeeded").await;
    assert_eq!(world.tags().await?, ["R24.1.2"]);
    let done = steps(&world.status("to-2").await);
    assert!(done.iter().all(|(_, state)| state == "Succeeded"), "{done:?}");
    let most = pods.most_away();
    assert!(most.values().all(|away| away.len() <= 1), "{most:?}");
    Ok(())
}

/// What another operator may not have changed.
async fn workloads(world: &World) -> Result<BTreeMap<String, (Value, Value)>, Failed> {
    let kinds = "statefulsets,daemonsets,controllerrevisions,pods,configmaps,secrets,managers.tf.tungsten.io";
    let all = read(&world.sandbox, &["-n", "tf", kinds]).await?;
    let all = all["items"].as_array().into_iter().flatten().map(|one| {
        let key = format!("{} {}", text(one, "/kind"), text(one, "/metadata/name"));
        (key, (one["metadata"]["uid"].clone(), one["metadata"]["generation"].clone()))
    });
    Ok(all.collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_operator_restarts_nothing_and_images_that_a_user_sets_roll_one_member_at_a_time()
-> Outcome {
    let kinds = ["Zookeeper", "Redis", "Cassandra", "Rabbitmq", "Config", "Control", "Vrouter"];
    let mut all = manager(&kinds);
    let vrouters = &mut all["spec"]["services"]["vrouters"];
    vrouters[0]["spec"]["serviceConfiguration"]["controlInstance"] = json!("control1");
    let world = World::of(&all, 2).await?;
    let before = workloads(&world).await?;
    let holder = async || {
        let lease = read(&world.sandbox, &["-n", "opensdn-system", "lease"]).await;
        text(&lease.unwrap_or_default(), "/items/0/spec/holderIdentity").to_owned()
    };
    let first = holder().await;
    let number = usize::from(first == "operator-1");
    world.operator.stop(number).await;
    let passes = async || world.operator.metric(1 - number, "opensdn_reconcile_total").await;
    eventually("the other looks after all", async || passes().await >= 16.0).await;
    assert_eq!(workloads(&world).await?, before);

    let pods = Pods::watch(&world.sandbox, "tf")?;
    for facts in kinds.iter().filter(|kind| **kind != "Vrouter") {
        let key = opensdn_crds::component::Component::of_kind(facts).ok_or("no kind")?.key;
        let service = &mut all["spec"]["services"][key];
        let service = if service.is_array() { &mut service[0] } else { service };
        for entry in
            service["spec"]["serviceConfiguration"]["containers"].as_array_mut().ok_or("")?
        {
            let tag = text(entry, "/image").replace(":R24.1", ":R24.1.1");
            entry["image"] = json!(tag);
        }
    }
    send(&world.sandbox, &["replace"], &all).await?.success();
    let has_rolled = async || {
        let pods = world.pods().await;
        let old = pods.iter().filter(|pod| pod["spec"].to_string().contains(":R24.1\""));
        old.count() == 3 && world.is_ready().await
    };
    eventually_within(WHOLE, "all but Vrouter run the new images", has_rolled).await;
    let most = pods.most_away();
    assert!(most.values().all(|away| away.len() <= 1), "{most:?}");
    // Agents have their sessions with two of them: they are to be back at the one before.
    let made = world.made("control").await?;
    let pauses: Vec<_> = made.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(pauses.len() == 2 && pauses.iter().all(|pause| *pause >= 60), "{made:?}");
    Ok(())
}
