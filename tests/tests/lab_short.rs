//! The webhook in pods on three real nodes, as far as the gate has time for: installed as shipped, a
//! refusal, an update, a lost replica, a lost node; and the operator, with Redis on each of them, of which one
//! member is lost and then all. Deliberately not here: every other fault (`lab_webhook`, `lab_operator`, by
//! `make test-lab`).

use std::future::Future;

use opensdn_testing::Outcome;
use opensdn_testing::lab_product::{Build, LabProduct};
use opensdn_testing::lab_under_load::LabUnderLoad;
use opensdn_testing::sandbox::Sandbox;

use super::lab_operator::{lost_members_come_back, members_answer_each_other, running};
use super::lab_webhook::{MOST_FAILED, is_installed_as_promised};

const REFUSED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples-refused/manager.yaml");

/// It may cost requests, but few, and no wrong verdict.
async fn costs_little(
    world: &LabUnderLoad<'_>,
    what: &str,
    breaks: impl Future<Output = Outcome>,
) -> Outcome {
    let cost = world.recovers(what, Box::pin(breaks)).await?;
    assert!(cost.failed.len() <= MOST_FAILED, "{cost:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installed_by_kubectl_it_refuses_through_an_update_and_lost_pods_and_nodes() -> Outcome {
    let sandbox = Sandbox::with_real_nodes(3).await?;
    let product = LabProduct::install(&sandbox, Build::Development).await?;
    is_installed_as_promised(&sandbox, &product).await?;

    let world = LabUnderLoad::start(&sandbox, product).await?;
    let output = sandbox.kubectl(&["apply", "-f", REFUSED]).await?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("denied the request") && said.contains("[OSDN1816]"), "{said}");

    world.unnoticed("a rolling update", world.rolling_update()).await?;
    costs_little(&world, "a replica is killed", world.kill_a_replica()).await?;
    costs_little(&world, "a node is killed", world.kill_a_node()).await?;
    Ok(world.load().nothing_bad_is_stored().await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_runs_redis_on_each_node_and_lost_members_come_back() -> Outcome {
    let sandbox = Sandbox::with_real_nodes(3).await?;
    running(&sandbox).await?;
    members_answer_each_other(&sandbox).await?;
    lost_members_come_back(&sandbox).await
}
