//! `kubectl opensdn nested` of a real control plane and the fake of the Config API: from the nodes of a cluster to rows
//! in the cloud, and back. What the Config API does, and how rows survive other writers, is tested in the crate of the
//! fake.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use http::Method;
use opensdn_testing::config_api::{FakeConfigApi, Mode, Settings, User, WorkedExample};
use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::output::{code, document, text};
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

const PASSWORD: &str = "not-to-be-seen";

/// A cluster whose nodes are virtual machines of a cloud.
pub(crate) struct Cloud {
    pub(crate) sandbox: Sandbox,
    pub(crate) api: FakeConfigApi,
    pub(crate) folder: tempfile::TempDir,
}

impl Cloud {
    pub(crate) async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().only_api_server().start().await?;
        let api = with_logins()?;
        let example = WorkedExample::fill(&api).map_err(|refusal| refusal.text)?;
        for (number, address) in example.vms.iter().enumerate() {
            let name = format!("vm-{number}");
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
            send(&sandbox, &["create"], &node).await?.success();
            let status =
                json!({"status": {"addresses": [{"type": "InternalIP", "address": address}]}});
            let status = status.to_string();
            let patch =
                ["patch", "node", &name, "--subresource=status", "--type=merge", "-p", &status];
            kubectl(&sandbox, &patch).await?.success();
        }
        Ok(Self { sandbox, api, folder: tempfile::tempdir()? })
    }

    /// With nodes on which pods get ready, and what makes them.
    pub(crate) async fn with_simulated_nodes() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().simulated_nodes(2).start().await?;
        let api = with_logins()?;
        WorkedExample::fill_for_simulated_nodes(&api).map_err(|refusal| refusal.text)?;
        Ok(Self { sandbox, api, folder: tempfile::tempdir()? })
    }

    /// As a user of the cloud, with a home of the test's.
    pub(crate) fn run(&self, user: &str, arguments: &[&str]) -> Result<Output, Failed> {
        let kubeconfig = self.sandbox.kubeconfig();
        self.run_offline(user, &[&["--kubeconfig", path(&kubeconfig)], arguments].concat())
    }

    /// The same of what asks no cluster.
    pub(crate) fn run_offline(&self, user: &str, arguments: &[&str]) -> Result<Output, Failed> {
        done(self.command(user, arguments)?)
    }

    fn command(&self, user: &str, arguments: &[&str]) -> Result<Command, Failed> {
        let mut command = Command::new(program("kubectl-opensdn")?);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("NO_PROXY", "127.0.0.1,localhost")
            .env("OPENSDN_CONFIG_API", self.api.url())
            .env("OS_AUTH_URL", self.api.keystone_url())
            .env("OS_USERNAME", user)
            .env("OS_PASSWORD", PASSWORD)
            .env("OS_PROJECT_NAME", "admin")
            .current_dir(self.folder.path())
            .args(arguments);
        Ok(command)
    }

    pub(crate) fn spec(&self, more: Value) -> Result<PathBuf, Failed> {
        let object = WorkedExample::nested_cluster(&self.api, &more);
        let path = self.folder.path().join("nested-cluster.json");
        std::fs::write(&path, object.to_string())?;
        Ok(path)
    }

    pub(crate) fn puts(&self) -> usize {
        let all = self.api.count(&Method::PUT, "/global-vrouter-config");
        all + self.api.count(&Method::PUT, "/virtual-network")
    }
}

fn done(mut command: Command) -> Result<Output, Failed> {
    let output = command.output()?;
    for stream in [&output.stdout, &output.stderr] {
        assert!(!String::from_utf8_lossy(stream).contains(PASSWORD));
    }
    Ok(output)
}

fn with_logins() -> Result<FakeConfigApi, Failed> {
    let users =
        vec![User::new("admin", PASSWORD, &["admin"]), User::new("bob", PASSWORD, &["member"])];
    FakeConfigApi::start(Settings { mode: Mode::CloudAdmin, users, ..Settings::default() })
}

