//! What a user wants of an upgrade is written into its spec, and nothing that another user wants is lost.

use opensdn_testing::kubectl::send;
use opensdn_testing::output::{code, text};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use super::{Cluster, status};

async fn spec(cluster: &Cluster, field: &str) -> Result<Value, Failed> {
    Ok(cluster.upgrade("to-r25-1").await?["spec"][field].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_resume_retry_and_skip_are_written_into_the_spec_where_they_fit() -> Outcome {
    let cluster = Cluster::start().await?;
    cluster.expect("apply R25.1 --yes --no-wait --pause-before web-ui", 0, &[])?;
    cluster.expect("retry", 5, &["only what has stopped"])?;
    cluster.says("to-r25-1", &status("Running", ["Running", "Pending"])).await?;
    cluster.expect("resume", 0, &["it is not paused"])?;
    cluster.expect("pause --dry-run server", 0, &["nothing was written"])?;
    assert_eq!(spec(&cluster, "paused").await?, Value::Null);
    let (answer, code) = cluster.document("pause")?;
    assert_eq!(
        (code, &answer["changed"], &answer["upgrade"]),
        (0, &json!(true), &json!("tf/to-r25-1"))
    );
    assert_eq!(spec(&cluster, "paused").await?, true);
    cluster.expect("pause to-r25-1", 0, &["paused", "upgrade status to-r25-1 --watch -n tf"])?;

    cluster.says("to-r25-1", &status("Paused", ["Succeeded", "Pending"])).await?;
    cluster.expect("resume", 0, &["it continues with the wave web-ui"])?;
    assert_eq!(spec(&cluster, "paused").await?, false);
    assert_eq!(spec(&cluster, "pauseBefore").await?, Value::Null);

    cluster.says("to-r25-1", &status("Stopped", ["Succeeded", "Failed"])).await?;
    cluster.expect("retry", 0, &["tries again"])?;
    assert_eq!(spec(&cluster, "retries").await?, 1);
    cluster.expect("skip Webui/no --reason x", 2, &["there are: Config/config1, Webui/webui1"])?;
    cluster.expect("skip Config/config1 --reason x", 5, &["nothing is left to do"])?;
    cluster.expect("skip webui/webui1 other --reason broken", 2, &["there are: to-r25-1"])?;
    cluster.expect("skip webui/webui1 to-r25-1 --reason broken", 0, &["the upgrade continues"])?;
    let skip = json!([{"step": "Webui/webui1", "reason": "broken", "requestedBy": "alice"}]);
    assert_eq!(spec(&cluster, "skip").await?, skip);
    cluster.says("to-r25-1", &status("Succeeded", ["Succeeded", "Skipped"])).await?;
    cluster.expect("pause", 5, &["is over: it is Succeeded"])?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_users_who_change_an_upgrade_at_once_neither_overwrites_the_other() -> Outcome {
    let cluster = Cluster::start().await?;
    cluster.expect("apply R25.1 --yes --no-wait", 0, &[])?;
    let names: Vec<String> = (0..6).map(|number| format!("Control/c{number}")).collect();
    let mut many = status("Running", ["Running", "Pending"]);
    many["steps"] = names
        .iter()
        .map(|id| json!({"id": id, "wave": "config", "state": "Running", "images": []}))
        .collect();
    cluster.says("to-r25-1", &many).await?;
    let all: Result<Vec<_>, Failed> = names
        .iter()
        .map(|name| Ok(cluster.command(&format!("skip {name} --reason at-once"))?.spawn()?))
        .collect();
    for child in all? {
        let output = child.wait_with_output()?;
        assert_eq!(code(&output), 0, "{}", text(&output));
    }
    let skipped = spec(&cluster, "skip").await?;
    let mut skipped: Vec<_> =
        skipped.as_array().into_iter().flatten().filter_map(|one| one["step"].as_str()).collect();
    skipped.sort_unstable();
    assert_eq!(skipped, names);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_way_back_is_shown_confirmed_and_asked_for_also_after_the_end() -> Outcome {
    let cluster = Cluster::start().await?;
    cluster.expect("apply R25.1 --yes --no-wait", 0, &[])?;
    cluster.expect(
        "rollback --yes",
        5,
        &["nothing of it was done", "kubectl delete upgrades.opensdn.io to-r25-1"],
    )?;
    let mut done = status("Succeeded", ["Succeeded", "Succeeded"]);
    let why = json!("Config/config1: it writes what earlier ones do not read");
    (done["waves"][0]["noWayBack"], done["steps"][0]["noWayBack"]) = (why.clone(), why);
    done["steps"][0]["ran"] = json!(true);
    cluster.says("to-r25-1", &done).await?;
    let (way, code) = cluster.document("rollback --plan")?;
    let back = json!([{"wave": "web-ui", "service": "Webui/webui1",
        "images": [{"container": "api", "from": "x/a:R25.1", "to": "x/a:R24.1"}]}]);
    assert_eq!((code, &way["services"], &way["changed"]), (0, &back, &json!(false)), "{way:#}");
    assert_eq!(way["stays"][0]["wave"], "config");
    cluster.expect(
        "rollback",
        5,
        &["needs a yes", "back Webui/webui1", "stays the wave config"],
    )?;
    cluster.expect("rollback --dry-run server", 0, &["nothing was written"])?;
    assert_eq!(spec(&cluster, "goal").await?, Value::Null);
    cluster.expect(
        "rollback --yes",
        0,
        &["services that get their earlier images: 1", "--watch -n tf"],
    )?;
    assert_eq!(spec(&cluster, "goal").await?, "RollBack");
    cluster.expect("rollback --yes", 0, &["asked to go back"])?;

    done["phase"] = json!("Stopped");
    (done["steps"][1]["state"], done["steps"][1]["attempts"]) = (json!("Pending"), Value::Null);
    done["waves"][1]["state"] = json!("Pending");
    done["observedGeneration"] = json!(2);
    cluster.says("to-r25-1", &done).await?;
    cluster.expect(
        "rollback --yes",
        5,
        &["there is no way back", "it writes what earlier ones do not read"],
    )?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_is_over_does_not_go_back_while_a_newer_one_is_at_work() -> Outcome {
    let cluster = Cluster::start().await?;
    cluster.expect("apply R25.1 --yes --no-wait", 0, &[])?;
    cluster.says("to-r25-1", &status("Succeeded", ["Succeeded", "Succeeded"])).await?;
    let newer = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
        "metadata": {"name": "newer", "namespace": "tf"},
        "spec": {"manager": "cluster1", "version": "R26.1"}});
    send(&cluster.sandbox, &["create"], &newer).await?.success();
    cluster.says("newer", &status("Running", ["Running", "Pending"])).await?;
    let parts = [
        "the Upgrade newer of the same Manager is not over (it is Running), so to-r25-1 cannot go back",
        "kubectl opensdn upgrade status newer --watch -n tf",
        "kubectl opensdn upgrade rollback newer -n tf",
    ];
    cluster.expect("rollback to-r25-1 --yes", 5, &parts)?;
    cluster.expect("rollback to-r25-1 --plan", 5, &parts)?;
    assert_eq!(spec(&cluster, "goal").await?, Value::Null);
    cluster.says("newer", &status("RolledBack", ["RolledBack", "RolledBack"])).await?;
    cluster.expect("rollback to-r25-1 --yes", 0, &["services that get their earlier images: 2"])?;
    assert_eq!(spec(&cluster, "goal").await?, "RollBack");
    Ok(())
}
