//! The same services with a volume for each of their nodes: what is stored is in it, whatever becomes of pod, member and node.
//! Deliberately not here: volumes that grow (`operator_storage`), for which a kernel wants more rights than these nodes have.

use opensdn_testing::sandbox::lab::STORAGE_CLASS;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use super::cassandra::{self, CASSANDRA};
use super::rabbitmq::{self, RABBITMQ};
use super::stories;
use super::world::{Service, World};
use super::zookeeper::{ZOOKEEPER, is_one_ensemble_with_all_that_was_acknowledged};

/// Where a node has its volumes; there is one.
const VOLUMES: &str = "/var/lib/lab-volumes/*";

async fn start(
    service: Service,
    nodes: u8,
    size: &str,
    mut settings: Value,
) -> Result<World, Failed> {
    settings["storage"] = json!({"class": STORAGE_CLASS, "size": size});
    let in_folders = service.data;
    let world = World::start(Service { data: VOLUMES, ..service }, nodes, 3, settings).await?;
    for node in ["node-1", "node-2", "node-3"] {
        let lab = world.lab()?;
        lab.run_on(node, "look for its folder", &format!("test ! -e {in_folders}"))?;
        lab.run_on(node, "look into its volume", &format!("test -n \"$(ls -A {VOLUMES})\""))?;
    }
    Ok(world)
}

/// As a user does whose volume is gone.
async fn lose_volume(world: &World, node: &str) -> Outcome {
    let claim = format!("data-{}-{}-{node}", world.service.name, world.service.word);
    let pod = world.pod_on(node).await?;
    world.kubectl(&["delete", "pvc", "-n=tf", &claim, "--wait=false"]).await?.success();
    world.kubectl(&["delete", "pod", "-n=tf", &pod]).await?.success();
    let volume = async || {
        let path = "-o=jsonpath={.metadata.deletionTimestamp}{.status.phase}";
        let said = world.kubectl(&["get", "pvc", "-n=tf", &claim, path]).await;
        said.map(|said| said.out).unwrap_or_default()
    };
    world.until("the volume is made again", async || volume().await == "Bound").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_in_volumes_come_and_go_and_one_whose_volume_is_lost_has_all_from_the_others()
-> Outcome {
    let mut world = start(ZOOKEEPER, 5, "64Mi", json!({})).await?;
    let left = stories::members_come_and_go(&mut world).await?;
    lose_volume(&world, "node-2").await?;
    world.ready_on(&left).await?;
    world.writes_go_on().await?;
    is_one_ensemble_with_all_that_was_acknowledged(&mut world, &left)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_that_is_lost_and_a_node_that_is_lost_with_its_own_lose_no_confirmed_message()
-> Outcome {
    let mut world = start(RABBITMQ, 4, "256Mi", rabbitmq::settings()).await?;
    rabbitmq::give(&world).await?;
    let left = stories::what_was_stored_and_a_node_are_lost(&mut world).await?;
    rabbitmq::is_one_cluster_with_all_that_was_confirmed(&mut world, &left).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_and_pods_that_come_back_to_their_volumes_lose_no_acknowledged_row() -> Outcome {
    let mut world = start(CASSANDRA, 3, "1Gi", cassandra::settings()).await?;
    cassandra::give(&world).await?;
    stories::nodes_and_pods_are_lost_and_come_back(&mut world).await?;
    let all = ["node-1", "node-2", "node-3"];
    cassandra::is_one_ring_with_all_that_was_acknowledged(&mut world, &all)
}
