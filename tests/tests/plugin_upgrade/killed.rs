//! Commands that are killed with SIGKILL at their write, before it is stored and after: the same command again ends as if that
//! had not been, and nothing is asked for twice.

use opensdn_testing::fault_proxy::{Fault, FaultProxy};
use opensdn_testing::kubectl::kubectl;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use super::{Cluster, UPGRADE, status};

/// Runs a command until its write, of which that becomes, and kills it.
async fn killed(cluster: &Cluster, line: &str, fault: Fault) -> Outcome {
    let folder = tempfile::tempdir()?;
    let proxy = FaultProxy::of_what_is_stored(cluster.sandbox.client()?, [(0, fault)]).await?;
    let command = cluster.command_by(&proxy.kubeconfig(folder.path())?, line)?;
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
    tokio::select! {
        () = proxy.broken() => {}
        status = child.wait() => return Err(format!("{line} ended before its write: {status:?}").into()),
    }
    child.kill().await?;
    Ok(())
}

/// The same, killed both times, and then to its end.
async fn again(cluster: &Cluster, line: &str) -> Outcome {
    killed(cluster, line, Fault::LoseRequest).await?;
    killed(cluster, line, Fault::LoseAnswer).await?;
    cluster.expect(line, 0, &[]).map(drop)
}

async fn spec(cluster: &Cluster) -> Result<Value, Failed> {
    Ok(cluster.upgrade("to-r25-1").await?["spec"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_its_write_a_command_is_taken_up_by_the_next_and_asks_for_nothing_twice()
-> Outcome {
    let cluster = Cluster::start().await?;
    let apply = "apply R25.1 --yes --no-wait";
    killed(&cluster, apply, Fault::LoseRequest).await?;
    assert_eq!(cluster.names().await?, Vec::<String>::new());
    killed(&cluster, apply, Fault::LoseAnswer).await?;
    let made = cluster.upgrade("to-r25-1").await?["metadata"]["uid"].clone();
    cluster.expect(apply, 0, &[])?;
    assert_eq!(cluster.names().await?, ["to-r25-1"]);
    assert_eq!(cluster.upgrade("to-r25-1").await?["metadata"]["uid"], made);

    cluster.says("to-r25-1", &status("Running", ["Running", "Pending"])).await?;
    again(&cluster, "pause").await?;
    assert_eq!(spec(&cluster).await?["paused"], true);
    cluster.says("to-r25-1", &status("Paused", ["Succeeded", "Pending"])).await?;
    again(&cluster, "resume").await?;
    assert_eq!(spec(&cluster).await?["paused"], false);
    cluster.says("to-r25-1", &status("Stopped", ["Succeeded", "Failed"])).await?;
    again(&cluster, "skip Webui/webui1 --reason away").await?;
    let skipped = spec(&cluster).await?["skip"].clone();
    assert_eq!(skipped.as_array().map(Vec::len), Some(1), "{skipped:#}");
    again(&cluster, "rollback --yes").await?;
    assert_eq!(spec(&cluster).await?["goal"], json!("RollBack"));
    kubectl(&cluster.sandbox, &["delete", "-n=tf", UPGRADE, "to-r25-1"]).await?.success();
    Ok(())
}
