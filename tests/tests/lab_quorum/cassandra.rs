//! Cassandra 3.11, with a keyspace as OpenSDN makes its own.

use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use super::stories;
use super::world::{Service, World};

pub(crate) const CASSANDRA: Service = Service {
    image: "cassandra-3.11",
    word: "cassandra",
    kind: "cassandras.tf.tungsten.io",
    field: ("cassandras", true),
    name: "configdb1",
    data: "/var/lib/contrail/database",
    client: "cassandra_client.py",
    beside: &[("nodemanager", 8103), ("provisioner", 8199)],
};

/// Small ones, of which three fit on one machine.
pub(crate) fn settings() -> Value {
    json!({"minHeapSize": "192m", "maxHeapSize": "320m"})
}

/// What the client trusts.
pub(crate) async fn give(world: &World) -> Outcome {
    world.give("ca.crt", "configmap", "csr-signer-ca", "ca-bundle.crt").await
}

async fn start(nodes: u8, members: usize) -> Result<World, Failed> {
    let world = World::start(CASSANDRA, nodes, members, settings()).await?;
    give(&world).await?;
    Ok(world)
}

/// A quorum has every row that was acknowledged, each is kept three times, and the members are those alone.
pub(crate) fn is_one_ring_with_all_that_was_acknowledged(
    world: &mut World,
    nodes: &[&str],
) -> Outcome {
    world.client.end();
    let mut hosts: Vec<String> =
        nodes.iter().map(|node| world.address_of(node)).collect::<Result<_, _>>()?;
    let said = world.client.read(world.lab()?, &hosts)?;
    let lost = world.lost(&said["numbers"]);
    assert!(lost.is_empty(), "lost: {lost:?}");
    hosts.sort();
    assert_eq!((&said["copies"], &said["members"]), (&json!(3), &json!(hosts)));
    eprintln!("{} rows were acknowledged", world.client.acknowledged().len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_member_becomes_three_and_three_others_with_three_copies_of_each_acknowledged_row()
-> Outcome {
    let mut world = start(4, 1).await?;
    stories::write(&mut world).await?;
    world.label("node-2").await?;
    world.label("node-3").await?;
    world.ready_on(&["node-1", "node-2", "node-3"]).await?;
    world.writes_go_on().await?;
    world.label("node-4").await?;
    world.unlabel("node-1").await?;
    let left = ["node-2", "node-3", "node-4"];
    world.ready_on(&left).await?;
    world.writes_go_on().await?;
    is_one_ring_with_all_that_was_acknowledged(&mut world, &left)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parted_and_a_killed_node_and_all_pods_deleted_at_once_lose_no_acknowledged_row()
-> Outcome {
    let mut world = start(3, 3).await?;
    stories::nodes_and_pods_are_lost_and_come_back(&mut world).await?;
    is_one_ring_with_all_that_was_acknowledged(&mut world, &["node-1", "node-2", "node-3"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_has_lost_all_and_a_node_lost_for_good_lose_no_acknowledged_row() -> Outcome {
    let mut world = start(4, 3).await?;
    let left = stories::what_was_stored_and_a_node_are_lost(&mut world).await?;
    is_one_ring_with_all_that_was_acknowledged(&mut world, &left)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_members_become_five_and_three_others_and_no_acknowledged_row_is_lost() -> Outcome {
    let mut world = start(5, 3).await?;
    let left = stories::members_come_and_go(&mut world).await?;
    is_one_ring_with_all_that_was_acknowledged(&mut world, &left)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_waits_until_the_member_of_the_node_before_is_back_and_no_acknowledged_row_is_lost()
-> Outcome {
    let mut world = start(3, 3).await?;
    stories::nodes_are_drained(&mut world).await?;
    is_one_ring_with_all_that_was_acknowledged(&mut world, &["node-1", "node-2", "node-3"])
}
