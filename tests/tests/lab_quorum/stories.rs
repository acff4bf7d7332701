//! What happens to each of the services alike. At the end it has what was acknowledged: how that is seen is the
//! service's.

use std::time::Duration;

use opensdn_testing::kubectl::Said;
use opensdn_testing::sandbox::lab::fault::Signal;
use opensdn_testing::{Failed, Outcome};

use super::world::World;

/// Longer than until a node counts as lost.
const PARTED: Duration = Duration::from_secs(40);
/// A client waits for another leader, or for a member to count as gone; on two busy cores that takes its time.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Three members become five, and three others again; one of those that go is the first of all, another the last.
pub(super) async fn members_come_and_go(world: &mut World) -> Result<[&'static str; 3], Failed> {
    write(world).await?;
    world.label("node-4").await?;
    world.label("node-5").await?;
    world.ready_on(&["node-1", "node-2", "node-3", "node-4", "node-5"]).await?;
    world.writes_go_on().await?;
    world.unlabel("node-1").await?;
    world.unlabel("node-3").await?;
    let left = ["node-2", "node-4", "node-5"];
    world.ready_on(&left).await?;
    world.writes_go_on().await?;
    Ok(left)
}

/// A node is parted from all others, one is killed, and then all pods are deleted at once.
pub(super) async fn nodes_and_pods_are_lost_and_come_back(world: &mut World) -> Outcome {
    let all = ["node-1", "node-2", "node-3"];
    write(world).await?;

    let parted = world.lab()?.partition("node-3")?;
    // Its leases run out meanwhile, and what a service makes of one that is silent.
    tokio::time::sleep(PARTED).await;
    world.writes_go_on().await?;
    parted.undo()?;
    world.ready_on(&all).await?;

    world.lab()?.kill_node("node-1")?;
    world.writes_go_on().await?;
    let client = world.sandbox.client()?;
    world.lab()?.start_node(&client, "node-1").await?;
    world.ready_on(&all).await?;

    let before = world.uids().await;
    world.kubectl(&["delete", "pods", "-n=tf", &world.selector()]).await?.success();
    let made_again = async || world.uids().await.is_disjoint(&before);
    world.until("all pods are made again", made_again).await?;
    world.ready_on(&all).await?;
    world.writes_go_on().await
}

/// What one member has stored is lost, and then a node for good, in whose place another one comes.
pub(super) async fn what_was_stored_and_a_node_are_lost(
    world: &mut World,
) -> Result<[&'static str; 3], Failed> {
    write(world).await?;
    empty(world, "node-2").await?;
    world.ready_on(&["node-1", "node-2", "node-3"]).await?;
    world.writes_go_on().await?;

    world.lab()?.kill_node("node-3")?;
    world.kubectl(&["delete", "node", "node-3"]).await?.success();
    world.label("node-4").await?;
    let left = ["node-1", "node-2", "node-4"];
    world.ready_on(&left).await?;
    world.writes_go_on().await?;
    Ok(left)
}

/// Nodes are drained one after the other, those of seeds too. The next waits until the member of the one before is back.
pub(super) async fn nodes_are_drained(world: &mut World) -> Outcome {
    let all = ["node-1", "node-2", "node-3"];
    write(world).await?;
    let written = world.client.acknowledged().len();
    for (node, next) in all.into_iter().zip(["node-2", "node-3", "node-1"]) {
        let before = world.uids().await;
        let one_to_spare = async || world.budget().await == "1";
        world.until("the budget allows one", one_to_spare).await?;
        drain(world, node, "60s").await?.success();
        let refused = drain(world, next, "1s").await?;
        assert!(!refused.ok && refused.err.contains("disruption budget"), "{}", refused.err);
        for node in [node, next] {
            world.kubectl(&["uncordon", node]).await?.success();
        }
        world.ready_on(&all).await?;
        let left = world.uids().await.intersection(&before).count();
        assert_eq!(left, 2, "the members of the other nodes were left alone");
        world.writes_go_on().await?;
    }
    let wait = world.client.longest_wait(written);
    eprintln!("a client of {} waited for {wait:?}", world.service.name);
    assert!(wait < LONGEST_WAIT, "a client waited for {} s", wait.as_secs());
    Ok(())
}

/// Its member tolerates that the node is cordoned, and starts there again.
async fn drain(world: &World, node: &str, timeout: &str) -> Result<Said, Failed> {
    let selector = format!("--pod-selector={}={}", world.service.word, world.service.name);
    let timeout = format!("--timeout={timeout}");
    let flags = ["--ignore-daemonsets", "--delete-emptydir-data", &selector, &timeout];
    world.kubectl(&[&["drain", node][..], &flags].concat()).await
}

pub(crate) async fn write(world: &mut World) -> Outcome {
    let lab = world.sandbox.lab().ok_or("the sandbox has no real nodes")?;
    world.client.start(lab)?;
    world.writes_go_on().await
}

/// Removes what the member there has stored, and ends it.
pub(super) async fn empty(world: &World, node: &str) -> Outcome {
    let (lab, pod) = (world.lab()?, world.pod_on(node).await?);
    let (service, client) = (&world.service, world.sandbox.client()?);
    let restarts = restarts(world, &pod).await;
    let killed = lab.signal_container(&client, "tf", &pod, service.word, Signal::Stop).await?;
    lab.run_on(node, "lose what is stored", &format!("rm -rf {}/*", service.data))?;
    drop(lab.signal_container(&client, "tf", &pod, service.word, Signal::Kill).await?);
    drop(killed);
    let again = async || self::restarts(world, &pod).await != restarts;
    world.until("the member is started again", again).await
}

async fn restarts(world: &World, pod: &str) -> i64 {
    let pods = world.pods().await;
    let pod = pods.iter().find(|one| one["metadata"]["name"] == pod).cloned().unwrap_or_default();
    // One that was deleted has none either.
    pod["status"]["containerStatuses"][0]["restartCount"].as_i64().unwrap_or(-1)
}
