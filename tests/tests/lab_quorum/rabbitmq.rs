//! RabbitMQ, with a queue as OpenSDN's are: mirrored to every member, and here a durable one.

use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use super::stories;
use super::world::{Service, World};

pub(crate) const RABBITMQ: Service = Service {
    image: "rabbitmq",
    word: "rabbitmq",
    kind: "rabbitmqs.tf.tungsten.io",
    field: ("rabbitmq", false),
    name: "rabbitmq1",
    data: "/var/lib/contrail/rabbitmq",
    client: "rabbitmq_client.py",
    beside: &[],
};
const SECRET: &str = "rabbitmq1-secret";
/// With what OpenSDN sets a partition is healed by dropping one side, whose messages are lost with it.
const PARTITIONS: &str = "pause_minority";

pub(crate) fn settings() -> Value {
    json!({"clusterPartitionHandling": PARTITIONS})
}

/// The client has the certificate of the first pod's clients, and the password.
pub(crate) async fn give(world: &World) -> Outcome {
    let address = world.address_of("node-1")?;
    let certificates = format!("{SECRET}-certificates");
    world.give("ca.crt", "configmap", "csr-signer-ca", "ca-bundle.crt").await?;
    let (certificate, key) = (format!("client-{address}.crt"), format!("client-key-{address}.pem"));
    world.give("client.crt", "secret", &certificates, &certificate).await?;
    world.give("client.key", "secret", &certificates, &key).await?;
    for key in ["user", "password", "vhost"] {
        world.give(key, "secret", SECRET, key).await?;
    }
    Ok(())
}

async fn start(nodes: u8, members: usize) -> Result<World, Failed> {
    let world = World::start(RABBITMQ, nodes, members, settings()).await?;
    give(&world).await?;
    Ok(world)
}

/// Every message that was confirmed is in the queue, whichever member is asked; and each lists the members alone.
pub(crate) async fn is_one_cluster_with_all_that_was_confirmed(
    world: &mut World,
    nodes: &[&str],
) -> Outcome {
    world.client.end();
    for node in nodes {
        let said = world.client.read(world.lab()?, &[world.address_of(node)?])?;
        let lost = world.lost(&said["numbers"]);
        assert!(lost.is_empty(), "{node} has not {lost:?}");
        let (mut listed, mut expected) = (members(world, node).await?, Vec::new());
        for other in nodes {
            expected.push(format!("rabbit@{}", world.address_of(other)?));
        }
        listed.sort();
        expected.sort();
        assert_eq!(listed, expected, "the list of {node}");
    }
    eprintln!("{} messages were confirmed", world.client.acknowledged().len());
    Ok(())
}

/// Those that the member there knows, all of which run.
async fn members(world: &World, node: &str) -> Result<Vec<String>, Failed> {
    let pod = world.pod_on(node).await?;
    let ask = "rabbitmqctl -q cluster_status --formatter json";
    let script = format!("bash /etc/contrailconfigmaps/as-rabbitmq.sh {ask}");
    let said = world.kubectl(&["exec", "-n=tf", &pod, "--", "sh", "-c", &script]).await?;
    let said: Value = serde_json::from_str(said.success().trim())?;
    let names = |key: &str| -> Vec<String> {
        let all = said[key].as_array().into_iter().flatten();
        all.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    assert_eq!(names("disk_nodes").len(), names("running_nodes").len(), "{said}");
    Ok(names("disk_nodes"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_members_become_five_and_three_others_and_no_confirmed_message_is_lost() -> Outcome {
    let mut world = start(5, 3).await?;
    let left = stories::members_come_and_go(&mut world).await?;
    is_one_cluster_with_all_that_was_confirmed(&mut world, &left).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parted_and_a_killed_node_and_all_pods_deleted_at_once_lose_no_confirmed_message()
-> Outcome {
    let mut world = start(3, 3).await?;
    stories::nodes_and_pods_are_lost_and_come_back(&mut world).await?;
    let all = ["node-1", "node-2", "node-3"];
    is_one_cluster_with_all_that_was_confirmed(&mut world, &all).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_has_lost_all_and_a_node_lost_for_good_lose_no_confirmed_message() -> Outcome
{
    let mut world = start(4, 3).await?;
    let left = stories::what_was_stored_and_a_node_are_lost(&mut world).await?;
    is_one_cluster_with_all_that_was_confirmed(&mut world, &left).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_waits_until_the_member_of_the_node_before_is_back_and_no_confirmed_message_is_lost()
-> Outcome {
    let mut world = start(3, 3).await?;
    stories::nodes_are_drained(&mut world).await?;
    let all = ["node-1", "node-2", "node-3"];
    is_one_cluster_with_all_that_was_confirmed(&mut world, &all).await
}
