//! ZooKeeper.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use super::stories;
use super::world::{Service, World};

pub(crate) const ZOOKEEPER: Service = Service {
    image: "zookeeper",
    word: "zookeeper",
    kind: "zookeepers.tf.tungsten.io",
    field: ("zookeeper", false),
    name: "zookeeper1",
    data: "/var/lib/contrail/zookeeper",
    client: "zookeeper_client.py",
    beside: &[],
};
const ALL: [&str; 3] = ["node-1", "node-2", "node-3"];
/// Longer than until the operator looks at the members again, several times.
const LOOKED_AGAIN: Duration = Duration::from_secs(15);

async fn start(nodes: u8, members: usize) -> Result<World, Failed> {
    World::start(ZOOKEEPER, nodes, members, json!({})).await
}

/// Each member has all that was acknowledged; they have the same list, of them alone; and one leads.
pub(crate) fn is_one_ensemble_with_all_that_was_acknowledged(
    world: &mut World,
    nodes: &[&str],
) -> Outcome {
    world.client.end();
    let hosts: Vec<String> =
        nodes.iter().map(|node| world.address_of(node)).collect::<Result<_, _>>()?;
    let said = world.client.read(world.lab()?, &hosts)?;
    let members: BTreeSet<&str> = hosts.iter().map(String::as_str).collect();
    let mut leaders = 0;
    for host in &hosts {
        let lost = world.lost(&said[host]["numbers"]);
        assert!(lost.is_empty(), "{host} has not {lost:?}");
        let listed = said[host]["members"].as_array().into_iter().flatten();
        let listed: BTreeSet<&str> = listed.filter_map(Value::as_str).collect();
        assert_eq!(listed, members, "the list of {host}");
        leaders += usize::from(said[host]["is_leader"] == true);
    }
    assert_eq!(leaders, 1, "{said}");
    eprintln!("{} writes were acknowledged", world.client.acknowledged().len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_members_become_five_and_three_others_and_no_acknowledged_write_is_lost() -> Outcome {
    let mut world = start(5, 3).await?;
    let left = stories::members_come_and_go(&mut world).await?;
    is_one_ensemble_with_all_that_was_acknowledged(&mut world, &left)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parted_and_a_killed_node_and_all_pods_deleted_at_once_lose_no_acknowledged_write()
-> Outcome {
    let mut world = start(3, 3).await?;
    let before = list_of_members(&world, "node-1")?;
    stories::nodes_and_pods_are_lost_and_come_back(&mut world).await?;
    assert_eq!(list_of_members(&world, "node-1")?, before, "nobody has changed the members");
    is_one_ensemble_with_all_that_was_acknowledged(&mut world, &ALL)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_has_lost_all_and_a_node_lost_for_good_lose_no_acknowledged_write() -> Outcome
{
    let mut world = start(4, 3).await?;
    let left = stories::what_was_stored_and_a_node_are_lost(&mut world).await?;
    is_one_ensemble_with_all_that_was_acknowledged(&mut world, &left)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_member_becomes_three_and_one_and_three_again_whatever_the_others_had_left_behind()
-> Outcome {
    let mut world = start(3, 1).await?;
    stories::write(&mut world).await?;
    // One is on its way when all is undone.
    for node in ["node-2", "node-3"] {
        world.label(node).await?;
    }
    let grows = async || world.stateful_set("{.spec.replicas}").await == "2";
    world.until("another member comes", grows).await?;
    for node in ["node-2", "node-3"] {
        world.unlabel(node).await?;
    }
    world.ready_on(&["node-1"]).await?;
    for round in 0..2 {
        for node in ["node-2", "node-3"] {
            world.label(node).await?;
        }
        world.ready_on(&ALL).await?;
        world.writes_go_on().await?;
        if round == 1 {
            break;
        }
        for node in ["node-2", "node-3"] {
            world.unlabel(node).await?;
        }
        world.ready_on(&["node-1"]).await?;
        // The other keeps what it had.
        let lose = format!("rm -rf {}", ZOOKEEPER.data);
        world.lab()?.run_on("node-2", "lose what is stored", &lose)?;
    }
    is_one_ensemble_with_all_that_was_acknowledged(&mut world, &ALL)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_waits_for_a_missing_member_and_without_a_quorum_no_member_is_taken_out() -> Outcome
{
    let mut world = start(3, 3).await?;
    stories::write(&mut world).await?;
    let selector = format!("--pod-selector={}={}", ZOOKEEPER.word, ZOOKEEPER.name);
    let drain = ["drain", "node-1", "--ignore-daemonsets", &selector, "--timeout=20s"];

    world.lab()?.kill_node("node-3")?;
    let none_to_spare = async || world.budget().await == "0";
    world.until("the budget allows nothing", none_to_spare).await?;
    let refused = world.kubectl(&drain).await?;
    assert!(!refused.ok && refused.err.contains("disruption budget"), "{}", refused.err);
    world.writes_go_on().await?;

    world.lab()?.kill_node("node-2")?;
    world.says("NoQuorum", "nothing is changed until they do").await?;
    let before = world.stateful_set("{.metadata.generation}").await;
    world.unlabel("node-3").await?;
    // Nothing shows that nothing is done.
    tokio::time::sleep(LOOKED_AGAIN).await;
    assert_eq!(world.stateful_set("{.metadata.generation}").await, before);
    world.label("node-3").await?;

    let client = world.sandbox.client()?;
    for node in ["node-2", "node-3"] {
        world.lab()?.start_node(&client, node).await?;
    }
    world.kubectl(&["uncordon", "node-1"]).await?.success();
    world.ready_on(&ALL).await?;
    let one_to_spare = async || world.budget().await == "1";
    world.until("the budget allows one", one_to_spare).await?;
    world.kubectl(&drain).await?.success();
    world.kubectl(&["uncordon", "node-1"]).await?.success();
    world.ready_on(&ALL).await?;
    world.writes_go_on().await?;
    is_one_ensemble_with_all_that_was_acknowledged(&mut world, &ALL)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_started_again_one_by_one_the_leader_last_and_only_one_with_what_does_not_start()
-> Outcome {
    let mut world = start(3, 3).await?;
    stories::write(&mut world).await?;
    let leader = leader(&world)?;
    let before = places(&world).await;
    world.set(&json!({"adminEnabled": false})).await?;
    let (mut order, mut seen) = (Vec::new(), before.clone());
    let all_again = async || {
        let now = places(&world).await;
        now.len() == 3 && now.iter().all(|(node, uid)| before.get(node) != Some(uid))
    };
    while !all_again().await {
        assert!(world.ready_pods().await >= 2, "more than one is missing: {order:?}");
        for (node, uid) in places(&world).await {
            if seen.insert(node.clone(), uid.clone()).is_some_and(|known| known != uid) {
                order.push(node);
            }
        }
        // A member takes several seconds.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    world.ready_on(&ALL).await?;
    assert!(order.len() == 2 && !order.contains(&leader), "{leader} is the last, not {order:?}");

    // An image that cannot be had, and back.
    let (good, before) = (world.image().await, places(&world).await);
    world.set_image("opensdn-tests-zookeeper:missing").await?;
    let does_not_start = async || world.trouble().await.contains("ImagePull");
    world.until("one does not start", does_not_start).await?;
    // Nothing shows that nothing is done.
    tokio::time::sleep(LOOKED_AGAIN).await;
    assert_eq!(world.ready_pods().await, 2, "the others are left alone");
    world.writes_go_on().await?;
    world.set_image(&good).await?;
    world.ready_on(&ALL).await?;
    let after = places(&world).await;
    let changed = after.iter().filter(|(node, uid)| before.get(*node) != Some(uid)).count();
    assert_eq!(changed, 1, "the others were never started again");
    is_one_ensemble_with_all_that_was_acknowledged(&mut world, &ALL)
}

/// The node of the member that leads.
fn leader(world: &World) -> Result<String, Failed> {
    for node in ALL {
        let address = world.address_of(node)?;
        let said = world.client.read(world.lab()?, std::slice::from_ref(&address))?;
        if said[&address]["is_leader"] == true {
            return Ok(node.to_owned());
        }
    }
    Err("none leads".into())
}

/// The version of the list of members, as that member has it.
fn list_of_members(world: &World, node: &str) -> Result<Value, Failed> {
    let address = world.address_of(node)?;
    let said = world.client.read(world.lab()?, std::slice::from_ref(&address))?;
    Ok(said[&address]["version"].clone())
}

/// The pod of each node.
async fn places(world: &World) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pods = world.pods().await;
    let place = |pod: &Value| (text(&pod["spec"]["nodeName"]), text(&pod["metadata"]["uid"]));
    pods.iter().map(place).filter(|(node, _)| !node.is_empty()).collect()
}
