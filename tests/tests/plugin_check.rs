//! `kubectl opensdn check` of a real control plane: of a good cluster, of one with something wrong, by a user with few
//! rights; and what `--probe` makes and removes, also where it is interrupted or killed. What each check makes of its
//! worlds is tested in the plugin, and pods that look at real nodes in `lab_probe`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::path::Path;
use std::process::{Child, Command, Stdio};

use opensdn_testing::eventually::eventually;
use opensdn_testing::installer::install_crds;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::{Sandbox, User};
use opensdn_testing::signal::{self, Signal};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::operator::LABEL;
use crate::plugin_status::{document, plugin};

pub(crate) fn check<'a>(report: &'a Value, id: &str) -> &'a Value {
    let mut all = report["checks"].as_array().into_iter().flatten();
    all.find(|one| one["id"] == id).unwrap_or(&Value::Null)
}

fn failed(report: &Value) -> Vec<&str> {
    let all = report["checks"].as_array().into_iter().flatten();
    all.filter(|one| one["result"] == "fail").filter_map(|one| one["id"].as_str()).collect()
}

/// Of what the user `checker` has created only reviews are there, and what was applied by a dry run: both are stored nowhere.
pub(crate) fn writes_nothing(sandbox: &Sandbox) -> Outcome {
    let mine = sandbox.requests_of("checker")?;
    let wrote = mine.iter().filter(|event| {
        let resource = event["objectRef"]["resource"].as_str().unwrap_or_default();
        !["get", "list"].contains(&event["verb"].as_str().unwrap_or_default())
            && !resource.ends_with("reviews")
            && !event["requestURI"].as_str().is_some_and(|uri| uri.contains("dryRun=All"))
    });
    assert_eq!(
        wrote.map(|event| event["requestURI"].clone()).collect::<Vec<_>>(),
        Vec::<Value>::new()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_cluster_passes_and_what_is_wrong_in_it_is_found() -> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(3).start().await?;
    kubectl(&sandbox, &["label", "nodes", "--all", LABEL]).await?.success();
    let admin = sandbox.kubeconfig_for(&User::new("checker").in_group("system:masters"))?;
    let (report, code) = document(&admin, &["check", "--pre"])?;
    assert_eq!((&report["summary"]["failed"], code), (&json!(0), 0), "{report:#}");
    for id in [
        "K001", "K002", "K003", "K004", "K005", "K007", "K008", "N101", "N102", "N105", "P202",
        "S501",
    ] {
        assert_eq!(check(&report, id)["result"], "ok", "{:#}", check(&report, id));
    }
    let probe = check(&report, "P201");
    assert!(
        probe["message"].as_str().is_some_and(|text| text.contains("needs --probe")),
        "{probe:#}"
    );
    writes_nothing(&sandbox)?;

    install_crds(&sandbox.client()?, &opensdn_crds::all()).await?;
    kubectl(&sandbox, &["create", "namespace", "tf"]).await?.success();
    kubectl(&sandbox, &["label", "namespace", "tf", "pod-security.kubernetes.io/enforce=baseline"])
        .await?
        .success();
    let manager = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager", "metadata": {"name": "cluster1", "namespace": "tf"},
        "spec": {"commonConfiguration": {"nodeSelector": {"node-role.kubernetes.io/master": ""}},
            "services": {"vrouters": [{"metadata": {"name": "v"}, "spec": {"serviceConfiguration": {}}}],
                "kubemanager": {"metadata": {"name": "k"}, "spec": {"serviceConfiguration": {"podSubnet": "10.91.0.0/16"}}}}}});
    // Before it is there by its file, and then as it is stored, with the same verdict.
    let folder = TempDir::new()?;
    let file = folder.path().join("manager.json");
    std::fs::write(&file, manager.to_string())?;
    let (planned, code) = document(&admin, &["check", "-f", &file.to_string_lossy()])?;
    assert_eq!((failed(&planned), code), (vec!["K006", "N101", "S501"], 1), "{planned:#}");
    writes_nothing(&sandbox)?;
    send(&sandbox, &["create"], &manager).await?.success();
    let (report, code) = document(&admin, &["check"])?;
    assert_eq!((failed(&report), code), (vec!["K006", "N101", "S501"], 1), "{report:#}");
    // The fix of a check is a command that puts it right.
    let fix = check(&report, "K006")["fix"].as_str().unwrap_or_default().to_owned();
    let words: Vec<&str> = fix.split(' ').skip(1).collect();
    kubectl(&sandbox, &words).await?.success();
    let fix = check(&report, "N101")["fix"].as_str().unwrap_or_default().to_owned();
    let words: Vec<&str> = fix.split(' ').skip(1).collect();
    kubectl(&sandbox, &words).await?.success();
    let (report, _) = document(&admin, &["check", "--only", "K006,N101,S501"])?;
    let results: Vec<&Value> =
        ["K006", "N101", "S501"].map(|id| &check(&report, id)["result"]).into();
    assert_eq!(results, ["ok", "ok", "fail"], "{report:#}");

    let output = plugin(&admin, &["check"])?;
    let text = String::from_utf8(output.stdout)?;
    assert_eq!(output.status.code(), Some(1));
    assert!(!text.contains('\u{1b}') && text.contains("  FAIL  S501  "), "{text}");
    let junit = plugin(&admin, &["check", "--only", "S501,K001", "-o", "junit"])?;
    let junit = String::from_utf8(junit.stdout)?;
    assert!(junit.contains(r#"tests="2" failures="1""#), "{junit}");
    assert_eq!(plugin(&admin, &["check", "--exit-zero"])?.status.code(), Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_without_rights_learns_which_are_missing_and_nothing_else_is_claimed() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
    let bob = sandbox.kubeconfig_for(&User::new("bob"))?;
    let (report, code) = document(&bob, &["check"])?;
    assert_eq!(code, 1, "{report:#}");
    for one in report["checks"].as_array().into_iter().flatten() {
        let id = one["id"].as_str().unwrap_or_default();
        let expected: &[&str] = match id {
            "K001" => &["ok"],
            "K003" => &["fail"],
            _ => &["uncertain", "skipped"],
        };
        assert!(expected.contains(&one["result"].as_str().unwrap_or_default()), "{one:#}");
    }
    let rights = check(&report, "K003")["message"].as_str().unwrap_or_default().to_owned();
    assert!(rights.contains("rights are missing: "), "{rights}");
    assert_eq!(document(&bob, &["check", "--skip", "K003"])?.1, 0);
    assert_eq!(document(&bob, &["check", "--skip", "K003", "--fail-on", "info"])?.1, 1);
    let output = plugin(&bob, &["check", "--only", "K999"])?;
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let output = plugin(&bob, &["check", "--server", "https://127.0.0.1:1"])?;
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0));
    Ok(())
}

