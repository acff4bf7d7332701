//! `nested apply --workloads` and `nested remove --workloads` on a real control plane: the cloud first and then what runs, and
//! the other way round; what is refused before anything is written.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::output::{code, text};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::plugin_nested::{Cloud, path};

/// A cloud, and the arguments that say what the cluster wants of it.
struct World {
    cloud: Cloud,
    spec: String,
    workloads: String,
}

const AGENT: [&str; 4] = ["-n", "kube-system", "daemonset", "opensdn-kubernetes-cni-agent"];
const KUBE_MANAGER: [&str; 4] = ["-n", "kube-system", "deployment", "opensdn-kube-manager"];

impl World {
    /// The network is that of the nodes.
    fn of(cloud: Cloud, network: &str) -> Result<Self, Failed> {
        let spec = cloud.spec(json!({"clusterNetwork": {"project": "admin", "name": network}}))?;
        let workloads = cloud.folder.path().join("workloads.yaml");
        let world =
            Self { cloud, spec: path(&spec).to_owned(), workloads: path(&workloads).to_owned() };
        world.print("10.10.10.1", "R25.1")?;
        Ok(world)
    }

    /// The manifest, as the documentation has it.
    fn print(&self, vrouter: &str, tag: &str) -> Outcome {
        let printed = self.cloud.run_offline(
            "admin",
            &[
                "nested",
                "manifest",
                "-f",
                &self.spec,
                "--vrouter-address",
                vrouter,
                "--api-server",
                "192.0.2.100",
                "--registry",
                "registry.example.com/opensdn",
                "--tag",
                tag,
                "--keystone-secret",
                "keystone",
            ],
        )?;
        assert_eq!(code(&printed), 0, "{}", text(&printed));
        std::fs::write(&self.workloads, &printed.stdout)?;
        Ok(())
    }

