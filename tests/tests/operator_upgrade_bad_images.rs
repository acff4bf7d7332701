//! A bad image in each wave in turn, with a service of each kind on three simulated nodes: it takes one pod at most, and all
//! comes back by itself.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeMap;

use opensdn_crds::component::COMPONENTS;
use opensdn_testing::eventually::eventually_within;
use opensdn_testing::kubectl::read;
use opensdn_testing::manager::whole;
use opensdn_testing::{Outcome, long_runs};
use serde_json::{Value, json};

use crate::operator::get;
use crate::operator_upgrade::{MANAGER, WHOLE, World, image};

/// A container of a service of each wave.
const OF_EACH_WAVE: [(&str, &str, &str); 7] = [
    ("data-stores", "Zookeeper", "zookeeper"),
    ("config", "Config", "api"),
    ("control", "Control", "control"),
    ("analytics", "Analytics", "collector"),
    ("analytics-services", "QueryEngine", "queryengine"),
    ("web-ui", "Webui", "webuiweb"),
    ("vrouters", "Vrouter", "vrouteragent"),
];

async fn pods(world: &World) -> Vec<Value> {
    let pods = read(&world.sandbox, &["pods", "-n", "tf"]).await.unwrap_or_default();
    pods["items"].as_array().cloned().unwrap_or_default()
}

/// How many pods there are of each service, and that none has a bad image.
async fn good_pods(world: &World) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for pod in pods(world).await {
        assert!(!pod["spec"].to_string().contains(":bad"), "{pod:#}");
        let service = pod["metadata"]["labels"]["tf_manager"].as_str().unwrap_or_default();
        *all.entry(service.to_owned()).or_default() += 1;
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_image_in_each_wave_in_turn_takes_one_pod_and_comes_back_by_itself() -> Outcome {
    let manager = whole("tf", "cluster1", |container| image(container, "R24.1"));
    let world = World::of(&manager, 1).await?;
    let before = good_pods(&world).await;
    assert!(
        before.values().all(|count| *count == 3) && before.len() == COMPONENTS.len(),
        "{before:?}"
    );
    // Among every third are a service that counts its members, one of a StatefulSet, and that of the DaemonSet.
    for (wave, kind, container) in long_runs::every(3, OF_EACH_WAVE.to_vec()) {
        let images =
            json!([{"kind": kind, "container": container, "image": image(container, "bad")}]);
        // As if it could be pulled, and then not be run.
        let more = json!({"images": images, "waveTimeout": "15s", "soak": "0s", "prePull": false});
        world.create(wave, more).await?;
        let is_back = async || {
            let all = pods(&world).await;
            let bad = all.iter().filter(|pod| pod["spec"].to_string().contains(":bad")).count();
            assert!(bad <= 1, "{wave}: {bad} pods with the bad image");
            let status = world.status(wave).await;
            assert_ne!(status["phase"], "Succeeded", "{wave}");
            status["phase"] == "RolledBack"
        };
        eventually_within(WHOLE, &format!("{wave} is rolled back"), is_back).await;
        let status = world.status(wave).await;
        let steps = status["steps"].as_array().cloned().unwrap_or_default();
        assert!(steps.len() == 1 && steps[0]["wave"] == wave, "{steps:#?}");
        let message = status["message"].as_str().unwrap_or_default();
        // On a busy machine the time may be over before the new pod says what it lacks; what is said then is for others.
        let is_known = message.contains("ImagePullBackOff") || message.contains("first pod with");
        assert!(is_known, "{wave}: {message}");
        let manager = get(&world.sandbox, MANAGER).await["spec"].to_string();
        assert!(!manager.contains(":bad"), "{wave}: {manager}");
        let is_as_before = async || {
            let all = pods(&world).await;
            let is_ready = all.iter().all(|pod| pod["metadata"]["deletionTimestamp"].is_null());
            is_ready && good_pods(&world).await == before
        };
        eventually_within(WHOLE, &format!("{wave}: all pods are as before"), is_as_before).await;
    }
    Ok(())
}
