//! Before an upgrade: what `check --upgrade` says of a cluster as it is, and what `install` says of services that it does
//! not touch.

use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::output::{code, text};
use opensdn_testing::sandbox::User;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use super::{Cluster, status};
use crate::plugin_check::check;
use crate::plugin_status::{document, plugin};

const OPERATOR: &str = "opensdn-operator";

impl Cluster {
    fn check(&self, line: &str) -> Result<(Value, i32), Failed> {
        let words: Vec<&str> = ["check"].into_iter().chain(line.split_whitespace()).collect();
        document(&self.kubeconfig, &words)
    }

    /// A Deployment of the operator of which a pod is ready, as far as it says so.
    async fn with_operator(&self, version: &str) -> Outcome {
        let labels = json!({"app": OPERATOR});
        let image = format!("registry.local/{OPERATOR}:{version}");
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": OPERATOR, "namespace": OPERATOR},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "operator", "image": image}]}}}});
        kubectl(&self.sandbox, &["create", "namespace", OPERATOR]).await?.success();
        send(&self.sandbox, &["create"], &deployment).await?.success();
        let ready = json!({"status": {"replicas": 1, "readyReplicas": 1}}).to_string();
        let patch = ["patch", "deployment", OPERATOR, "-n", OPERATOR, "--subresource=status"];
        let patch = [&patch[..], &["--type=merge", "-p", &ready]].concat();
        kubectl(&self.sandbox, &patch).await?.success();
        Ok(())
    }
}

/// The checks with this result, by their ids.
fn with<'a>(report: &'a Value, result: &str) -> Vec<&'a str> {
    let all = report["checks"].as_array().into_iter().flatten();
    let fitting = all.filter(|one| one["category"] == "upgrade" && one["result"] == result);
    fitting.filter_map(|one| one["id"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_before_an_upgrade_says_what_the_plan_says_and_what_it_does_not_look_at() -> Outcome
{
    let cluster = Cluster::start().await?;
    let (report, exit) = cluster.check("--upgrade R25.1 --only B001,B003")?;
    let operator = check(&report, "B003");
    assert_eq!((exit, &operator["result"]), (1, &json!("fail")), "{report:#}");
    cluster.with_operator(env!("CARGO_PKG_VERSION")).await?;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m1"}});
    send(&cluster.sandbox, &["create"], &node).await?.success();

    let (report, _) = cluster.check("--upgrade R25.1")?;
    assert_eq!(with(&report, "fail"), Vec::<&str>::new(), "{report:#}");
    assert_eq!(with(&report, "warn"), ["B110", "B112", "B114"], "{report:#}");
    let (plan, _) = cluster.document("plan R25.1")?;
    let first = check(&report, "B001")["message"].as_str().unwrap_or_default().to_owned();
    assert!(first.ends_with(&format!("plan {}", plan["hash"].as_str().unwrap_or_default())));
    assert_eq!(check(&report, "K003")["result"], "skipped", "{report:#}");
    let words = ["check", "--upgrade", "R25.1", "-n", "tf", "--only", "B001"];
    let output = plugin(&cluster.kubeconfig, &words)?;
    assert_eq!(code(&output), 0, "{}", text(&output));
    assert!(
        text(&output).contains("kubectl opensdn upgrade plan R25.1 -n tf"),
        "{}",
        text(&output)
    );

    let (report, exit) = cluster.check("--upgrade R21.3")?;
    assert_eq!((exit, with(&report, "fail")), (1, vec!["B001", "B103"]), "{report:#}");
    let (report, _) = cluster.check("--upgrade R25.1 -n default")?;
    assert_eq!(with(&report, "fail"), ["B001"], "{report:#}");

    cluster.expect("apply R25.1 --yes --no-wait", 0, &[])?;
    cluster.says("to-r25-1", &status("Stopped", ["Failed", "Pending"])).await?;
    let away = json!([{"type": "Ready", "status": "False", "message": "1 of 3 pods ready",
        "lastTransitionTime": "2026-11-25T08:00:00Z"}]);
    cluster.set_status("configs.tf.tungsten.io", "config1", &json!({ "conditions": away })).await?;
    let (report, exit) = cluster.check("--upgrade R25.1")?;
    assert_eq!((exit, with(&report, "fail")), (1, vec!["B001", "B002", "B106"]), "{report:#}");
    for (id, part) in [
        ("B001", "cannot begin: OSDN5008, the Upgrade to-r25-1"),
        ("B002", "has stopped"),
        ("B106", "1 of 3 pods ready; have it ready before (--force OSDN5008 passes over it)"),
    ] {
        let message = check(&report, id)["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(part), "{id}: {message}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_read_learns_nothing_wrong_about_an_upgrade() -> Outcome {
    let cluster = Cluster::start().await?;
    let bob = cluster.sandbox.kubeconfig_for(&User::new("bob"))?;
    let (report, _) = document(&bob, &["check", "--upgrade", "R25.1"])?;
    let bad = ["fail", "warn", "ok"].map(|result| with(&report, result));
    assert!(bad.iter().all(Vec::is_empty), "{report:#}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn install_says_that_services_keep_their_images_and_which_command_upgrades_them() -> Outcome {
    let cluster = Cluster::start().await?;
    let words = ["install", "--adopt", "--dry-run", "server"];
    let output = plugin(&cluster.kubeconfig, &words)?;
    assert_eq!(code(&output), 0, "{}", text(&output));
    for part in [
        "services keep their images: install brings the operator and the webhook, and upgrade the services",
        "MANAGER      FROM   TO     UPGRADE",
        "tf/cluster1  R24.1  R25.1  kubectl opensdn upgrade plan R25.1 -n tf",
    ] {
        assert!(text(&output).contains(part), "{part:?} is missing in: {}", text(&output));
    }
    let (answer, _) = document(&cluster.kubeconfig, &words)?;
    let expected = json!([{"namespace": "tf", "name": "cluster1", "from": "R24.1", "to": "R25.1",
        "next": "kubectl opensdn upgrade plan R25.1 -n tf"}]);
    assert_eq!(answer["managers"], expected);
    Ok(())
}
