//! `kubectl opensdn nested verify` and `check --nested` of a real control plane and the fake of the Config API: what is
//! said where no pod answers, that nothing is left behind, and what the operator's probe makes of real services. What each
//! answer means is tested in the plugin.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use opensdn_testing::config_api::{FakeConfigApi, Settings, Tls, WorkedExample};
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::send;
use opensdn_testing::output::text;
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::{Sandbox, User};
use opensdn_testing::signal::{self, Signal};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::plugin_check::{check, namespaces};
use crate::plugin_status::document;

/// A cluster whose pods never answer, and a cloud.
struct Cloud {
    sandbox: Sandbox,
    api: FakeConfigApi,
    folder: tempfile::TempDir,
}

impl Cloud {
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().simulated_nodes(2).start().await?;
        let api = FakeConfigApi::start(Settings::default())?;
        WorkedExample::fill(&api).map_err(|refusal| refusal.text)?;
        Ok(Self { sandbox, api, folder: tempfile::tempdir()? })
    }

    fn admin(&self) -> Result<PathBuf, Failed> {
        Ok(self.sandbox.kubeconfig_for(&User::new("checker").in_group("system:masters"))?)
    }

    fn command(&self, kubeconfig: &Path, more: &[&str]) -> Result<Command, Failed> {
        let mut command = Command::new(program("kubectl-opensdn")?);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("NO_PROXY", "127.0.0.1,localhost")
            .env("OPENSDN_CONFIG_API", self.api.url())
            .env("OS_AUTH_URL", self.api.keystone_url())
            .env("OS_USERNAME", "admin")
            .env("OS_PASSWORD", "contrail123")
            .env("OS_PROJECT_NAME", "admin")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["nested", "verify", "--cluster-name", "k8s-a"])
            .args(["--cluster-network", "admin:k8s-vms", "--config-nodes", "192.168.1.100"])
            .args(["--service-addresses", "10.10.10.0/24"])
            .args(more);
        Ok(command)
    }

    fn verify(&self, kubeconfig: &Path, more: &[&str]) -> Result<Output, Failed> {
        Ok(self.command(kubeconfig, more)?.output()?)
    }
}

fn read(output: &Output) -> Result<Value, Failed> {
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", text(output)).into())
}

