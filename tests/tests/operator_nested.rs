//! A Kubemanager whose cluster is nested in the network of another, on a real control plane: what runs, in which
//! order, what restarts it, what is refused, and how the mode is changed. What the objects are is in the golden file of
//! `operator/tests`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::{LABEL, calls, change, get};

const IT: [&str; 2] = ["kubemanagers.tf.tungsten.io", "km"];
const DEPLOYMENT: [&str; 2] = ["deployment", "km-kube-manager"];
const AGENT: [&str; 2] = ["daemonset", "km-kubernetes-cni-agent"];
const STATEFUL_SET: [&str; 2] = ["statefulset", "km-kubemanager-statefulset"];
const PASSWORDS: [&str; 2] = ["secret", "km-kube-manager-passwords"];
const ALL: [[&str; 2]; 8] = [
    ["serviceaccount", "km-kubemanager-service-account"],
    ["secret", "km-kube-manager-token"],
    PASSWORDS,
    ["configmap", "km-kube-manager-env"],
    ["configmap", "km-kubernetes-cni-agent-env"],
    AGENT,
    DEPLOYMENT,
    ["secret", "keystone"],
];

/// `nested` of a Manager or a Kubemanager.
fn underlay() -> Value {
    json!({"clusterName": "k8s-a", "clusterNetwork": {"project": "admin", "name": "vms"},
        "underlay": {"config": {"addresses": ["10.10.10.1"]}, "vrouter": {"addresses": ["10.10.10.2"]}}})
}

fn settings() -> Value {
    let image = "registry.example.com/opensdn-kubernetes-kube-manager:R25.1";
    json!({"containers": [{"name": "kubemanager", "image": image}], "kubernetesAPIServer": "192.0.2.100",
        "podSubnet": "10.32.0.0/12", "serviceSubnet": "10.96.0.0/12"})
}

/// A Kubemanager without a login.
pub(crate) fn nested(name: &str) -> Value {
    let mut settings = settings();
    settings["nested"] = underlay();
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Kubemanager",
        "metadata": {"name": name, "namespace": "tf"}, "spec": {"serviceConfiguration": settings}})
}

pub(crate) fn login() -> Value {
    json!({"authParameters": {"authMode": "keystone", "keystoneSecretName": "keystone",
        "keystoneAuthParameters": {"authProtocol": "http", "address": "10.10.10.1", "adminPort": 5000}}})
}

pub(crate) fn secret(password: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keystone", "namespace": "tf"},
        "stringData": {"password": password}})
}

async fn condition(sandbox: &Sandbox, type_: &str) -> [String; 3] {
    let it = get(sandbox, IT).await;
    let all = it["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| {
        one["type"] == type_ && one["observedGeneration"] == it["metadata"]["generation"]
    });
    let one = one.unwrap_or_default();
    ["status", "reason", "message"].map(|key| one[key].as_str().unwrap_or_default().to_owned())
}

async fn until(sandbox: &Sandbox, type_: &str, reason: &str) -> String {
    eventually(reason, async || condition(sandbox, type_).await[1] == reason).await;
    condition(sandbox, type_).await[2].clone()
}

/// Has it looked at again; a Secret that the settings name is no watch's.
async fn look_again(sandbox: &Sandbox, why: &str) -> Outcome {
    let label = format!("looked-at={why}");
    change(sandbox, &["label", "--overwrite"], IT, &[&label]).await
}

async fn do_as_it_says(sandbox: &Sandbox, message: &str) -> Outcome {
    let (_, command) = message.split_once("kubectl ").ok_or(format!("no command: {message}"))?;
    kubectl(sandbox, &command.split(' ').collect::<Vec<_>>()).await?.success();
    Ok(())
}

fn writes(sandbox: &Sandbox) -> Result<Vec<String>, Failed> {
    let all = calls(sandbox)?.into_iter();
    Ok(all.filter(|call| !call.starts_with("\"get\"")).collect())
}

/// By this kube-manager is restarted.
async fn digest(sandbox: &Sandbox) -> Value {
    let template = get(sandbox, DEPLOYMENT).await["spec"]["template"].clone();
    template["metadata"]["annotations"]["opensdn.io/secrets"].clone()
}