/// The namespaces of `--probe` that are there.
pub(crate) async fn namespaces(sandbox: &Sandbox) -> Result<Vec<String>, Failed> {
    let all = read(sandbox, &["namespaces", "-l", "opensdn.io/probe"]).await?;
    let names = all["items"].as_array().into_iter().flatten();
    Ok(names.filter_map(|one| Some(one["metadata"]["name"].as_str()?.to_owned())).collect())
}

async fn appears(sandbox: &Sandbox) -> Result<String, Failed> {
    let is_there = async || namespaces(sandbox).await.is_ok_and(|names| !names.is_empty());
    eventually("a namespace of the probe is there", is_there).await;
    Ok(namespaces(sandbox).await?.pop().ok_or("it is gone again")?)
}

fn probing(kubeconfig: &Path) -> Result<(Child, TempDir), Failed> {
    let home = tempfile::tempdir()?;
    let mut command = Command::new(program("kubectl-opensdn")?);
    command.env_clear().env("HOME", home.path()).arg("--kubeconfig").arg(kubeconfig);
    command.args(["check", "--probe", "--only", "P201"]).stdout(Stdio::null());
    Ok((command.stderr(Stdio::piped()).spawn()?, home))
}

/// Pods of simulated nodes are there and write nothing, which the check must not take for a good answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_leaves_nothing_behind_and_what_a_killed_one_left_the_next_removes() -> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(3).start().await?;
    let admin = sandbox.kubeconfig_for(&User::new("checker").in_group("system:masters"))?;
    let (report, code) =
        document(&admin, &["check", "--probe", "--only", "P201", "--probe-timeout", "10s"])?;
    let ports = check(&report, "P201");
    assert_eq!((&ports["result"], code), (&json!("uncertain"), 0), "{ports:#}");
    let results = ports["nodes"].as_array().ok_or("no nodes")?;
    assert_eq!(results.len(), 3, "{ports:#}");
    assert!(results.iter().all(|one| one["result"] == "uncertain"), "{ports:#}");
    assert_eq!(namespaces(&sandbox).await?, Vec::<String>::new());

    for (signal, expected) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (mut running, _home) = probing(&admin)?;
        appears(&sandbox).await?;
        signal::send(signal, running.id())?;
        let code = running.wait()?.code();
        assert_eq!((code, namespaces(&sandbox).await?), (Some(expected), vec![]), "{signal:?}");
    }

    let (mut killed, _home) = probing(&admin)?;
    let left = appears(&sandbox).await?;
    killed.kill()?;
    killed.wait()?;
    // Another run may be at work: what is not old stays.
    let again = ["check", "--probe", "--only", "P201", "--probe-timeout", "2s"];
    document(&admin, &again)?;
    assert_eq!(namespaces(&sandbox).await?, std::slice::from_ref(&left));
    let old = ["label", "namespace", &left, "opensdn.io/probe-created-at=1000", "--overwrite"];
    kubectl(&sandbox, &old).await?.success();
    let output = plugin(&admin, &again)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("removed {left}")), "{said}");
    let is_gone = async || namespaces(&sandbox).await.is_ok_and(|names| names.is_empty());
    eventually("what the killed run left is gone", is_gone).await;
    Ok(())
}