pub(crate) fn path(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worked_example_is_planned_written_found_in_place_and_taken_away() -> Outcome {
    let cloud = Cloud::start().await?;
    let before = cloud.api.entries();
    let spec = cloud.spec(json!({"connectivity": "LinkLocal"}))?;
    let flags = ["-f", path(&spec), "--profile", "doc", "--naming", "doc"];

    let planned = cloud.run("admin", &[&["nested", "plan"][..], &flags].concat())?;
    let said = text(&planned);
    assert_eq!(code(&planned), 0, "{said}");
    let nine = [
        "Contrail Config       10.10.10.1  8082          192.168.1.100  8082",
        "Contrail Analytics 1  10.10.10.1  8086          192.168.1.100  8086",
        "Contrail Analytics 2  10.10.10.2  8086          192.168.1.101  8086",
        "Contrail Msg Queue    10.10.10.1  5673          192.168.1.100  5673",
        "Contrail VNC DB 1     10.10.10.1  9161          192.168.1.100  9161",
        "Contrail VNC DB 2     10.10.10.2  9161          192.168.1.101  9161",
        "Contrail VNC DB 3     10.10.10.3  9161          192.168.1.102  9161",
        "Keystone              10.10.10.4  35357         192.168.1.200  35357",
        "K8s-cni-to-agent      10.10.10.5  9091          127.0.0.1      9091",
    ];
    let rows: Vec<&str> = said.lines().skip(1).take(9).collect();
    assert_eq!(rows, nine, "{said}");
    assert!(said.contains("OSDN3039"), "who reaches the services is said before: {said}");
    assert_eq!((cloud.puts(), cloud.api.entries()), (0, before.clone()), "a plan writes nothing");

    let refused = cloud.run("admin", &[&["nested", "apply"][..], &flags].concat())?;
    assert_eq!((code(&refused), cloud.puts()), (5, 0), "not confirmed: {}", text(&refused));
    let apply = [&["nested", "apply", "--yes"][..], &flags].concat();
    let applied = cloud.run("admin", &apply)?;
    assert_eq!(code(&applied), 0, "{}", text(&applied));
    let entries = cloud.api.entries();
    let all = entries.as_array().ok_or("no list")?;
    assert_eq!(all.len(), 10, "the metadata row, and nine");
    assert_eq!(all[0], before[0]);
    let backups = std::fs::read_dir(cloud.folder.path())?.flatten();
    let backups = backups.filter(|one| one.file_name().to_string_lossy().starts_with("linklocal-"));
    assert_eq!(backups.count(), 1, "{}", text(&applied));

    cloud.api.forget_calls();
    let again = cloud.run("admin", &apply)?;
    assert_eq!((code(&again), cloud.puts()), (0, 0), "{}", text(&again));
    assert!(text(&again).contains("All was in place"), "{}", text(&again));

    let removed = cloud.run("admin", &["nested", "remove", "--yes", "-o", "json"])?;
    assert_eq!(document(&removed)?["removed"].as_array().map(Vec::len), Some(9));
    assert_eq!(cloud.api.entries(), before);
    let nothing = cloud.run("admin", &["nested", "remove", "--yes"])?;
    assert!(text(&nothing).contains("has nothing in the cloud"), "{}", text(&nothing));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_are_not_named_are_discovered_in_the_config_api() -> Outcome {
    let cloud = Cloud::start().await?;
    let flags = "nested plan --cluster-name k8s-a --cluster-network admin:k8s-vms --connectivity link-local \
         --keystone-nodes 192.168.1.200 --service-addresses 10.10.10.0/24 -o json";
    let mut arguments: Vec<&str> = flags.split_whitespace().collect();
    let refused = cloud.run("admin", &arguments)?;
    assert_eq!(code(&refused), 2, "{}", text(&refused));
    assert!(text(&refused).contains("--config-nodes missing"), "{}", text(&refused));

    arguments.push("--discover");
    let planned = cloud.run("admin", &arguments)?;
    assert_eq!(code(&planned), 0, "{}", text(&planned));
    let all = [
        ["--config-nodes", "192.168.1.100"],
        ["--analytics-nodes", "192.168.1.100,192.168.1.101"],
        ["--config-database-nodes", "192.168.1.100,192.168.1.101,192.168.1.102"],
    ];
    for flag in all {
        let said = format!("discovered: {}\n", flag.join(" "));
        assert!(text(&planned).contains(&said), "{}", text(&planned));
    }
    let discovered = document(&planned)?["plan"]["rows"].clone();

    let one = [&arguments[..], &["--config-nodes", "192.168.1.102"]].concat();
    let one = cloud.run("admin", &one)?;
    assert!(
        !text(&one).contains("discovered: --config-nodes"),
        "what is named counts: {}",
        text(&one)
    );
    assert!(text(&one).contains("discovered: --analytics-nodes"), "{}", text(&one));

    arguments.pop();
    arguments.extend(all.concat());
    let named = cloud.run("admin", &arguments)?;
    assert_eq!(document(&named)?["plan"]["rows"], discovered);
    // The message bus and ZooKeeper are with the database: one, two and four times three rows, Keystone and the vrouters.
    assert_eq!(discovered.as_array().map(Vec::len), Some(14), "{discovered}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_file_is_carried_out_only_while_the_cloud_is_as_it_was() -> Outcome {
    let cloud = Cloud::start().await?;
    let spec = cloud.spec(json!({}))?;
    let file = cloud.folder.path().join("plan.json");
    let plan = ["nested", "plan", "-f", path(&spec), "--out", path(&file), "-o", "json"];
    let planned = cloud.run("admin", &plan)?;
    assert_eq!(code(&planned), 0, "{}", text(&planned));
    assert_eq!(document(&planned)?["plan"]["rows"].as_array().map(Vec::len), Some(1));

    let before = cloud.api.entries();
    let mut changed = before.clone();
    let row = json!({"linklocal_service_name": "other", "linklocal_service_ip": "10.20.0.1",
        "linklocal_service_port": 80, "ip_fabric_service_ip": ["192.168.1.7"], "ip_fabric_service_port": 80});
    changed.as_array_mut().ok_or("no list")?.push(row);
    cloud.api.write_entries(changed).map_err(|refusal| refusal.text)?;
    let apply = ["nested", "apply", "--yes", "-f", path(&spec), "--plan", path(&file)];
    let refused = cloud.run("admin", &apply)?;
    assert_eq!((code(&refused), cloud.puts()), (5, 0), "{}", text(&refused));
    assert!(text(&refused).contains("the cloud has changed since"), "{}", text(&refused));

    cloud.api.write_entries(before).map_err(|refusal| refusal.text)?;
    let applied = cloud.run("admin", &apply)?;
    assert_eq!(code(&applied), 0, "{}", text(&applied));
    let network = cloud.api.read("virtual-network", &["default-domain", "admin", "k8s-vms"]);
    assert_eq!(network.ok_or("no network")?["fabric_snat"], true, "{}", text(&applied));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_write_the_cloud_learns_which_role_is_missing_and_nothing_is_written() -> Outcome
{
    let cloud = Cloud::start().await?;
    let spec = cloud.spec(json!({}))?;
    let before = cloud.api.entries();
    let refused = cloud.run("bob", &["nested", "apply", "--yes", "-f", path(&spec)])?;
    assert_eq!(code(&refused), 3, "{}", text(&refused));
    assert!(
        text(&refused).contains("role named admin") || text(&refused).contains("role admin"),
        "{}",
        text(&refused)
    );
    assert_eq!((cloud.puts(), cloud.api.entries()), (0, before));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_with_services_and_no_pod_is_taken_for_itself_and_after_a_removal_by_a_flag()
-> Outcome {
    let cloud = Cloud::start().await?;
    let spec = cloud.spec(json!({}))?;
    let apply = ["nested", "apply", "--yes", "-f", path(&spec)];
    let applied = cloud.run("admin", &apply)?;
    assert_eq!(code(&applied), 0, "{}", text(&applied));
    WorkedExample::annotated(&cloud.api, "loadbalancer", "k8s-a")
        .map_err(|refusal| refusal.text)?;
    let again = cloud.run("admin", &apply)?;
    assert_eq!(code(&again), 0, "{}", text(&again));
    assert!(text(&again).contains("All was in place"), "{}", text(&again));

    let removed = cloud.run("admin", &["nested", "remove", "--yes"])?;
    assert_eq!(code(&removed), 0, "{}", text(&removed));
    cloud.api.forget_calls();
    let refused = cloud.run("admin", &apply)?;
    assert_eq!((code(&refused), cloud.puts()), (5, 0), "{}", text(&refused));
    assert!(text(&refused).contains("--adopt-name"), "{}", text(&refused));
    let adopted = cloud.run("admin", &[&apply[..], &["--adopt-name"]].concat())?;
    assert_eq!(code(&adopted), 0, "{}", text(&adopted));
    Ok(())
}

/// What `kubernetes/sample_config_files/common.env.sample.nested_mode` of tf-container-builder has, with the addresses and the network
/// of the worked example.
const COMMON_ENV: &str = r#"
CONTRAIL_REGISTRY="registry.example/opensdn"
CONTRAIL_CONTAINER_TAG="R25.1"
CONFIG_NODES=192.168.1.100
ANALYTICS_NODES=192.168.1.100,192.168.1.101
CONFIGDB_NODES=192.168.1.100,192.168.1.101,192.168.1.102
AUTH_MODE='keystone'
KEYSTONE_AUTH_HOST=192.168.1.200
KEYSTONE_AUTH_ADMIN_TENANT='admin'
KEYSTONE_AUTH_ADMIN_USER='admin'
KEYSTONE_AUTH_ADMIN_PASSWORD='not-to-be-seen'
KEYSTONE_AUTH_URL_VERSION='/v3'
CLOUD_ORCHESTRATOR='kubernetes'
KUBERNETES_API_SERVER="10.0.0.10"
KUBERNETES_API_SECURE_PORT=6443
KUBERNETES_CLUSTER_NETWORK="{'domain': 'default-domain', 'project': 'admin', 'name': 'k8s-vms'}"
KUBEMANAGER_NESTED_MODE="1"
KUBERNESTES_NESTED_VROUTER_VIP="10.10.10.1"
KUBERNETES_CLUSTER_NAME="k8s-a"
KUBERNETES_POD_SUBNETS="10.32.0.0/12"
KUBERNETES_SERVICE_SUBNETS="10.96.0.0/12"
KUBERNETES_IP_FABRIC_SUBNETS="10.64.0.0/12"
KUBERNETES_PUBLIC_FIP_POOL="{}"
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_cluster_is_imported_and_by_the_commands_that_follow_its_workloads_are_stored()
-> Outcome {
    let cloud = Cloud::start().await?;
    let folder = cloud.folder.path();
    std::fs::write(folder.join("common.env"), COMMON_ENV)?;
    let import = ["nested", "import", "common.env", "--connectivity", "fabric-snat"];
    let imported = cloud.run_offline("admin", &import)?;
    assert_eq!(code(&imported), 0, "{}", text(&imported));
    let object = folder.join("nested-cluster.yaml");
    std::fs::write(&object, &imported.stdout)?;
    let crd = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/yaml/nestedclusters.opensdn.io.yaml");
    kubectl(&cloud.sandbox, &["create", "-f", crd]).await?.success();
    kubectl(&cloud.sandbox, &["create", "namespace", "tf"]).await?.success();
    let served = ["wait", "--for=condition=Established", "crd/nestedclusters.opensdn.io"];
    kubectl(&cloud.sandbox, &served).await?.success();
    kubectl(&cloud.sandbox, &["create", "-f", path(&object)]).await?.success();

    let said = String::from_utf8(imported.stderr)?;
    let command = |which: &str| -> Result<Vec<String>, Failed> {
        let line = said.lines().find(|line| line.contains(which)).ok_or_else(|| said.clone())?;
        let (_, command) = line.split_once("kubectl opensdn ").ok_or_else(|| said.clone())?;
        Ok(command.split_whitespace().map(str::to_owned).collect())
    };
    let planned = command("kubectl opensdn nested plan")?;
    let planned: Vec<&str> = planned.iter().map(String::as_str).collect();
    let planned = cloud.run("admin", &planned)?;
    assert_eq!(code(&planned), 0, "{}", text(&planned));

    let manifest = command("kubectl opensdn nested manifest")?;
    let manifest: Vec<&str> = manifest.iter().map(String::as_str).collect();
    let manifest = cloud.run_offline("admin", &manifest)?;
    assert_eq!(code(&manifest), 0, "{}", text(&manifest));
    let file = folder.join("workloads.yaml");
    std::fs::write(&file, &manifest.stdout)?;
    let stored = kubectl(&cloud.sandbox, &["create", "-f", path(&file)]).await?;
    for object in [
        "daemonset.apps/",
        "deployment.apps/opensdn-kube-manager",
        "serviceaccount/",
        "clusterrole.rbac",
    ] {
        assert!(stored.success().contains(object), "{object}: {}", stored.success());
    }
    let environment =
        ["get", "configmap", "opensdn-kube-manager-env", "-n", "kube-system", "-o", "json"];
    let environment: Value =
        serde_json::from_str(kubectl(&cloud.sandbox, &environment).await?.success())?;
    for (name, value) in [
        ("CONFIG_NODES", "192.168.1.100"),
        ("ZOOKEEPER_NODES", "192.168.1.100,192.168.1.101,192.168.1.102"),
        ("RABBITMQ_NODES", "192.168.1.100,192.168.1.101,192.168.1.102"),
        ("KUBERNETES_CLUSTER_NAME", "k8s-a"),
    ] {
        assert_eq!(environment["data"][name], value, "{name}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_goes_to_no_address_that_a_file_alone_has() -> Outcome {
    let cloud = Cloud::start().await?;
    let spec = cloud.spec(json!({"connectivity": "LinkLocal"}))?;
    let kubeconfig = cloud.sandbox.kubeconfig();
    let plan = ["--kubeconfig", path(&kubeconfig), "nested", "plan", "-f", path(&spec)];
    let run = |more: &[&str], without: &[&str]| -> Result<(i32, String), Failed> {
        let mut command = cloud.command("admin", &[&plan[..], more].concat())?;
        without.iter().for_each(|name| {
            command.env_remove(name);
        });
        let output = done(command)?;
        Ok((code(&output), text(&output)))
    };
    cloud.api.forget_calls();
    let (exit, said) = run(&[], &["OPENSDN_CONFIG_API"])?;
    let way = format!("--config-api {}", cloud.api.url());
    assert!(exit == 2 && said.contains(&way) && said.contains("login of admin"), "{exit}: {said}");
    assert!(
        cloud.api.calls().is_empty(),
        "neither Keystone nor the Config API: {:?}",
        cloud.api.calls()
    );
    // Where it is said, and where there is no login to lose.
    let (exit, said) = run(&["--config-api", cloud.api.url()], &["OPENSDN_CONFIG_API"])?;
    assert_eq!(exit, 0, "{said}");
    let (exit, said) = run(&[], &["OPENSDN_CONFIG_API", "OS_AUTH_URL"])?;
    assert!(exit == 3 && said.contains("401"), "asked without a token: {exit}: {said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_place_for_the_backup_nothing_is_written() -> Outcome {
    let cloud = Cloud::start().await?;
    let spec = cloud.spec(json!({"connectivity": "LinkLocal"}))?;
    let apply = ["nested", "apply", "--yes", "-f", path(&spec), "--backup-dir", "not-there"];
    let output = cloud.run("admin", &apply)?;
    let said = text(&output);
    assert_eq!((code(&output), cloud.puts()), (2, 0), "{said}");
    assert!(said.contains("not-there (--backup-dir)"), "{said}");
    Ok(())
}
