//! The policy `crossing-change` beside an Upgrade that the operator carries out, on a real control plane: what crosses it
//! is refused, what does not passes, and the operator comes to the end. What the policy finds otherwise is in its cases.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use opensdn_testing::eventually::{eventually, eventually_within};
use opensdn_testing::kubectl::{Said, kubectl, send};
use opensdn_testing::product::{Installation, Product};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator_upgrade::{MANAGER, WHOLE, World, image, manager, steps};

/// With all policies in force before there is a Manager: of the services that they ask for.
async fn world() -> Result<(World, Product), Failed> {
    let world = World::empty(1).await?;
    let product = Installation::built()?.install(&world.sandbox).await?;
    let kinds = ["Zookeeper", "Redis", "Cassandra", "Rabbitmq", "Config"];
    send(&world.sandbox, &["create"], &manager(&kinds)).await?.success();
    eventually_within(WHOLE, "the Manager is Ready", async || world.is_ready().await).await;
    Ok((world, product))
}

/// What would become of a change of the Manager.
async fn tried(world: &World, patch: &[Value]) -> Result<Said, Failed> {
    let patch = json!(patch).to_string();
    let verb = ["patch", "-n", "tf", MANAGER[0], MANAGER[1], "--dry-run=server", "--type=json"];
    Ok(kubectl(&world.sandbox, &[&verb[..], &["-p", &patch]].concat()).await?)
}

fn add(path: &str, value: &Value) -> Value {
    json!({"op": "add", "path": format!("/spec/{path}"), "value": value})
}

/// Of the first container of a service.
fn set_image(key: &str, container: &str, tag: &str) -> Value {
    let path = format!("services/{key}/spec/serviceConfiguration/containers/0/image");
    add(&path, &json!(image(container, tag)))
}

fn another_image() -> Value {
    set_image("zookeeper", "zookeeper", "R24.1.9")
}

/// A first pod has the new images, and is looked at until the soak time is another one.
async fn upgrade_at_its_first_pods(world: &World) -> Outcome {
    world.create("to-1", json!({"version": "R24.1.1", "soak": "1h"})).await?;
    let has_canary = async || {
        let status = world.status("to-1").await;
        let steps = status["steps"].as_array().cloned().unwrap_or_default();
        steps.iter().any(|step| step["canarySince"].is_string())
    };
    eventually_within(WHOLE, "a first pod has the new images", has_canary).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_cross_an_upgrade_is_refused_and_the_operator_comes_to_its_end() -> Outcome {
    let (world, _product) = world().await?;
    tried(&world, &[another_image()]).await?.success();
    upgrade_at_its_first_pods(&world).await?;

    tried(&world, &[another_image()]).await?.denied(&["OSDN2009", "tf/to-1 (Running)", "R24.1.9"]);
    let early = tried(&world, &[set_image("config", "api", "R24.1.1")]).await?;
    early.denied(&["OSDN2009", "the turn of the wave config"]);
    let gone = json!({"op": "remove", "path": "/spec/services/zookeeper"});
    tried(&world, &[gone]).await?.denied(&["OSDN2010", "Zookeeper zookeeper1"]);
    let elsewhere = add("commonConfiguration", &json!({"nodeSelector": {"rack": "a"}}));
    tried(&world, &[elsewhere]).await?.denied(&["OSDN2011", "Redis redis1, Zookeeper zookeeper1:"]);
    let delete = ["delete", "-n", "tf", MANAGER[0], MANAGER[1], "--dry-run=server"];
    kubectl(&world.sandbox, &delete).await?.denied(&["OSDN2012", "upgrades.opensdn.io to-1"]);
    let harmless = add("commonConfiguration", &json!({"logLevel": "debug"}));
    tried(&world, &[harmless]).await?.success();
    let second = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
        "metadata": {"name": "to-2", "namespace": "tf"},
        "spec": {"manager": "cluster1", "version": "R24.1.2"}});
    let said = send(&world.sandbox, &["create", "--dry-run=server"], &second).await?;
    assert!(said.success().contains("to-2") && said.err.contains("[OSDN2013]"), "{}", said.err);

    world.patch("to-1", json!({"soak": "1s"})).await?;
    world.until("to-1", "Succeeded").await;
    assert_eq!(world.tags().await?, ["R24.1.1"]);
    for (id, state) in steps(&world.status("to-1").await) {
        assert_eq!(state, "Succeeded", "{id}");
    }
    let passes = async || tried(&world, &[another_image()]).await.is_ok_and(|said| said.ok);
    eventually("when it is over nothing is in its way", passes).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_policies_an_upgrade_comes_back_and_one_that_is_deleted_holds_nothing_up()
-> Outcome {
    let (world, _product) = world().await?;
    upgrade_at_its_first_pods(&world).await?;
    world.patch("to-1", json!({"goal": "RollBack"})).await?;
    world.until("to-1", "RolledBack").await;
    assert_eq!(world.tags().await?, ["R24.1"]);
    kubectl(&world.sandbox, &["delete", "-n", "tf", "upgrades.opensdn.io", "to-1"])
        .await?
        .success();

    upgrade_at_its_first_pods(&world).await?;
    kubectl(&world.sandbox, &["delete", "-n", "tf", "upgrades.opensdn.io", "to-1"])
        .await?
        .success();
    let passes = async || tried(&world, &[another_image()]).await.is_ok_and(|said| said.ok);
    eventually("nothing is in the way of a change", passes).await;
    Ok(())
}