    async fn login(&self) -> Outcome {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"password": "x"},
            "metadata": {"name": "keystone", "namespace": "kube-system"}});
        send(&self.cloud.sandbox, &["create"], &secret).await?.success();
        Ok(())
    }

    /// Exit code, and all that was said.
    fn apply(&self, more: &[&str]) -> Result<(i32, String), Failed> {
        self.run(&[&["nested", "apply", "-f", &self.spec, "--yes"][..], more].concat())
    }

    fn run(&self, arguments: &[&str]) -> Result<(i32, String), Failed> {
        let workloads = ["--workloads", &self.workloads, "--keystone-secret", "keystone"];
        let is_removal = arguments.contains(&"remove");
        let more = if is_removal { &workloads[..2] } else { &workloads[..] };
        let output = self.cloud.run("admin", &[arguments, more].concat())?;
        Ok((code(&output), text(&output)))
    }

    async fn has(&self, what: [&str; 4]) -> Result<bool, Failed> {
        let get = [&["get"][..], &what, &["--ignore-not-found", "-o", "name"]].concat();
        Ok(!kubectl(&self.cloud.sandbox, &get).await?.success().is_empty())
    }

    async fn uid(&self, what: [&str; 4]) -> Result<Value, Failed> {
        Ok(read(&self.cloud.sandbox, &what).await?["metadata"]["uid"].clone())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apply_writes_the_cloud_and_starts_the_workloads_and_remove_takes_both_away() -> Outcome {
    let world = World::of(Cloud::with_simulated_nodes().await?, "vms")?;
    world.login().await?;
    let before = world.cloud.api.entries();

    let (exit, said) = world.apply(&["--dry-run=client"])?;
    assert_eq!((exit, world.cloud.puts()), (0, 0), "{said}");
    assert!(said.contains("create Deployment/kube-system/opensdn-kube-manager"), "{said}");
    assert!(!world.has(AGENT).await?, "a dry run writes nothing");

    let (exit, said) = world.apply(&[])?;
    assert_eq!(exit, 0, "{said}");
    let agent = read(&world.cloud.sandbox, &AGENT).await?;
    assert_eq!(agent["status"]["numberReady"], 2, "waited for: {said}");
    let deployment = read(&world.cloud.sandbox, &KUBE_MANAGER).await?;
    assert_eq!(deployment["status"]["availableReplicas"], 1, "waited for: {said}");
    assert_ne!(world.cloud.api.entries(), before);

    // A second run writes nothing, neither there nor here.
    world.cloud.api.forget_calls();
    let (exit, said) = world.apply(&[])?;
    assert_eq!((exit, world.cloud.puts()), (0, 0), "{said}");
    assert!(said.contains("All was in place"), "{said}");
    let now = read(&world.cloud.sandbox, &KUBE_MANAGER).await?;
    assert_eq!(now["metadata"]["resourceVersion"], deployment["metadata"]["resourceVersion"]);

    // Other images restart the pods, and are said to.
    world.print("10.10.10.1", "R25.2")?;
    let (exit, said) = world.apply(&[])?;
    let restarts = "change Deployment/kube-system/opensdn-kube-manager, which restarts its pods";
    assert!(exit == 0 && said.contains(restarts), "{exit}: {said}");

    let (exit, said) = world.run(&["nested", "remove", "--yes"])?;
    assert_eq!(exit, 0, "{said}");
    assert!(said.contains("stopped: Deployment/kube-system/opensdn-kube-manager"), "{said}");
    assert!(!world.has(KUBE_MANAGER).await? && !world.has(AGENT).await?, "{said}");
    let account = ["-n", "kube-system", "serviceaccount", "opensdn-kube-manager"];
    assert!(!world.has(account).await?, "{said}");
    assert_eq!(world.cloud.api.entries(), before);
    let (exit, said) = world.run(&["nested", "remove", "--yes"])?;
    assert!(exit == 0 && said.contains("has nothing in the cloud"), "{exit}: {said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_forbids_the_workloads_is_said_before_the_cloud_is_written() -> Outcome {
    let world = World::of(Cloud::start().await?, "k8s-vms")?;
    let sandbox = &world.cloud.sandbox;
    let refused = |part: &str, exit: i32, more: &[&str]| -> Outcome {
        let (code, said) = world.apply(more)?;
        assert!(said.contains(part), "{part}: {said}");
        assert_eq!((code, world.cloud.puts()), (exit, 0), "{said}");
        Ok(())
    };
    refused("pods need Secret keystone, and kube-system has none", 5, &[])?;
    world.login().await?;
    refused("--prune takes away what workloads use", 2, &["--prune"])?;

    world.print("10.10.10.9", "R25.1")?;
    let other = "KUBERNESTES_NESTED_VROUTER_VIP is \"10.10.10.9\", and \"10.10.10.1\" in the plan";
    refused(other, 2, &[])?;
    world.print("10.10.10.1", "R25.1")?;

    // Upstream's, under the name that it had.
    let labels = json!({"app": "km"});
    let old = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "contrail-kube-manager", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "contrail-kube-manager", "image": "x"}]}}}});
    send(sandbox, &["create"], &old).await?.success();
    let way = "kubectl -n kube-system delete deployment.apps/contrail-kube-manager";
    refused(way, 5, &[])?;
    let delete = ["-n", "kube-system", "delete", "deployment.apps/contrail-kube-manager"];
    kubectl(sandbox, &delete).await?.success();

    // Somebody's own ConfigMap of that name.
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"CONFIG_NODES": "10.9.9.9"},
        "metadata": {"name": "opensdn-kube-manager-env", "namespace": "kube-system"}});
    send(sandbox, &["create"], &map).await?.success();
    refused("--force-conflicts=ConfigMap/opensdn-kube-manager-env", 5, &[])?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kube_manager_waits_for_the_cni_agent_and_the_same_command_continues() -> Outcome {
    // Without controllers no pod gets ready.
    let world = World::of(Cloud::start().await?, "k8s-vms")?;
    world.login().await?;
    let (exit, said) = world.apply(&["--timeout", "1s"])?;
    assert_eq!(exit, 4, "{said}");
    assert!(said.contains("DaemonSet/kube-system/opensdn-kubernetes-cni-agent"), "{said}");
    assert!(world.cloud.puts() > 0, "the cloud has its part: {said}");
    assert!(world.has(AGENT).await? && !world.has(KUBE_MANAGER).await?, "{said}");
    let uid = world.uid(AGENT).await?;

    let generation = read(&world.cloud.sandbox, &AGENT).await?["metadata"]["generation"].clone();
    let status = json!({"status": {"observedGeneration": generation, "desiredNumberScheduled": 3,
        "currentNumberScheduled": 3, "updatedNumberScheduled": 3, "numberReady": 3, "numberMisscheduled": 0}});
    let status = status.to_string();
    let patch = ["--subresource=status", "--type=merge", "-p", &status];
    kubectl(&world.cloud.sandbox, &[&["patch"][..], &AGENT, &patch].concat()).await?.success();
    world.cloud.api.forget_calls();
    let (exit, said) = world.apply(&["--timeout", "1s"])?;
    assert_eq!((exit, world.cloud.puts()), (4, 0), "kube-manager's pod is waited for: {said}");
    assert!(world.has(KUBE_MANAGER).await? && world.uid(AGENT).await? == uid, "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_controller_keeps_is_neither_written_nor_deleted() -> Outcome {
    let world = World::of(Cloud::start().await?, "k8s-vms")?;
    world.login().await?;
    let owner = json!([{"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Kubemanager", "name": "km",
        "uid": "6f6c6d3e-0000-4000-8000-000000000000", "controller": true}]);
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "opensdn-kube-manager", "namespace": "kube-system", "ownerReferences": owner}});
    send(&world.cloud.sandbox, &["create"], &account).await?.success();
    let kept = "ServiceAccount/kube-system/opensdn-kube-manager is kept by Kubemanager km";
    let (exit, said) = world.apply(&[])?;
    assert!(exit == 5 && said.contains(kept) && world.cloud.puts() == 0, "{exit}: {said}");
    let (exit, said) = world.run(&["nested", "remove", "--yes"])?;
    assert!(exit == 5 && said.contains(kept), "{exit}: {said}");
    let account = ["-n", "kube-system", "serviceaccount", "opensdn-kube-manager"];
    assert!(world.has(account).await?, "{said}");
    Ok(())
}
