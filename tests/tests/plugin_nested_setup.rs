//! `kubectl opensdn nested registry-secret`, `insecure-registry` and `hosts` of a real API server, and of a registry that
//! wants a login; what `nested plan` finds beside the cloud. What the commands print for each state is tested beside them.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use opensdn_testing::config_api::{FakeConfigApi, Settings, WorkedExample};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::output::{code, document, text};
use opensdn_testing::programs::program;
use opensdn_testing::registry::{Registry, RegistryOptions};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::plugin_nested::path;

const PASSWORD: &str = "not-to-be-seen";

/// A cluster of two nodes with different runtimes.
struct Cluster {
    sandbox: Sandbox,
    folder: tempfile::TempDir,
}

impl Cluster {
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().only_api_server().start().await?;
        let nodes = [
            ("master1", "10.0.0.9", "containerd://2.1.0"),
            ("minion1", "10.0.0.10", "docker://19.3.1"),
        ];
        for (name, address, runtime) in nodes {
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
            send(&sandbox, &["create"], &node).await?.success();
            let status = json!({"status": {
                "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
                "nodeInfo": {"containerRuntimeVersion": runtime},
            }});
            let status = status.to_string();
            let patch =
                ["patch", "node", name, "--subresource=status", "--type=merge", "-p", &status];
            kubectl(&sandbox, &patch).await?.success();
        }
        Ok(Self { sandbox, folder: tempfile::tempdir()? })
    }

    fn command(&self, arguments: &[&str]) -> Result<Command, Failed> {
        let mut command = Command::new(program("kubectl-opensdn")?);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("NO_PROXY", "127.0.0.1,localhost")
            .current_dir(self.folder.path())
            .arg("--kubeconfig")
            .arg(self.sandbox.kubeconfig())
            .arg("nested")
            .args(arguments);
        Ok(command)
    }

    fn run(&self, arguments: &[&str]) -> Result<Output, Failed> {
        finished(self.command(arguments)?.output()?)
    }

    /// With the password on standard input.
    fn run_with_password(&self, arguments: &[&str]) -> Result<Output, Failed> {
        let mut command = self.command(arguments)?;
        let mut child = command
            .args(["--password-file", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        child.stdin.take().ok_or("no stdin")?.write_all(format!("{PASSWORD}\n").as_bytes())?;
        finished(child.wait_with_output()?)
    }

    fn file(&self, name: &str, text: &str) -> Result<PathBuf, Failed> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// kube-manager as the manifest has it, with this Secret or none.
    async fn with_workload(&self, image: &str, secret: Option<&str>) -> Outcome {
        let secrets: Vec<Value> = secret.iter().map(|name| json!({"name": name})).collect();
        let labels = json!({"app": "opensdn-kube-manager"});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "opensdn-kube-manager", "namespace": "kube-system"},
            "spec": {"selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "a", "image": image}], "imagePullSecrets": secrets},
            }},
        });
        send(&self.sandbox, &["apply", "--server-side", "--force-conflicts"], &deployment)
            .await?
            .success();
        Ok(())
    }
}

/// Whatever a command says, the password is not in it.
fn finished(output: Output) -> Result<Output, Failed> {
    assert!(!text(&output).contains(PASSWORD), "{}", text(&output));
    Ok(output)
}

fn codes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().into_iter().flatten();
    findings.filter_map(|one| one["code"].as_str()).collect()
}