async fn world() -> Result<(Sandbox, Operator), Failed> {
    let sandbox = Sandbox::builder().simulated_nodes(2).with_crds().await?;
    let operator = Operator::install(&sandbox, 1).await?;
    kubectl(&sandbox, &["label", "nodes", "--all", LABEL]).await?.success();
    Ok((sandbox, operator))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nested_manager_has_one_kube_manager_and_a_cni_agent_on_each_node_and_nothing_else()
-> Outcome {
    let (sandbox, operator) = world().await?;
    send(&sandbox, &["create"], &secret("50%a")).await?.success();
    let service = json!({"metadata": {"name": "km"}, "spec": {"serviceConfiguration": settings()}});
    let manager = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": "cluster1", "namespace": "tf"},
        "spec": {"commonConfiguration": login(), "nested": underlay(), "services": {"kubemanager": service}}});
    send(&sandbox, &["create"], &manager).await?.success();
    let message = until(&sandbox, "Ready", "PodsReady").await;
    assert_eq!(message, "kube-manager: 1 of 1 pods ready; CNI agent: 2 of 2 pods ready");
    let it = get(&sandbox, IT).await;
    assert_eq!(it["status"]["active"], true);
    assert_eq!(it["status"]["nodes"].as_object().map(serde_json::Map::len), Some(1), "{it:#}");
    for what in ALL.into_iter().filter(|what| what[1] != "keystone") {
        let owner = get(&sandbox, what).await["metadata"]["ownerReferences"][0]["uid"].clone();
        assert_eq!(owner, it["metadata"]["uid"], "{what:?}");
    }
    let sets = read(&sandbox, &["statefulsets,clusterroles", "-A", "-l", "tf_manager"]).await?;
    assert_eq!(sets["items"], json!([]));
    // 50%%a
    assert_eq!(
        get(&sandbox, PASSWORDS).await["data"],
        json!({"escaped-keystone-password": "NTAlJWE="})
    );
    let spec = get(&sandbox, DEPLOYMENT).await["spec"].clone();
    assert_eq!((&spec["replicas"], &spec["strategy"]["type"]), (&json!(1), &json!("Recreate")));

    let passes = async || operator.metric(0, "opensdn_reconcile_total").await;
    let (written, before) = (writes(&sandbox)?, passes().await);
    look_again(&sandbox, "again").await?;
    change(&sandbox, &["label"], DEPLOYMENT, &["looked-at=again"]).await?;
    eventually("it has looked at both", async || passes().await >= before + 2.0).await;
    operator.stop(0).await;
    operator.start(0)?;
    eventually("it has looked after a restart", async || passes().await >= 2.0).await;
    assert_eq!(writes(&sandbox)?, written, "writes of passes with nothing to do");

    what_is_in_secrets_restarts_kube_manager(&sandbox).await?;
    stops_and_is_paused(&sandbox).await?;
    change(&sandbox, &["delete"], ["managers.tf.tungsten.io", "cluster1"], &[]).await?;
    for what in ALL.into_iter().filter(|what| what[1] != "keystone") {
        eventually(&format!("{what:?} is gone"), async || get(&sandbox, what).await.is_null())
            .await;
    }
    Ok(())
}

async fn what_is_in_secrets_restarts_kube_manager(sandbox: &Sandbox) -> Outcome {
    let before = digest(sandbox).await;
    send(sandbox, &["apply"], &secret("other")).await?.success();
    look_again(sandbox, "secret").await?;
    eventually("kube-manager is restarted", async || digest(sandbox).await != before).await;
    let is_empty = async || get(sandbox, PASSWORDS).await["data"].is_null();
    eventually("what was escaped is taken away", is_empty).await;
    let before = digest(sandbox).await;
    change(sandbox, &["delete"], ["secret", "km-kube-manager-token"], &[]).await?;
    eventually("and for another token", async || digest(sandbox).await != before).await;

    send(sandbox, &["apply"], &secret("with\nlines")).await?.success();
    look_again(sandbox, "lines").await?;
    let message = until(sandbox, "Stalled", "UnusablePassword").await;
    assert!(message.contains("key password of Secret keystone"), "{message}");
    assert!(!get(sandbox, IT).await.to_string().contains("with"), "a password in the status");
    change(sandbox, &["delete"], ["secret", "keystone"], &[]).await?;
    look_again(sandbox, "missing").await?;
    let message = until(sandbox, "Stalled", "SecretMissing").await;
    assert!(message.contains("authParameters.keystoneSecretName"), "{message}");
    assert!(get(sandbox, DEPLOYMENT).await.is_object(), "what runs, runs on");
    send(sandbox, &["create"], &secret("50%a")).await?.success();
    look_again(sandbox, "there").await?;
    until(sandbox, "Ready", "PodsReady").await;
    Ok(())
}

