//! What `kubectl opensdn status` and `check` take of a cluster with 1, 100 and 1,000 nodes, each with the pod of a vrouter:
//! wall time of the whole command. How often they ask is held by tests. Deliberately not here: how fast the
//! operator writes what they read (`operator`).

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use opensdn_testing::Failed;
use opensdn_testing::measure::{Row, Sample, report};
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::written_cluster::{nodes_with_vrouters, written};

const RUNS: usize = 10;
/// Created at once: one command line of kubectl's each.
const BATCH: usize = 250;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failed> {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    written(&sandbox).await?;
    let kubeconfig = sandbox.kubeconfig();
    let mut rows = Vec::new();
    let mut has = 0;
    for (wanted, shown, aim) in
        [(1, "1 node", ""), (100, "100 nodes", ""), (1_000, "1,000 nodes", "1,000")]
    {
        while has < wanted {
            let next = wanted.min(has + BATCH);
            nodes_with_vrouters(&sandbox, has..next).await?;
            has = next;
        }
        for command in ["status", "check"] {
            let runs = (0..RUNS).map(|_| run(&kubeconfig, command)).collect::<Result<_, _>>()?;
            let wall = Sample::new(runs).percentile(0.5) / 1_000.0;
            let aim = if command == "status" { aim } else { "" };
            rows.push(
                Row::new(format!("{command} of {shown}, p50 of {RUNS}"), wall, "ms").aim(aim),
            );
        }
    }
    report("status", &rows)?;
    Ok(())
}

/// How long the command takes. It finds something to say of such a cluster, and that is no failure of the bench.
fn run(kubeconfig: &Path, command: &str) -> Result<std::time::Duration, Failed> {
    let started = Instant::now();
    let output = Command::new(program("kubectl-opensdn")?)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args([command, "-o", "json"])
        .stdin(Stdio::null())
        .output()?;
    let wall = started.elapsed();
    match output.status.code() {
        Some(0 | 1) if !output.stdout.is_empty() => Ok(wall),
        _ => Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}
