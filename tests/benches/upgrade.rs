//! What the operator itself takes for an upgrade: a service of each kind on three simulated nodes, whose pods are ready at
//! once, with no time to soak. Once with one pod of each service first, which needs several nodes, and once on one node. Deliberately
//! not here: what real services take.

#![allow(clippy::indexing_slicing, reason = "JSON of a bench, and the line says where")]

use std::time::{Duration, Instant};

use opensdn_crds::component::COMPONENTS;
use opensdn_testing::Failed;
use opensdn_testing::eventually::eventually_within;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::manager::manager;
use opensdn_testing::measure::{Row, report};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use serde_json::json;

const LONG: Duration = Duration::from_secs(300);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failed> {
    let mut rows = Vec::new();
    for nodes in [1, 3] {
        rows.extend(upgrade(nodes).await?);
    }
    report("upgrade", &rows)?;
    Ok(())
}

async fn upgrade(nodes: u32) -> Result<[Row; 2], Failed> {
    let sandbox = Sandbox::builder().simulated_nodes(nodes).start().await?;
    let operator = Operator::install(&sandbox, 1).await?;
    let label = ["label", "nodes", "--all", "node-role.kubernetes.io/control-plane="];
    kubectl(&sandbox, &label).await?.success();
    let image = |name: &str| format!("registry.example.com/contrail-{name}:R24.1");
    let kinds: Vec<&str> = COMPONENTS.iter().map(|facts| facts.kind).collect();
    let mut manager = manager("tf", "it", &kinds, image);
    let vrouters = &mut manager["spec"]["services"]["vrouters"];
    vrouters[0]["spec"]["serviceConfiguration"]["controlInstance"] = json!("control1");
    send(&sandbox, &["create"], &manager).await?.success();
    let is_ready = async || {
        let manager = read(&sandbox, &["-n", "tf", "managers.tf.tungsten.io", "it"]).await;
        let conditions = manager.unwrap_or_default()["status"]["conditions"].clone();
        let all = conditions.as_array().cloned().unwrap_or_default();
        all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
    };
    eventually_within(LONG, "the Manager is Ready", is_ready).await;
    let upgrade = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
        "metadata": {"name": "it", "namespace": "tf"},
        "spec": {"manager": "it", "version": "R24.1.1", "soak": "0s"}});
    let worked = || operator.processor_time(0).ok_or("the operator does not run");
    let (started, before) = (Instant::now(), worked()?);
    send(&sandbox, &["create"], &upgrade).await?.success();
    let is_over = async || {
        let upgrade = read(&sandbox, &["-n", "tf", "upgrades.opensdn.io", "it"]).await;
        upgrade.unwrap_or_default()["status"]["phase"] == "Succeeded"
    };
    eventually_within(LONG, "the upgrade is over", is_over).await;
    let pods = usize::try_from(nodes)? * kinds.len();
    let name = format!("{} services, {pods} pods on {nodes} nodes", kinds.len());
    let own =
        Row::new(format!("{name}: the operator's own, of a processor"), worked()? - before, "s");
    Ok([Row::new(name, started.elapsed().as_secs_f64(), "s").aim("60 s"), own.aim("5 s")])
}
