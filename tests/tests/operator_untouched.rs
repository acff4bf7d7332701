//! What a change does not concern, on a real control plane with simulated nodes: a label, an annotation, another order of what has
//! none and a node more make no pod again, and a setting that is read once has the pods of its service alone be made again, one
//! by one and the leader's last. That no template changes is shown of all kinds in `operator/tests/untouched.rs`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeMap;

use opensdn_deploy::names::operator::USER;
use opensdn_testing::eventually::eventually_within;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::{LABEL, settled};
use crate::operator_upgrade::{WHOLE, World, manager};
use crate::watched_pods::Pods;

const KINDS: [&str; 7] =
    ["Zookeeper", "Redis", "Cassandra", "Rabbitmq", "Config", "Control", "Vrouter"];
const OBJECTS: &str = "managers.tf.tungsten.io,zookeepers.tf.tungsten.io,redis.tf.tungsten.io,cassandras.tf.tungsten.io,\
    rabbitmqs.tf.tungsten.io,configs.tf.tungsten.io,controls.tf.tungsten.io,vrouters.tf.tungsten.io";

/// With lists whose order means nothing, in one order or the other, and two databases.
fn given(is_reversed: bool) -> Value {
    let mut all = manager(&KINDS);
    let mut tolerations = json!([
        {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"},
        {"key": "example.com/rack", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
    ]);
    let mut secrets = json!(["registry-b", "registry-a"]);
    let services = &mut all["spec"]["services"];
    services["vrouters"][0]["spec"]["serviceConfiguration"]["controlInstance"] = json!("control1");
    let mut second = services["cassandras"][0].clone();
    second["metadata"]["name"] = json!("analyticsdb1");
    second["spec"]["serviceConfiguration"]["port"] = json!(9160);
    second["spec"]["serviceConfiguration"]["cqlPort"] = json!(9042);
    if let Some(all) = services["cassandras"].as_array_mut() {
        all.push(second);
    }
    if is_reversed {
        reverse(&mut tolerations);
        reverse(&mut secrets);
        for (_, service) in services.as_object_mut().into_iter().flatten() {
            reverse(service);
            let items = match service {
                Value::Array(items) => items.iter_mut().collect(),
                item => vec![item],
            };
            for item in items {
                reverse(&mut item["spec"]["serviceConfiguration"]["containers"]);
                item["metadata"]["labels"] = json!({"example.com/tier": "gold"});
            }
        }
    }
    all["spec"]["commonConfiguration"] =
        json!({"tolerations": tolerations, "imagePullSecrets": secrets});
    all
}

fn reverse(list: &mut Value) {
    if let Some(list) = list.as_array_mut() {
        list.reverse();
    }
}

/// Who is there, and what those are made by who come.
#[derive(Debug, PartialEq)]
struct There {
    pods: BTreeMap<String, Value>,
    templates: BTreeMap<String, Value>,
}

async fn there(sandbox: &Sandbox) -> Result<There, Failed> {
    let list = async |kind: &str, part: &str| {
        let all = read(sandbox, &["-n", "tf", kind]).await?["items"].take();
        let part = |one: &Value| {
            let name = one["metadata"]["name"].as_str()?.to_owned();
            Some((name, one.pointer(part)?.clone()))
        };
        Ok::<BTreeMap<_, _>, Failed>(
            all.as_array().into_iter().flatten().filter_map(part).collect(),
        )
    };
    let pods = list("pods", "/metadata/uid").await?;
    let templates = list("statefulsets,daemonsets", "/spec/template").await?;
    Ok(There { pods, templates })
}

/// Three nodes of the control plane, and a fourth with its vrouter.
async fn running() -> Result<World, Failed> {
    let sandbox = Sandbox::builder().simulated_nodes(4).with_crds().await?;
    let operator = Operator::install(&sandbox, 1).await?;
    kubectl(&sandbox, &["label", "nodes", "node-0", "node-1", "node-2", LABEL]).await?.success();
    send(&sandbox, &["create"], &given(false)).await?.success();
    let world = World { sandbox, operator };
    ready(&world, "at first").await;
    Ok(world)
}

async fn ready(world: &World, when: &str) {
    let what = format!("the Manager is Ready {when}");
    eventually_within(WHOLE, &what, async || world.is_ready().await).await;
}

async fn members(world: &World, number: usize) -> bool {
    let sets = read(&world.sandbox, &["-n", "tf", "statefulsets"]).await.unwrap_or_default();
    let mut sets = sets["items"].as_array().into_iter().flatten();
    sets.all(|set| set["spec"]["replicas"] == number && set["status"]["readyReplicas"] == number)
}

/// Whatever has them, a user or another controller.
async fn labels_and_annotations(world: &World) -> Outcome {
    let everything = format!("{OBJECTS},statefulsets,daemonsets,configmaps");
    for verb in ["label", "annotate"] {
        for what in [&["-n", "tf", &everything][..], &["nodes"]] {
            let arguments = [&[verb], what, &["--all", "example.com/tier=gold"]].concat();
            kubectl(&world.sandbox, &arguments).await?.success();
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_another_order_or_a_node_more_makes_no_pod_again_and_a_setting_those_of_its_service()
-> Outcome {
    let world = running().await?;
    let before = there(&world.sandbox).await?;
    assert_eq!(before.pods.len(), 7 * 3 + 4, "{before:#?}");

    labels_and_annotations(&world).await?;
    settled(&world.sandbox, &world.operator).await?;
    assert_eq!(there(&world.sandbox).await?, before, "labels and annotations");

    send(&world.sandbox, &["replace"], &given(true)).await?.success();
    ready(&world, "in another order").await;
    assert_eq!(there(&world.sandbox).await?, before, "another order");

    kubectl(&world.sandbox, &["label", "node", "node-3", LABEL]).await?.success();
    let has_grown = async || members(&world, 4).await && world.is_ready().await;
    eventually_within(WHOLE, "each service has a member more", has_grown).await;
    let grown = there(&world.sandbox).await?;
    assert_eq!(grown.templates, before.templates, "a node more");
    assert_eq!(grown.pods.len(), before.pods.len() + 7);
    for (name, uid) in &before.pods {
        assert_eq!(grown.pods.get(name), Some(uid), "{name}, with a node more");
    }

    one_by_one_and_the_leader_last(&world, &grown).await
}

/// Settings that members read when they start, and others do not ask for.
const READ_ONCE: [(&str, &str, &str, &str); 3] = [
    ("zookeeper", "zookeeper1", "adminPort", "12182"),
    ("rabbitmq", "rabbitmq1", "clusterPartitionHandling", "\"pause_minority\""),
    ("cassandra", "configdb1", "cassandraParameters", "{\"concurrentReads\": 33}"),
];

async fn one_by_one_and_the_leader_last(world: &World, before: &There) -> Outcome {
    let sandbox = &world.sandbox;
    let pods = Pods::watch(sandbox, "tf")?;
    let is_watched = async || ["zookeeper", "rabbitmq"].iter().all(|one| pods.places(one) == 4);
    eventually_within(WHOLE, "all pods are seen", is_watched).await;
    let mut all = given(true);
    let services = all["spec"]["services"].as_object_mut().ok_or("no services")?;
    for (_, name, key, value) in READ_ONCE {
        let items = services.values_mut().flat_map(|service| match service {
            Value::Array(items) => items.iter_mut().collect(),
            item => vec![item],
        });
        for item in items.filter(|item| item["metadata"]["name"] == name) {
            item["spec"]["serviceConfiguration"][key] = serde_json::from_str(value)?;
        }
    }
    send(sandbox, &["replace"], &all).await?.success();
    ready(world, "with other settings").await;
    let after = there(sandbox).await?;
    let deleted = deleted(sandbox)?;
    let nodes = read(sandbox, &["-n", "tf", "pods"]).await?["items"].take();
    for (name, uid) in &before.pods {
        let is_its =
            |(word, of, ..): &&(&str, &str, &str, &str)| name.starts_with(&format!("{of}-{word}-"));
        let Some((word, of, ..)) = READ_ONCE.iter().find(is_its) else {
            assert_eq!(after.pods.get(name), Some(uid), "{name} has nothing to do with it");
            continue;
        };
        assert_ne!(after.pods.get(name), Some(uid), "{name} of {word} {of}");
    }
    for (word, of, ..) in READ_ONCE {
        let mine = deleted.iter().filter(|name| name.starts_with(&format!("{of}-{word}-")));
        let mine: Vec<_> = mine.collect();
        assert_eq!(mine.len(), 4, "each once: {mine:?}");
        let mut all = nodes.as_array().into_iter().flatten();
        let last = all.find(|pod| pod["metadata"]["name"] == mine[3].as_str());
        // Of simulated members the first one leads that serves.
        let node = last.map(|pod| pod["spec"]["nodeName"].clone());
        assert_eq!(node, Some(json!("node-0")), "the leader of {of} comes last: {mine:?}");
    }
    let most = pods.most_away();
    assert!(most.len() == 3 && most.values().all(|away| away.len() == 1), "at a time: {most:?}");
    Ok(())
}

/// The pods that the operator has deleted, in order.
fn deleted(sandbox: &Sandbox) -> Result<Vec<String>, Failed> {
    let of_operator = sandbox.requests_of(USER)?;
    let deleted = of_operator
        .iter()
        .filter(|event| event["verb"] == "delete" && event["objectRef"]["resource"] == "pods");
    let name = |event: &Value| event["objectRef"]["name"].as_str().map(str::to_owned);
    Ok(deleted.filter_map(name).collect())
}
