//! `kubectl opensdn install` with pods on real nodes: from an empty cluster to a Ready Manager and back, and over what
//! tf-operator runs. How it is interrupted and refused is in `plugin_install`, where no pod runs; what becomes of each kind
//! of service that tf-operator has made, in `operator_take_over`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::process::{Output, Stdio};

use opensdn_deploy::names;
use opensdn_testing::development_image::DevelopmentImage;
use opensdn_testing::installer::install_crds;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::lab_operator::{REDIS_IMAGE, load_redis};
use opensdn_testing::sandbox::{Binaries, Sandbox};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::kubectl_plugin::installed;
use crate::lab_operator::{
    PODS, condition, in_time, manager_of_redis, members_answer_each_other, ready_without,
};
use crate::operator::LABEL;
use crate::operator_given_ca::{authority, secret};
use crate::operator_take_over::owner;
use crate::plugin_install::whole::everything;

/// Three nodes with the images of ours and of Redis, and kubectl with the plugin on PATH.
struct World {
    sandbox: Sandbox,
    kubectl: std::path::PathBuf,
    path: TempDir,
}

impl World {
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::with_real_nodes(3).await?;
        let lab = sandbox.lab().ok_or("the sandbox has no real nodes")?;
        for name in [names::operator::NAME, names::webhook::NAME] {
            lab.load_image(DevelopmentImage::of_ours(name)?.archive()).await?;
        }
        load_redis(&sandbox).await?;
        kubectl(&sandbox, &["label", "nodes", "--all", "--overwrite", LABEL]).await?.success();
        let path = installed()?;
        let kubectl = Binaries::find(None).await?.program("kubectl")?;
        Ok(Self { sandbox, kubectl, path })
    }

    /// `kubectl opensdn LINE`, which ends with that code; what it says on stdout and stderr.
    async fn opensdn(&self, line: &str, code: i32) -> Result<(String, String), Failed> {
        let mut command = Command::new(&self.kubectl);
        command.arg("opensdn").args(line.split_whitespace()).env_clear();
        command.env("HOME", self.path.path()).env("PATH", self.path.path());
        command.env("KUBECONFIG", self.sandbox.kubeconfig()).stdin(Stdio::null());
        let Output { status, stdout, stderr } = command.kill_on_drop(true).output().await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&stdout), text(&stderr));
        assert_eq!(status.code(), Some(code), "{line}\nout: {out}\nerr: {err}");
        Ok((out, err))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_an_empty_cluster_to_a_ready_manager_and_back_to_the_same_objects() -> Outcome {
    let world = World::start().await?;
    let sandbox = &world.sandbox;
    let before = everything(sandbox).await?;
    world.opensdn("check --pre --probe", 0).await?;
    assert_eq!(everything(sandbox).await?, before, "a check leaves nothing behind");

    // Of the other services there is no image here that does their work.
    world.opensdn("install --yes --set policies.without=inconsistent-services", 0).await?;
    send(sandbox, &["create"], &manager_of_redis()).await?.success();
    ready_without(sandbox, &[]).await?;
    members_answer_each_other(sandbox).await?;
    let (said, _) = world.opensdn("status", 0).await?;
    assert!(said.contains("redis1"), "{said}");
    let (again, _) = world.opensdn("install --yes", 0).await?;
    assert!(again.contains("0 objects created, 0 changed"), "{again}");

    let context = kubectl(sandbox, &["config", "current-context"]).await?;
    let purge = format!("uninstall --purge --confirm {}", context.success().trim());
    world.opensdn(&purge, 0).await?;
    let same = async || everything(sandbox).await.is_ok_and(|now| now == before);
    let ended = in_time("the cluster has what it had before", same).await;
    assert_eq!(everything(sandbox).await?, before);
    ended
}

/// What the pods of Redis are: which, on which node, since when, and how often their containers have been started.
async fn pods(sandbox: &Sandbox) -> Result<Vec<Value>, Failed> {
    let found = read(sandbox, &PODS).await?;
    let found = found["items"].as_array().cloned().unwrap_or_default();
    let containers = |pod: &Value| {
        let all = pod["status"]["containerStatuses"].as_array().cloned().unwrap_or_default();
        all.iter()
            .map(|one| json!([one["state"]["running"]["startedAt"], one["restartCount"]]))
            .collect::<Vec<_>>()
    };
    let each = found.iter().map(|pod| {
        json!([
            pod["metadata"]["uid"],
            pod["spec"]["nodeName"],
            pod["status"]["startTime"],
            containers(pod)
        ])
    });
    Ok(each.collect())
}