const MAKE: [&str; 6] = [
    "registry-secret",
    "opensdn-registry",
    "--registry",
    "hub.example.com/contrail",
    "--username",
    "alice",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_secret_is_made_once_changed_where_it_differs_and_never_shown() -> Outcome {
    let cluster = Cluster::start().await?;
    let secret = ["secret", "opensdn-registry", "-n", "kube-system", "-o", "json"];
    let refused = cluster.run_with_password(&MAKE)?;
    assert_eq!(code(&refused), 5, "not confirmed: {}", text(&refused));
    let shown = cluster.run_with_password(&[&MAKE[..], &["--dry-run", "-o", "json"]].concat())?;
    assert_eq!((code(&shown), document(&shown)?["action"].as_str()), (0, Some("create")));
    let absent = kubectl(&cluster.sandbox, &[&["get"][..], &secret].concat()).await?;
    absent.refused(&["NotFound"]);

    let made = cluster.run_with_password(&[&MAKE[..], &["--yes"]].concat())?;
    assert_eq!(code(&made), 0, "{}", text(&made));
    let stored = read(&cluster.sandbox, &secret).await?;
    assert_eq!(stored["type"], "kubernetes.io/dockerconfigjson");
    let again = cluster.run_with_password(&[&MAKE[..], &["--yes", "-o", "json"]].concat())?;
    assert_eq!(document(&again)?["action"], "none", "{}", text(&again));
    let unchanged = read(&cluster.sandbox, &secret).await?;
    assert_eq!(unchanged["metadata"]["resourceVersion"], stored["metadata"]["resourceVersion"]);

    let file = cluster.file("password", "another")?;
    let change = ["--password-file", path(&file), "--yes", "-o", "json"];
    let changed = cluster.run(&[&MAKE[..], &change].concat())?;
    assert_eq!(document(&changed)?["action"], "change", "{}", text(&changed));

    let endless = cluster.run(&[&MAKE[..], &["--password-file", "/dev/zero"]].concat())?;
    assert_eq!(code(&endless), 2, "{}", text(&endless));
    let without = cluster.run(&MAKE)?;
    assert!(
        code(&without) == 2 && text(&without).contains("OPENSDN_REGISTRY_PASSWORD"),
        "{}",
        text(&without)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_tool_has_written_is_taken_over_only_on_request() -> Outcome {
    let cluster = Cluster::start().await?;
    let theirs = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": "opensdn-registry", "namespace": "kube-system"},
        "data": {".dockerconfigjson": "eyJhdXRocyI6e319"},
    });
    send(&cluster.sandbox, &["create"], &theirs).await?.success();
    let refused = cluster.run_with_password(&[&MAKE[..], &["--yes"]].concat())?;
    assert_eq!(code(&refused), 5, "{}", text(&refused));
    assert!(text(&refused).contains("--force-conflicts"), "{}", text(&refused));
    let taken =
        cluster.run_with_password(&[&MAKE[..], &["--yes", "--force-conflicts"]].concat())?;
    assert_eq!(code(&taken), 0, "{}", text(&taken));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_finds_a_secret_that_pods_cannot_pull_by_and_a_registry_that_refuses() -> Outcome
{
    let cluster = Cluster::start().await?;
    let login = format!("alice:{PASSWORD}");
    let registry = Registry::start(&RegistryOptions {
        login: Some(&login),
        by_token: true,
        ..RegistryOptions::default()
    })?;
    let host = registry.address();
    let image = format!("{host}/opensdn-kubernetes-kube-manager:R25.1");
    let check = ["registry-secret", "opensdn-registry", "--check", "-o", "json"];
    cluster.with_workload(&image, None).await?;
    let missing = cluster.run(&check)?;
    assert_eq!((code(&missing), codes(&document(&missing)?)), (1, vec!["OSDN3061"]));

    let make =
        ["registry-secret", "opensdn-registry", "--registry", host, "--username", "alice", "--yes"];
    let made = cluster.run_with_password(&make)?;
    assert_eq!(code(&made), 0, "{}", text(&made));
    let unnamed = cluster.run(&check)?;
    assert_eq!((code(&unnamed), codes(&document(&unnamed)?)), (1, vec!["OSDN3063"]));

    cluster.with_workload(&image, Some("opensdn-registry")).await?;
    let good = cluster.run(&check)?;
    assert_eq!((code(&good), codes(&document(&good)?)), (0, Vec::new()), "{}", text(&good));
    assert_eq!(registry.requests()?, [""; 0], "the registry is asked on request alone");

    // The registry takes the login, and has not the image.
    let online = [&check[..], &["--online", "--insecure-registry", host]].concat();
    let absent = cluster.run(&online)?;
    let report = document(&absent)?;
    assert_eq!((code(&absent), codes(&report)), (0, vec!["OSDN3064"]), "{}", text(&absent));
    assert!(report["findings"][0]["message"].to_string().contains("is not there"), "{report}");

    let wrong = cluster.file("password", "wrong")?;
    let make = [&make[..], &["--password-file", path(&wrong)]].concat();
    assert_eq!(code(&cluster.run(&make)?), 0);
    let refused = document(&cluster.run(&online)?)?;
    assert_eq!(codes(&refused), ["OSDN3064"]);
    assert!(refused["findings"][0]["message"].to_string().contains("login"), "{refused}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_nodes_runtime_gets_its_own_file_and_hosts_are_put_into_a_file_once() -> Outcome {
    let cluster = Cluster::start().await?;
    let existing = cluster.file("daemon.json", r#"{"log-driver": "journald"}"#)?;
    let insecure = ["insecure-registry", "--registry", "r.example:5010"];
    let said =
        cluster.run(&[&insecure[..], &["--existing", path(&existing), "-o", "json"]].concat())?;
    let answer = document(&said)?;
    let runtimes = answer["runtimes"].as_array().ok_or("no list")?;
    let of = |at: usize| (runtimes[at]["runtime"].as_str(), runtimes[at]["nodes"][0].as_str());
    assert_eq!(of(0), (Some("containerd 2"), Some("master1")));
    assert_eq!(of(1), (Some("docker"), Some("minion1")));
    let merged: Value = serde_json::from_str(runtimes[1]["content"].as_str().ok_or("no text")?)?;
    assert_eq!(
        merged,
        json!({"log-driver": "journald", "insecure-registries": ["r.example:5010"]})
    );
    let appended = cluster.file("daemon.json", "{}\n{}\n")?;
    let refused = cluster.run(&[&insecure[..], &["--existing", path(&appended)]].concat())?;
    assert!(code(&refused) == 2 && text(&refused).contains("OSDN3066"), "{}", text(&refused));

    let block = cluster.run(&["hosts"])?;
    let lines = text(&block);
    assert!(lines.contains("10.0.0.9 master1\n10.0.0.10 minion1\n"), "{lines}");
    let hosts = cluster.file("hosts", "127.0.0.1 localhost\n")?;
    let merge = ["hosts", "--merge", path(&hosts), "-o", "json"];
    assert_eq!(document(&cluster.run(&merge)?)?["file"]["changed"], true);
    let written = std::fs::read_to_string(&hosts)?;
    assert!(
        written.starts_with("127.0.0.1 localhost\n") && written.contains("10.0.0.10 minion1\n")
    );
    assert_eq!(document(&cluster.run(&merge)?)?["file"]["changed"], false);
    assert_eq!(std::fs::read_to_string(&hosts)?, written);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_finds_passwords_that_kube_manager_cannot_read_and_requests_are_logged_without_them()
-> Outcome {
    let cluster = Cluster::start().await?;
    let api = FakeConfigApi::start(Settings::default())?;
    WorkedExample::fill(&api).map_err(|refusal| refusal.text)?;
    let url = api.url();
    let plan = [
        "plan",
        "--cluster-name",
        "k8s-a",
        "--cluster-network",
        "admin:k8s-vms",
        "--config-nodes",
        "192.168.1.100",
        "--keystone-nodes",
        "192.168.1.200",
        "--service-addresses",
        "10.10.10.1",
        "--config-api",
        url,
        "--keystone-secret",
        "keystone",
        "--rabbitmq-secret",
        "bus",
        "--tag",
        "R2011",
        "-o",
        "json",
    ];
    let unknown = document(&cluster.run(&plan)?)?;
    let of = |report: &Value, list: &str, code: &str| {
        let all = report["plan"][list].as_array().cloned().unwrap_or_default();
        all.into_iter().filter(|one| one["code"] == code).count()
    };
    assert_eq!(
        of(&unknown, "unknown", "OSDN3073"),
        1,
        "the Secrets are not there yet: {unknown:#}"
    );

    for (name, password) in [("keystone", format!("{PASSWORD}\"")), ("bus", format!("{PASSWORD}%"))]
    {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "kube-system"},
            "stringData": {"password": password}});
        send(&cluster.sandbox, &["create"], &secret).await?.success();
    }
    let output = cluster.run(&[&["-vv"], &plan[..]].concat())?;
    let found = document(&output)?;
    assert_eq!(of(&found, "findings", "OSDN3073"), 1, "a % of RabbitMQ's: {found:#}");
    assert_eq!(of(&found, "findings", "OSDN3079"), 1, "a quotation mark of Keystone's: {found:#}");
    assert_eq!(of(&found, "findings", "OSDN3036"), 1, "images of 20.11 speak Thrift: {found:#}");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(log.contains("sent a request") && log.contains("/aaa-mode"), "{log}");
    assert!(
        !log.contains("detail=true") && log.contains("detail=..."),
        "values of queries are left out: {log}"
    );
    Ok(())
}
