//! The webhook as it is shipped, in pods on three real nodes, while users work and things break.
//! Deliberately not here: what the lab itself can do (`lab_cluster`), all replicas down and the
//! namespace gone (`lab_outage`), clients that want the same keys (`lab_uniqueness`).

use std::future::Future;

use opensdn_deploy::names::NAMESPACE;
use opensdn_testing::Outcome;
use opensdn_testing::lab_product::{Build, LabProduct};
use opensdn_testing::lab_under_load::LabUnderLoad;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::sandbox::lab::node_of;

const ROOT: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "root"},
    "spec": {"containers": [{"name": "c", "image": "opensdn-webhook:0.1.0"}]}}"#;

/// More requests than that are never without a verdict, whatever breaks. How many there were is
/// measured by the bench `lab`: up to 12.
pub(crate) const MOST_FAILED: usize = 50;

/// One replica on each node.
async fn is_spread(product: &LabProduct<'_>) -> Outcome {
    let pods = product.pods().await?;
    let mut nodes: Vec<&str> = pods.iter().filter_map(node_of).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["node-1", "node-2", "node-3"]);
    Ok(())
}

/// Spread, and in a namespace that takes nothing with more rights.
pub(crate) async fn is_installed_as_promised(
    sandbox: &Sandbox,
    product: &LabProduct<'_>,
) -> Outcome {
    is_spread(product).await?;
    let create = ["-n", NAMESPACE, "create", "-f", "-"];
    let output = sandbox.kubectl_with_input(&create, ROOT).await?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("violates PodSecurity \"restricted"), "{said}");
    Ok(())
}

/// It may cost requests, but few, and no wrong verdict.
async fn costs_little(
    world: &LabUnderLoad<'_>,
    what: &str,
    breaks: impl Future<Output = Outcome>,
) -> Outcome {
    let cost = world.recovers(what, Box::pin(world.amid_changes(breaks))).await?;
    assert!(cost.failed.len() <= MOST_FAILED, "{cost:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_breaks_in_the_cluster_no_verdict_is_wrong() -> Outcome {
    let sandbox = Sandbox::with_real_nodes(3).await?;
    let product = LabProduct::install(&sandbox, Build::Release).await?;
    is_installed_as_promised(&sandbox, &product).await?;
    let world = LabUnderLoad::start(&sandbox, product).await?;

    let within = world.within_the_network_policy();
    world.unnoticed("the NetworkPolicy is enforced", within).await?;

    // Policies and the CA change during each.
    let drains = world.amid_changes(world.drain_each_node());
    world.unnoticed("each node is drained", drains).await?;
    world.unnoticed("replicas are evicted", world.evict_replicas()).await?;
    let update = world.amid_changes(world.rolling_update());
    world.unnoticed("a rolling update", update).await?;
    // The drains have left the last node empty.
    is_spread(world.product()).await?;

    costs_little(&world, "a replica is killed", world.kill_a_replica()).await?;
    let killed = world.amid_changes(world.kill_the_writers());
    let what = "what writes the webhook configurations is killed";
    world.unnoticed(what, killed).await?;
    let restart = async { Ok(sandbox.restart_api_server().await?) };
    costs_little(&world, "the API server is restarted", restart).await?;
    let what = "a replica and the API server are cut off from each other";
    costs_little(&world, what, world.cut_off_a_replica()).await?;
    let what = "the node of the leader is cut off";
    costs_little(&world, what, world.cut_off_the_leaders_node()).await?;
    costs_little(&world, "a node is killed", world.kill_a_node()).await?;

    world.unnoticed("policies change afterwards", world.swap_policies()).await?;
    Ok(world.load().nothing_bad_is_stored().await?)
}