/// tf-operator, a program that does nothing, and what it has made of a Manager with Redis.
async fn made_by_tf_operator(sandbox: &Sandbox) -> Outcome {
    install_crds(&sandbox.client()?, &opensdn_crds::all()).await?;
    kubectl(sandbox, &["create", "namespace", "tf"]).await?.success();
    let image = format!("--image={REDIS_IMAGE}");
    let create =
        ["-n", "tf", "create", "deployment", "tf-operator", &image, "--", "sleep", "infinity"];
    kubectl(sandbox, &create).await?.success();
    let bind = [
        "create",
        "clusterrolebinding",
        "tf-operator",
        "--clusterrole=cluster-admin",
        "--serviceaccount=tf:default",
    ];
    kubectl(sandbox, &bind).await?.success();
    let (ca, key) = authority("tf-operator")?;
    send(sandbox, &["create"], &secret(&ca, &key)).await?.success();

    send(sandbox, &["create"], &manager_of_redis()).await?.success();
    let manager = read(sandbox, &["managers.tf.tungsten.io", "-n=tf", "cluster1"]).await?;
    let redis = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Redis", "spec": manager["spec"]["services"]["redis"][0]["spec"],
        "metadata": {"name": "redis1", "namespace": "tf", "ownerReferences": owner(&manager)}});
    send(sandbox, &["create"], &redis).await?.success();
    let redis = read(sandbox, &["redis.tf.tungsten.io", "-n=tf", "redis1"]).await?;
    let labels = json!({"tf_manager": "redis", "redis": "redis1"});
    let metadata = |name: &str| json!({"name": name, "namespace": "tf", "labels": labels, "ownerReferences": owner(&redis)});
    let script = "exec redis-server --port 6390 --bind 0.0.0.0 --protected-mode no";
    let files = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("redis1-redis-configmap"),
        "data": {"run-redis.sh": script, "run-stunnel.sh": "exec sleep infinity"}});
    send(sandbox, &["create", "--field-manager=tf-operator"], &files).await?.success();
    let container = |name: &str| {
        json!({"name": name, "image": REDIS_IMAGE,
        "command": ["bash", format!("/etc/contrailconfigmaps/run-{name}.sh")],
        "volumeMounts": [{"name": "redis1-redis-volume", "mountPath": "/etc/contrailconfigmaps"}]})
    };
    let alone = json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": labels}}]});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata("redis1-redis-statefulset"),
        "spec": {"serviceName": "", "replicas": 3, "podManagementPolicy": "Parallel", "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {
                "hostNetwork": true, "affinity": {"podAntiAffinity": alone}, "tolerations": [{"operator": "Exists"}],
                "containers": [container("redis"), container("stunnel")], "terminationGracePeriodSeconds": 2,
                "volumes": [{"name": "redis1-redis-volume", "configMap": {"name": "redis1-redis-configmap"}}]}}}});
    send(sandbox, &["create", "--field-manager=tf-operator"], &set).await?.success();
    let ready = async || {
        let set = read(sandbox, &["-n", "tf", "statefulset", "redis1-redis-statefulset"]).await;
        set.is_ok_and(|set| set["status"]["readyReplicas"] == 3)
    };
    in_time("the pods of tf-operator run", ready).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_of_tf_operator_keep_their_start_times_until_they_are_to_be_recreated() -> Outcome {
    let world = World::start().await?;
    let sandbox = &world.sandbox;
    made_by_tf_operator(sandbox).await?;
    let before = pods(sandbox).await?;
    assert_eq!(before.len(), 3, "{before:#?}");
    let (_, said) = world.opensdn("install --adopt --yes", 0).await?;
    assert!(said.contains("Redis tf/redis1: its 3 pods stay"), "{said}");
    ready_without(sandbox, &[]).await?;
    let is_said = async || {
        let redis =
            read(sandbox, &["redis.tf.tungsten.io", "-n=tf", "redis1"]).await.unwrap_or_default();
        let conditions = redis["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "PodsAsBefore" && one["status"] == "True")
    };
    in_time("the status says whose pods they are", is_said).await?;
    world.opensdn("install --yes", 0).await?;
    assert_eq!(pods(sandbox).await?, before, "none has been started again");

    let recreate = ["-n=tf", "annotate", "redis.tf.tungsten.io/redis1", "opensdn.io/recreate=now"];
    kubectl(sandbox, &recreate).await?.success();
    let uids: Vec<String> =
        before.iter().filter_map(|pod| pod[0].as_str().map(str::to_owned)).collect();
    ready_without(sandbox, &uids).await?;
    assert_eq!(condition(sandbox, "Ready").await.0, "True");
    members_answer_each_other(sandbox).await
}
