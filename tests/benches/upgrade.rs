//! What the operator itself takes for an upgrade: a service of each kind on three simulated nodes, whose pods are ready at
//! once, with no time to soak. Once with one pod of each service first, which needs several nodes, and once on one node. Deliberately
//! not here: what real services take. Of each wave it says for how long it was at work: Control and vrouters have to be ready
//! for a while before the next pod (`opensdn_upgrade::settled`), however quick their pods are.

#![allow(clippy::indexing_slicing, reason = "JSON of a bench, and the line says where")]

use std::time::{Duration, Instant};

use opensdn_crds::component::COMPONENTS;
use opensdn_testing::Failed;
use opensdn_testing::eventually::eventually_within;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::manager::whole;
use opensdn_testing::measure::{Row, report};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const LONG: Duration = Duration::from_secs(600);
/// For how long an operator is looked at that has nothing to do. Pods of Control count only when they have been ready for a minute.
const IDLE: Duration = Duration::from_secs(70);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failed> {
    let mut rows = Vec::new();
    for nodes in [1, 3] {
        rows.extend(upgrade(nodes).await?);
    }
    report("upgrade", &rows)?;
    Ok(())
}

async fn upgrade(nodes: u32) -> Result<Vec<Row>, Failed> {
    let sandbox = Sandbox::builder().simulated_nodes(nodes).start().await?;
    let operator = Operator::install(&sandbox, 1).await?;
    let label = ["label", "nodes", "--all", "node-role.kubernetes.io/control-plane="];
    kubectl(&sandbox, &label).await?.success();
    let image = |name: &str| format!("registry.example.com/contrail-{name}:R24.1");
    send(&sandbox, &["create"], &whole("tf", "it", image)).await?.success();
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
    let idle = worked()?;
    // So long is what is measured, and nothing happens meanwhile.
    tokio::time::sleep(IDLE).await;
    let idle = (worked()? - idle) / IDLE.as_secs_f64();
    let (started, before) = (Instant::now(), worked()?);
    send(&sandbox, &["create"], &upgrade).await?.success();
    let is_over = async || {
        let upgrade = read(&sandbox, &["-n", "tf", "upgrades.opensdn.io", "it"]).await;
        upgrade.unwrap_or_default()["status"]["phase"] == "Succeeded"
    };
    eventually_within(LONG, "the upgrade is over", is_over).await;
    let (took, own) = (started.elapsed().as_secs_f64(), worked()? - before);
    let pods = usize::try_from(nodes)? * COMPONENTS.len();
    let name = format!("{} services, {pods} pods on {nodes} nodes", COMPONENTS.len());
    let row = |what: &str, value: f64, unit| Row::new(format!("{name}{what}"), value, unit);
    let mut rows = vec![
        row("", took, "s").aim("60 s"),
        row(": the operator's own, of a processor", own, "s").aim("5 s"),
        row(": the same in as much time with nothing to do", idle * took, "s"),
    ];
    let upgrade = read(&sandbox, &["-n", "tf", "upgrades.opensdn.io", "it"]).await?;
    for wave in upgrade["status"]["waves"].as_array().into_iter().flatten() {
        let name = wave["name"].as_str().unwrap_or_default();
        rows.push(row(&format!(": wave {name}"), lasted(wave)?, "s"));
    }
    Ok(rows)
}

/// For how long a wave was at work, its gate included, in seconds.
fn lasted(wave: &Value) -> Result<f64, Failed> {
    let at = |name: &str| {
        let text = wave[name].as_str().ok_or_else(|| format!("{name} of {wave}"))?;
        Ok::<_, Failed>(OffsetDateTime::parse(text, &Rfc3339)?)
    };
    Ok((at("finishedAt")? - at("startedAt")?).as_seconds_f64())
}