async fn stops_and_is_paused(sandbox: &Sandbox) -> Outcome {
    change(sandbox, &["annotate"], IT, &["opensdn.io/stopped=true"]).await?;
    until(sandbox, "Ready", "Stopped").await;
    let pods = read(sandbox, &["pods", "-n", "tf", "-l", "tf_manager"]).await?;
    assert_eq!(pods["items"], json!([]));
    change(sandbox, &["annotate"], IT, &["opensdn.io/stopped-"]).await?;
    until(sandbox, "Ready", "PodsReady").await;
    change(sandbox, &["annotate"], IT, &["opensdn.io/paused=true"]).await?;
    eventually("it is paused", async || condition(sandbox, "Paused").await[0] == "True").await;
    change(sandbox, &["scale"], DEPLOYMENT, &["--replicas=0"]).await?;
    let seen = async || condition(sandbox, "Ready").await[2].contains("0 of 1 pods");
    eventually("it says what has changed", seen).await;
    assert_eq!(get(sandbox, DEPLOYMENT).await["spec"]["replicas"], 0);
    change(sandbox, &["annotate"], IT, &["opensdn.io/paused-"]).await?;
    until(sandbox, "Ready", "PodsReady").await;
    Ok(())
}

/// What a kube-manager needs that is not nested; each says that it is active.
async fn services(sandbox: &Sandbox) -> Outcome {
    for (kind, plural) in [
        ("Cassandra", "cassandras"),
        ("Zookeeper", "zookeepers"),
        ("Rabbitmq", "rabbitmqs"),
        ("Config", "configs"),
    ] {
        let object = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": kind,
            "metadata": {"name": "it", "namespace": "tf"}, "spec": {"serviceConfiguration": {}}});
        send(sandbox, &["create"], &object).await?.success();
        let active = r#"{"status":{"active":true}}"#;
        let what = [&format!("{plural}.tf.tungsten.io") as &str, "it"];
        change(
            sandbox,
            &["patch", "--subresource=status", "--type=merge", "-p", active],
            what,
            &[],
        )
        .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubemanager_changes_between_nested_and_not_only_when_the_workload_before_is_gone()
-> Outcome {
    let (sandbox, _operator) = world().await?;
    services(&sandbox).await?;
    let mut usual = nested("km");
    usual["spec"]["serviceConfiguration"]["nested"] = Value::Null;
    send(&sandbox, &["create"], &usual).await?.success();
    until(&sandbox, "Ready", "PodsReady").await;

    send(&sandbox, &["replace"], &nested("km")).await?.success();
    let message = until(&sandbox, "Stalled", "OtherModeRuns").await;
    assert!(get(&sandbox, DEPLOYMENT).await.is_null() && get(&sandbox, AGENT).await.is_null());
    assert!(get(&sandbox, STATEFUL_SET).await.is_object(), "the operator deletes no StatefulSet");
    assert_eq!(condition(&sandbox, "Available").await[0], "True", "what runs, runs on");
    do_as_it_says(&sandbox, &message).await?;
    until(&sandbox, "Ready", "PodsReady").await;
    assert!(get(&sandbox, DEPLOYMENT).await.is_object());

    send(&sandbox, &["replace"], &usual).await?.success();
    let message = until(&sandbox, "Stalled", "OtherModeRuns").await;
    assert!(
        message.ends_with("deployment/km-kube-manager daemonset/km-kubernetes-cni-agent"),
        "{message}"
    );
    assert!(get(&sandbox, STATEFUL_SET).await.is_null());
    do_as_it_says(&sandbox, &message).await?;
    until(&sandbox, "Ready", "PodsReady").await;
    assert!(get(&sandbox, STATEFUL_SET).await.is_object());

    // One that is not the operator's any more runs all the same.
    let mine = r#"{"metadata":{"labels":null}}"#;
    change(&sandbox, &["annotate"], IT, &["opensdn.io/paused=true"]).await?;
    eventually("it is paused", async || condition(&sandbox, "Paused").await[0] == "True").await;
    change(&sandbox, &["patch", "--type=merge", "-p", mine], STATEFUL_SET, &[]).await?;
    send(&sandbox, &["apply"], &nested("km")).await?.success();
    change(&sandbox, &["annotate"], IT, &["opensdn.io/paused-"]).await?;
    until(&sandbox, "Stalled", "OtherModeRuns").await;
    assert!(get(&sandbox, DEPLOYMENT).await.is_null());
    Ok(())
}