/// What was found of these parts.
fn of<'a>(answer: &'a Value, part: &'a str) -> impl Iterator<Item = &'a Value> {
    let all = answer["results"].as_array().into_iter().flatten();
    all.filter(move |one| one["part"] == part)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_pod_answers_nothing_of_nodes_passes_the_time_is_bounded_and_nothing_is_left()
-> Outcome {
    let cloud = Cloud::start().await?;
    let admin = cloud.admin()?;
    let before = cloud.api.entries();
    // Not part of the time: it may have to be built.
    program("kubectl-opensdn")?;
    let started = Instant::now();
    let output = cloud.verify(&admin, &["--probe-timeout", "4s", "-o", "json"])?;
    // Three questions, and the removal.
    assert!(started.elapsed() < Duration::from_secs(100), "{:?}", started.elapsed());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let answer = read(&output)?;
    let schema = cloud_schema()?;
    let validator = jsonschema::validator_for(&schema)?;
    assert!(validator.is_valid(&answer), "{answer:#}");
    let vrouter = of(&answer, "cloud").find(|one| one["code"] == "OSDN3090");
    let vrouter = vrouter.ok_or("the row of the vrouters is not judged")?;
    assert_eq!(vrouter["result"], "fail", "nothing was applied: {vrouter:#}");
    let mut services = of(&answer, "services");
    assert!(services.all(|one| one["result"] == "uncertain"
        && one["nodes"].as_array().is_some_and(|all| all.len() == 2)));
    assert!(
        of(&answer, "node-files")
            .chain(of(&answer, "pods"))
            .all(|one| one["result"] == "uncertain"),
        "{answer:#}"
    );
    assert!(
        of(&answer, "workloads").all(|one| one["result"] == "fail" && one["code"] == "OSDN3082"),
        "{answer:#}"
    );
    assert_eq!(namespaces(&cloud.sandbox).await?, Vec::<String>::new());
    assert_eq!(cloud.api.entries(), before, "nothing is written into the cloud");
    assert!(!text(&output).contains("contrail123"));

    let without = cloud.verify(&admin, &["--probe-timeout", "2s", "--no-pods", "--exit-zero"])?;
    assert_eq!(without.status.code(), Some(0), "{}", text(&without));
    assert!(text(&without).contains("left out by --no-pods"), "{}", text(&without));
    Ok(())
}

fn cloud_schema() -> Result<Value, Failed> {
    let mut explain = Command::new(program("kubectl-opensdn")?);
    let schema =
        explain.env_clear().args(["explain", "--schema", "NestedVerification"]).output()?;
    Ok(serde_json::from_slice(&schema.stdout)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_verification_leaves_nothing_behind() -> Outcome {
    let cloud = Cloud::start().await?;
    let admin = cloud.admin()?;
    let mut command = cloud.command(&admin, &[])?;
    let mut running: Child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let sandbox = &cloud.sandbox;
    let is_there = async || namespaces(sandbox).await.is_ok_and(|names| !names.is_empty());
    eventually("a namespace of the verification is there", is_there).await;
    signal::send(Signal::INT, running.id())?;
    let code = running.wait()?.code();
    assert_eq!((code, namespaces(sandbox).await?), (Some(130), vec![]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_make_no_pods_learns_it_and_the_cloud_and_the_workloads_are_judged_all_the_same()
-> Outcome {
    let cloud = Cloud::start().await?;
    let reads =
        ["--verb=get,list", "--resource=nodes,pods,services,namespaces,deployments,daemonsets"];
    let arguments = [&["create", "clusterrole", "reader"][..], &reads].concat();
    opensdn_testing::kubectl::kubectl(&cloud.sandbox, &arguments).await?.success();
    let bind = ["create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=bob"];
    opensdn_testing::kubectl::kubectl(&cloud.sandbox, &bind).await?.success();
    let bob = cloud.sandbox.kubeconfig_for(&User::new("bob"))?;
    let output = cloud.verify(&bob, &["-o", "json"])?;
    let why = "you may not create namespaces, which nested verify needs";
    assert!(String::from_utf8_lossy(&output.stderr).contains(why), "{}", text(&output));
    let answer = read(&output)?;
    let mut services = of(&answer, "services").chain(of(&answer, "pods"));
    assert!(
        services.all(|one| {
            let said = one["message"].as_str().is_some_and(|said| said.contains(why));
            one["result"] == "uncertain" && said
        }),
        "{answer:#}"
    );
    assert!(of(&answer, "workloads").all(|one| one["result"] == "fail"), "{answer:#}");
    assert_eq!(namespaces(&cloud.sandbox).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_checks_of_a_nested_cluster_leave_out_those_of_a_control_plane_and_find_a_left_over_crd()
-> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(1).start().await?;
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "networkpolicies.crd.projectcalico.org"},
        "spec": {"group": "crd.projectcalico.org", "scope": "Namespaced",
            "names": {"kind": "NetworkPolicy", "plural": "networkpolicies"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    send(&sandbox, &["create"], &crd).await?.success();
    let admin = sandbox.kubeconfig_for(&User::new("checker").in_group("system:masters"))?;
    let (report, code) = document(&admin, &["check", "--nested"])?;
    let found = check(&report, "Q105");
    assert_eq!((&found["result"], code), (&json!("warn"), 0), "{report:#}");
    let message = found["message"].as_str().unwrap_or_default();
    assert!(message.contains("networkpolicies.crd.projectcalico.org"), "{message}");
    for id in ["K003", "N101", "P202", "I801"] {
        assert_eq!(check(&report, id)["result"], "skipped", "{report:#}");
    }
    assert!(
        check(&report, "Q103")["message"].as_str().is_some_and(|said| said.contains("--probe"))
    );
    let (report, _) = document(&admin, &["check"])?;
    assert_eq!(check(&report, "Q105")["result"], "skipped", "{report:#}");
    Ok(())
}

/// The operator's probe, as a pod runs it.
fn probe(wanted: &Value) -> Result<Value, Failed> {
    let mut command = Command::new(program("opensdn-operator")?);
    command.env_clear().arg("probe").arg("--root=/no-such-folder");
    let output = command.env("OPENSDN_PROBE_WANTED", wanted.to_string()).output()?;
    read(&output)
}

fn at(url: &str) -> Result<SocketAddr, Failed> {
    Ok(url.rsplit('/').next().unwrap_or_default().parse()?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_probe_knows_the_config_api_and_keystone_with_and_without_tls_and_what_is_neither()
-> Outcome {
    let tls = Tls::for_names(&["no-name-of-this-machine"])?;
    let plain = FakeConfigApi::start(Settings::default())?;
    let with_tls = FakeConfigApi::start(Settings { tls: Some(tls), ..Settings::default() })?;
    let closed = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut wanted = Vec::new();
    for api in [&plain, &with_tls] {
        wanted.push(json!({"at": at(api.url())?, "question": {"get": "/"}}));
        wanted.push(json!({"at": at(api.keystone_url())?, "question": {"get": "/v3"}}));
    }
    wanted.push(json!({"at": closed, "question": "connect"}));
    let found = probe(&json!({"format": 1, "services": wanted}))?;
    let services = found["services"].as_array().ok_or("no services")?;
    let [config, keystone, config_tls, keystone_tls, closed] = services.as_slice() else {
        return Err(format!("{found:#}").into());
    };
    for (one, key, by) in [
        (config, "links", "plain"),
        (keystone, "version", "plain"),
        (config_tls, "links", "unverifiedTls"),
        (keystone_tls, "version", "unverifiedTls"),
    ] {
        let reply = &one["reached"]["answered"];
        assert_eq!((&reply["status"], &reply["by"]), (&json!(200), &json!(by)), "{one:#}");
        let mut keys = reply["keys"].as_array().into_iter().flatten();
        assert!(keys.any(|one| one == key), "{one:#}");
    }
    assert!(closed["reached"]["no"].is_string(), "{closed:#}");
    Ok(())
}
