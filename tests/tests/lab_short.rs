//! The webhook in pods on three real nodes, as far as the gate has time for: installed as shipped, a
//! refusal, an update, a lost replica, a lost node; and the operator, with Redis on each of them, of which one
//! member is lost and then all. Deliberately not here: every other fault (`lab_webhook`, `lab_operator`, by
//! `make test-lab`).

use std::future::Future;

use opensdn_testing::kubectl::kubectl;
use opensdn_testing::lab_product::{Build, LabProduct};
use opensdn_testing::lab_under_load::LabUnderLoad;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};

use super::lab_operator::{lost_members_come_back, members_answer_each_other, running};
use super::lab_webhook::{MOST_FAILED, is_installed_as_promised};
use super::plugin_status::plugin;

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
    files_of_daemons_are_read(&sandbox).await?;
    lost_members_come_back(&sandbox).await
}

/// Of each node, by its kubelet: what a daemon has written into its folder, in the order of time.
async fn files_of_daemons_are_read(sandbox: &Sandbox) -> Outcome {
    for number in 0..3 {
        let pod = format!("redis1-redis-statefulset-{number}");
        // The nodes have no more of a zone than UTC.
        let write = format!(
            "mkdir -p /var/log/contrail/inner && echo '11/25/2026 00:00:0{number} AM [a] [SYS_ERR]: of {number}' > \
             /var/log/contrail/inner/console.log && echo x > /var/log/contrail/old.log.gz && date '+%F %T [info] now {number}' > /var/log/contrail/a.log && echo 'Nov 25 00:00:00 undated' > /var/log/contrail/b.log"
        );
        let exec = ["exec", "-n=tf", &pod, "-c=redis", "--", "sh", "-c", &write];
        kubectl(sandbox, &exec).await?.success();
    }
    let read = |more: &[&str]| -> Result<Vec<String>, Failed> {
        let output =
            plugin(&sandbox.kubeconfig(), &[&["logs", "redis", "--files"], more].concat())?;
        let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        assert_eq!(output.status.code(), Some(0), "{out}{err}");
        Ok(out.lines().map(str::to_owned).collect())
    };
    let all = read(&["--tail", "5", "--level", "error"])?;
    let all: Vec<_> = all.into_iter().filter(|line| !line.contains("undated")).collect();
    let expected = [0, 1, 2].map(|number| {
        format!("inner/console.log  2026-11-25T00:00:0{number}.000Z  11/25/2026 00:00:0{number} AM [a] [SYS_ERR]: of {number}")
    });
    assert_eq!(all.len(), 3, "{all:#?}");
    assert!(all.iter().zip(&expected).all(|(line, end)| line.ends_with(end)), "{all:#?}");
    // By the time that lines say, though all files were changed just now.
    let recent = read(&["--since", "10m"])?;
    let of = |text: &str| recent.iter().filter(|line| line.contains(text)).count();
    assert_eq!((of("[info] now "), of("undated"), recent.len()), (3, 3, 6), "{recent:#?}");
    let folder = tempfile::tempdir()?;
    let archive = folder.path().join("a.tar.gz");
    let bundle = ["support-bundle", "--out", &archive.display().to_string()];
    let output = plugin(&sandbox.kubeconfig(), &bundle)?;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = std::process::Command::new("tar").arg("-tzf").arg(&archive).output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let files = listed.lines().filter(|line| line.ends_with("/contrail/redis/inner/console.log"));
    assert_eq!(files.count(), 3, "{listed}");
    Ok(())
}