/// The operator with an API server alone: what controllers and kubelets do is done by hand.
async fn without_controllers() -> Result<(Sandbox, Operator), Failed> {
    let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
    kubectl(&sandbox, &["create", "namespace", "tf"]).await?.success();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}});
    send(&sandbox, &["create"], &node).await?.success();
    let operator = Operator::start_with(&sandbox, &sandbox.kubeconfig(), "tf")?;
    Ok((sandbox, operator))
}

/// As the controller of DaemonSets says it.
async fn agent_is_ready_on(sandbox: &Sandbox, ready: i64) -> Outcome {
    let generation = get(sandbox, AGENT).await["metadata"]["generation"].clone();
    let status = json!({"status": {"observedGeneration": generation, "desiredNumberScheduled": 2,
        "currentNumberScheduled": 2, "updatedNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": ready}});
    let status = status.to_string();
    let patch = ["patch", "--subresource=status", "--type=merge", "-p", &status];
    change(sandbox, &patch, AGENT, &[]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kube_manager_starts_when_the_cni_agent_is_ready_on_every_node_and_is_kept_after_that()
-> Outcome {
    let (sandbox, _operator) = without_controllers().await?;
    send(&sandbox, &["create"], &nested("km")).await?.success();
    let message = until(&sandbox, "Ready", "CniAgentNotReady").await;
    assert_eq!(message, "CNI agent: 0 of 1 pods ready");
    agent_is_ready_on(&sandbox, 1).await?;
    let says = async || condition(&sandbox, "Ready").await[2] == "CNI agent: 1 of 2 pods ready";
    eventually("it says how many are ready", says).await;
    assert!(get(&sandbox, DEPLOYMENT).await.is_null(), "pods would get no network on one node");
    agent_is_ready_on(&sandbox, 2).await?;
    let starts = async || get(&sandbox, DEPLOYMENT).await.is_object();
    eventually("kube-manager is started", starts).await;

    agent_is_ready_on(&sandbox, 1).await?;
    let degraded = async || condition(&sandbox, "Degraded").await[0] == "True";
    eventually("it is degraded", degraded).await;
    change(&sandbox, &["scale"], DEPLOYMENT, &["--replicas=3"]).await?;
    let replicas = async || get(&sandbox, DEPLOYMENT).await["spec"]["replicas"].clone();
    eventually("it is one again", async || replicas().await == 1).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_said_all_at_once_and_what_others_have_made_is_not_overwritten() -> Outcome
{
    let (sandbox, _operator) = without_controllers().await?;
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "km-kube-manager-env", "namespace": "tf"}, "data": {"of": "others"}});
    send(&sandbox, &["create"], &other).await?.success();
    let mut wrong = nested("km");
    wrong["spec"]["serviceConfiguration"]["podSubnet"] = json!("fd00::/64");
    wrong["spec"]["serviceConfiguration"]["cloudOrchestrator"] = json!("openshift");
    wrong["spec"]["serviceConfiguration"]["nested"]["clusterNetwork"]["name"] = json!("$(id)");
    send(&sandbox, &["create"], &wrong).await?.success();
    let message = until(&sandbox, "Stalled", "InvalidSettings").await;
    for place in ["podSubnet is", "cloudOrchestrator is", "nested.clusterNetwork.name is"] {
        assert!(message.contains(&format!("spec.serviceConfiguration.{place}")), "{message}");
    }
    assert!(get(&sandbox, ALL[0]).await.is_null(), "nothing is made of it");

    let mut stolen = nested("km");
    stolen["spec"]["serviceConfiguration"]["nested"]["underlay"]["caSecretName"] =
        json!("opensdn-ca");
    send(&sandbox, &["replace"], &stolen).await?.success();
    until(&sandbox, "Stalled", "SecretNotAllowed").await;

    send(&sandbox, &["replace"], &nested("km")).await?.success();
    let message = until(&sandbox, "Stalled", "NotOurs").await;
    assert!(message.contains("ConfigMap km-kube-manager-env was there before"), "{message}");
    let map = get(&sandbox, ["configmap", "km-kube-manager-env"]).await;
    assert_eq!(map["data"], json!({"of": "others"}));
    assert!(get(&sandbox, AGENT).await.is_null());
    do_as_it_says(&sandbox, &message).await?;
    look_again(&sandbox, "adopted").await?;
    until(&sandbox, "Ready", "CniAgentNotReady").await;
    Ok(())
}