/// One more node, and a Manager whose vrouters are to run there.
async fn node_of_vrouters(sandbox: &Sandbox, folder: &Path) -> Result<String, Failed> {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "silent",
        "labels": {"kubernetes.io/os": "linux"}}});
    let vrouter = json!({"metadata": {"name": "v"}, "spec": {"serviceConfiguration": {"containers": [
        {"name": "agent", "image": "registry.example.com/agent:1"}]}}});
    let manager = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": "m", "namespace": "default"}, "spec": {"services": {"vrouters": [vrouter]}}});
    let (node_file, file) = (folder.join("node.json"), folder.join("manager.json"));
    std::fs::write(&node_file, node.to_string())?;
    std::fs::write(&file, manager.to_string())?;
    kubectl(sandbox, &["create", "-f", &node_file.display().to_string()]).await?.success();
    Ok(file.display().to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_that_pull_images_are_made_with_pull_alone_and_are_gone_afterwards() -> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(1).start().await?;
    let admin = sandbox.kubeconfig_for(&User::new("checker").in_group("system:masters"))?;
    let folder = tempfile::tempdir()?;
    let file = node_of_vrouters(&sandbox, folder.path()).await?;
    let pods = async || -> Result<usize, Failed> {
        let all = read(&sandbox, &["pods", "-n", "default", "-l", "opensdn.io/pull-run"]).await?;
        Ok(all["items"].as_array().map_or(0, Vec::len))
    };
    let arguments = ["check", "--probe", "--only", "I801", "-f", &file, "--node", "silent"];
    let brief = [&arguments[..], &["--probe-timeout", "2s"]].concat();
    document(&admin, &brief)?;
    assert_eq!(pods().await?, 0);

    // A simulated pod runs at once, as one does whose image is there.
    let pull = [&brief[..], &["--pull"]].concat();
    let (report, code) = document(&admin, &pull)?;
    let images = check(&report, "I801");
    assert_eq!((&images["result"], code), (&json!("ok"), 0), "{images:#}");
    assert_eq!(images["nodes"][0]["message"], "1 image pulled", "{images:#}");
    assert_eq!((pods().await?, namespaces(&sandbox).await?), (0, vec![]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_make_a_probe_learns_it_and_nothing_is_made() -> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(1).start().await?;
    kubectl(
        &sandbox,
        &["create", "clusterrole", "reader", "--verb=get,list", "--resource=nodes,pods"],
    )
    .await?
    .success();
    kubectl(
        &sandbox,
        &["create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=checker"],
    )
    .await?
    .success();
    let reader = sandbox.kubeconfig_for(&User::new("checker"))?;
    let (report, _) = document(&reader, &["check", "--probe", "--only", "P201,D303"])?;
    for id in ["P201", "D303"] {
        let one = check(&report, id);
        assert_eq!(one["result"], "uncertain", "{one:#}");
        let message = one["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("you may not create namespaces, which --probe needs"),
            "{message}"
        );
    }
    writes_nothing(&sandbox)?;
    assert_eq!(namespaces(&sandbox).await?, Vec::<String>::new());
    for wrong in [&["--node", "node-9"][..], &["--selector", "a=b"]] {
        let output = plugin(&reader, &[&["check", "--probe"][..], wrong].concat())?;
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
