//! A service with a volume for each of its nodes, on a real control plane with simulated nodes: what becomes of its volumes when
//! members come and go, when they are to grow or to shrink, and when the service goes. Kubernetes binds them; what a driver does when
//! one grows the test does. What is stored in one is shown in pods, in `lab_quorum::volumes`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeMap;
use std::time::Duration;

use opensdn_testing::eventually::{TIMEOUT, eventually};
use opensdn_testing::fault_proxy::{Fault, FaultProxy};
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::{Cluster, Sandbox};
use opensdn_testing::{Failed, Outcome, long_runs};
use serde_json::{Value, json};

use crate::operator::{LABEL, LOOKED_AGAIN, calls, get, settled};

pub(crate) const ZOOKEEPER: [&str; 2] = ["zookeepers.tf.tungsten.io", "zookeeper1"];
const CLASS: &str = "fast";

/// Longer than between two writes of one pass.
const QUIET: Duration = Duration::from_millis(700);

/// A StorageClass whose volumes may grow, and a volume on each of so many nodes.
pub(crate) async fn give_volumes(cluster: &Cluster, nodes: usize) -> Outcome {
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": CLASS},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true});
    send(cluster, &["create"], &class).await?.success();
    for number in 0..nodes {
        let node = format!("node-{number}");
        let there = json!([{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]);
        let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": format!("of-{node}")},
            "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": CLASS,
                "persistentVolumeReclaimPolicy": "Retain", "local": {"path": "/volume"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": there}}}});
        send(cluster, &["create"], &volume).await?.success();
    }
    Ok(())
}

pub(crate) fn zookeeper(storage: &Value) -> Value {
    let container = json!({"name": "zookeeper", "image": "registry.example.com/zookeeper:R24.1"});
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
        "metadata": {"name": "zookeeper1", "namespace": "tf"},
        "spec": {"serviceConfiguration": {"containers": [container], "storage": storage}}})
}

fn fast(size: &str) -> Value {
    json!({"class": CLASS, "size": size})
}

/// Four nodes with volumes, of which three are of the control plane, the operator, and a ZooKeeper that is Ready on these.
async fn running() -> Result<(Sandbox, Operator), Failed> {
    let sandbox = Sandbox::builder().simulated_nodes(4).with_crds().await?;
    give_volumes(&sandbox, 4).await?;
    let operator = Operator::install(&sandbox, 1).await?;
    kubectl(&sandbox, &["label", "nodes", "node-0", "node-1", "node-2", LABEL]).await?.success();
    send(&sandbox, &["create"], &zookeeper(&fast("10Gi"))).await?.success();
    ready_on(&sandbox, &["node-0", "node-1", "node-2"]).await;
    Ok((sandbox, operator))
}

/// Status, reason and message of `Ready`, once it is of the last generation.
async fn condition(sandbox: &Sandbox) -> [String; 3] {
    let zookeeper = get(sandbox, ZOOKEEPER).await;
    let all = zookeeper["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let generation = &zookeeper["metadata"]["generation"];
    let is_it = |one: &Value| one["type"] == "Ready" && one["observedGeneration"] == *generation;
    let one = all.into_iter().find(is_it).unwrap_or_default();
    ["status", "reason", "message"].map(|key| one[key].as_str().unwrap_or_default().to_owned())
}

async fn says(sandbox: &Sandbox, reason: &str, part: &str) {
    let is_said = async || {
        let [_, is, message] = condition(sandbox).await;
        is == reason && message.contains(part)
    };
    eventually(&format!("it says {reason}: {part}"), is_said).await;
}

async fn list(sandbox: &Sandbox, kind: &str) -> Vec<Value> {
    let all = read(sandbox, &[kind, "-n", "tf", "-l", "tf_manager=zookeeper"]).await;
    all.unwrap_or_default()["items"].as_array().cloned().unwrap_or_default()
}

/// The UIDs of all objects of a kind, by name.
async fn uids(sandbox: &Sandbox, kind: &str) -> BTreeMap<String, String> {
    let text =
        |one: &Value, key: &str| one["metadata"][key].as_str().unwrap_or_default().to_owned();
    list(sandbox, kind).await.iter().map(|one| (text(one, "name"), text(one, "uid"))).collect()
}

/// Those of pods, of what keeps them, and of volumes.
async fn identities(sandbox: &Sandbox) -> [BTreeMap<String, String>; 3] {
    let (pods, sets) = (uids(sandbox, "pods").await, uids(sandbox, "statefulsets").await);
    [pods, sets, uids(sandbox, "persistentvolumeclaims").await]
}

fn set_of(node: &str) -> String {
    format!("zookeeper1-zookeeper-{node}")
}

fn claim_of(node: &str) -> String {
    format!("data-{}", set_of(node))
}

/// Ready, with a pod on each of these nodes, in the volume of the node, and no StatefulSet besides.
async fn ready_on(sandbox: &Sandbox, nodes: &[&str]) {
    let sets: Vec<_> = nodes.iter().map(|node| set_of(node)).collect();
    let is_so = async || {
        let pods = list(sandbox, "pods").await;
        let homes: BTreeMap<_, _> = pods.iter().filter_map(home).collect();
        let wanted = nodes.iter().map(|node| ((*node).to_owned(), claim_of(node)));
        condition(sandbox).await[0] == "True"
            && homes == wanted.collect::<BTreeMap<_, _>>()
            && pods.len() == nodes.len()
            && uids(sandbox, "statefulsets").await.keys().eq(&sets)
    };
    eventually(&format!("ZooKeeper is Ready on {nodes:?}"), is_so).await;
}

/// Node and volume of a pod.
fn home(pod: &Value) -> Option<(String, String)> {
    let volumes = pod["spec"]["volumes"].as_array()?;
    let claim =
        volumes.iter().find_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())?;
    Some((pod["spec"]["nodeName"].as_str()?.to_owned(), claim.to_owned()))
}

/// What each volume is to have.
async fn sizes(sandbox: &Sandbox) -> Vec<String> {
    let claims = list(sandbox, "persistentvolumeclaims").await;
    let size = |claim: &Value| claim["spec"]["resources"]["requests"]["storage"].clone();
    claims.iter().map(|claim| size(claim).as_str().unwrap_or_default().to_owned()).collect()
}

/// As a driver and the kubelets do when volumes have grown.
async fn have_grown(sandbox: &Sandbox, size: &str) -> Outcome {
    for claim in uids(sandbox, "persistentvolumeclaims").await.keys() {
        let status = json!({"status": {"capacity": {"storage": size}}}).to_string();
        let patch =
            ["patch", "pvc", "-n", "tf", claim, "--subresource=status", "--type=merge", "-p"];
        kubectl(sandbox, &[&patch[..], &[status.as_str()]].concat()).await?.success();
    }
    Ok(())
}

async fn set(sandbox: &Sandbox, storage: &Value) -> Outcome {
    let patch = json!({"spec": {"serviceConfiguration": {"storage": storage}}}).to_string();
    let arguments = ["patch", "-n", "tf", ZOOKEEPER[0], ZOOKEEPER[1], "--type=merge", "-p", &patch];
    kubectl(sandbox, &arguments).await?.success();
    Ok(())
}

async fn may_grow(sandbox: &Sandbox, is: bool) -> Outcome {
    let patch = json!({ "allowVolumeExpansion": is }).to_string();
    kubectl(sandbox, &["patch", "storageclass", CLASS, "-p", &patch]).await?.success();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_stays_with_its_node_and_outlasts_pod_member_and_service() -> Outcome {
    let (sandbox, operator) = running().await?;
    let (pods, claims) =
        (uids(&sandbox, "pods").await, uids(&sandbox, "persistentvolumeclaims").await);
    assert_eq!(claims.len(), 3);
    let budget = get(&sandbox, ["pdb", "zookeeper1-zookeeper"]).await;
    let is_allowed = async || {
        get(&sandbox, ["pdb", "zookeeper1-zookeeper"]).await["status"]["disruptionsAllowed"] == 1
    };
    assert_eq!(budget["spec"]["minAvailable"], 2, "of three");
    eventually("of three StatefulSets one pod may go", is_allowed).await;

    // All at once: each comes back to its own.
    let delete = ["delete", "pods", "-n", "tf", "-l", "tf_manager=zookeeper", "--wait=false"];
    kubectl(&sandbox, &delete).await?.success();
    let are_others = async || {
        let now = uids(&sandbox, "pods").await;
        now.len() == 3 && now.iter().all(|(name, uid)| pods.get(name) != Some(uid))
    };
    eventually("all pods are made again", are_others).await;
    ready_on(&sandbox, &["node-0", "node-1", "node-2"]).await;
    let again = uids(&sandbox, "pods").await;

    // Another takes the place of the first.
    let first = format!("{}-", LABEL.trim_end_matches('='));
    kubectl(&sandbox, &["label", "nodes", "node-3", LABEL]).await?.success();
    ready_on(&sandbox, &["node-0", "node-1", "node-2", "node-3"]).await;
    kubectl(&sandbox, &["label", "nodes", "node-0", &first]).await?.success();
    ready_on(&sandbox, &["node-1", "node-2", "node-3"]).await;
    let after = uids(&sandbox, "pods").await;
    for node in ["node-1", "node-2"] {
        let pod = format!("{}-0", set_of(node));
        assert_eq!(after[&pod], again[&pod], "the pod on {node} stays");
    }
    let kept = uids(&sandbox, "persistentvolumeclaims").await;
    assert_eq!(kept[&claim_of("node-0")], claims[&claim_of("node-0")], "its volume stays");

    // It comes back to what it had.
    kubectl(&sandbox, &["label", "nodes", "node-0", LABEL]).await?.success();
    let all = ["node-0", "node-1", "node-2", "node-3"];
    ready_on(&sandbox, &all).await;
    assert_eq!(uids(&sandbox, "persistentvolumeclaims").await, kept);

    // Nothing to do is no call, after a restart either.
    let asked = settled(&sandbox, &operator).await?;
    operator.stop(0).await;
    operator.start(0)?;
    let passes = async || operator.metric(0, "opensdn_reconcile_total").await;
    eventually("it has looked after a restart", async || passes().await >= 1.0).await;
    // Nothing reports a call that is not made.
    tokio::time::sleep(LOOKED_AGAIN).await;
    assert_eq!(calls(&sandbox)?, asked, "calls of passes that had nothing to do");

    // The service goes, and comes back to the same volumes.
    kubectl(&sandbox, &["delete", "-n", "tf", ZOOKEEPER[0], ZOOKEEPER[1]]).await?.success();
    let is_gone = async || list(&sandbox, "statefulsets").await.is_empty();
    eventually("its StatefulSets go with it", is_gone).await;
    assert_eq!(uids(&sandbox, "persistentvolumeclaims").await, kept);
    send(&sandbox, &["create"], &zookeeper(&fast("10Gi"))).await?.success();
    ready_on(&sandbox, &all).await;
    assert_eq!(uids(&sandbox, "persistentvolumeclaims").await, kept);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_grow_without_a_restart_and_never_shrink() -> Outcome {
    let (sandbox, operator) = running().await?;
    let nodes = ["node-0", "node-1", "node-2"];
    let before = identities(&sandbox).await;
    set(&sandbox, &fast("20480Mi")).await?;
    says(&sandbox, "VolumesGrow", "grows from 10Gi to 20Gi: waits for its driver and the kubelet")
        .await;
    assert_eq!(sizes(&sandbox).await, ["20Gi"; 3]);
    have_grown(&sandbox, "20Gi").await?;
    ready_on(&sandbox, &nodes).await;

    // As small as before.
    set(&sandbox, &fast("10Gi")).await?;
    says(&sandbox, "Refused", "volumes never shrink. Set it to 20Gi or more").await;
    assert_eq!(sizes(&sandbox).await, ["20Gi"; 3]);

    // A class whose volumes may not grow, for now.
    may_grow(&sandbox, false).await?;
    set(&sandbox, &fast("30Gi")).await?;
    says(&sandbox, "Refused", "allowVolumeExpansion").await;
    assert_eq!(sizes(&sandbox).await, ["20Gi"; 3]);
    may_grow(&sandbox, true).await?;
    let grow = async || sizes(&sandbox).await == ["30Gi"; 3];
    eventually("they grow without another change", grow).await;
    have_grown(&sandbox, "30Gi").await?;
    ready_on(&sandbox, &nodes).await;

    // What a user has grown while the operator was away stays so.
    operator.stop(0).await;
    let patch = json!({"spec": {"resources": {"requests": {"storage": "40Gi"}}}}).to_string();
    let claim = claim_of("node-1");
    kubectl(&sandbox, &["patch", "pvc", "-n", "tf", &claim, "-p", &patch]).await?.success();
    have_grown(&sandbox, "40Gi").await?;
    operator.start(0)?;
    says(&sandbox, "Refused", "Set it to 40Gi or more").await;
    assert_eq!(sizes(&sandbox).await, ["30Gi", "40Gi", "30Gi"]);
    set(&sandbox, &fast("40Gi")).await?;
    ready_on(&sandbox, &nodes).await;
    assert_eq!(sizes(&sandbox).await, ["40Gi"; 3]);
    assert_eq!(
        identities(&sandbox).await,
        before,
        "nothing is made again, and no pod has started again"
    );
    Ok(())
}

/// The volumes grow to that size while one write of the operator fails, which is killed there. Returns how many writes it made.
async fn grow_with(
    sandbox: &Sandbox,
    size: &str,
    fault: Option<(usize, Fault)>,
) -> Result<usize, Failed> {
    let proxy = FaultProxy::start(sandbox.client()?, fault).await?;
    let kubeconfig = proxy.kubeconfig(sandbox.data_folder())?;
    let operator = Operator::start_with(sandbox, &kubeconfig, "tf")?;
    let passes = async || operator.metric(0, "opensdn_reconcile_total").await;
    eventually("it has looked at ZooKeeper", async || passes().await > 0.0).await;
    proxy.quiet_for(QUIET).await;
    assert_eq!(proxy.writes(), [], "it has nothing to do yet");
    set(sandbox, &fast(size)).await?;
    let grow = async || sizes(sandbox).await.iter().all(|one| one == size);
    unless_killed(&proxy, &operator, "all grow", grow).await?;
    have_grown(sandbox, size).await?;
    let is_ready = async || condition(sandbox).await[0] == "True";
    unless_killed(&proxy, &operator, "it is Ready", is_ready).await?;
    assert_eq!(proxy.is_broken(), fault.is_some(), "{fault:?}");
    proxy.quiet_for(QUIET).await;
    let writes = proxy.writes().len();
    operator.stop(0).await;
    Ok(writes)
}

/// Waits until it is so; where the fault takes place before, the operator is killed and started again.
pub(crate) async fn unless_killed(
    proxy: &FaultProxy,
    operator: &Operator,
    what: &str,
    is_so: impl AsyncFn() -> bool,
) -> Outcome {
    let until = async {
        let mut was_broken = proxy.is_broken();
        while !is_so().await {
            if !was_broken && proxy.is_broken() {
                was_broken = true;
                operator.kill(0);
                operator.start(0)?;
            }
            // What happens takes longer.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    };
    tokio::time::timeout(TIMEOUT, until).await.map_err(|_| format!("not in time: {what}"))?
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_write_of_a_growth_fails_each_volume_grows_and_nothing_is_made_again() -> Outcome
{
    let (sandbox, first) = running().await?;
    first.stop(0).await;
    let before = identities(&sandbox).await;
    let writes = grow_with(&sandbox, "11Gi", None).await?;
    // Three volumes, and what the status says meanwhile and in the end.
    assert!((5..20).contains(&writes), "{writes}");
    // The last says that all is well again: nothing is awaited behind it.
    let writes = writes - 1;
    let numbers = long_runs::every(2, (0..writes).collect());
    let all = long_runs::pairs(numbers, [Fault::LoseRequest, Fault::LoseAnswer]);
    for (round, (number, fault)) in all.into_iter().enumerate() {
        grow_with(&sandbox, &format!("{}Gi", 12 + round), Some((number, fault))).await?;
    }
    assert_eq!(identities(&sandbox).await, before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_in_volumes_stays_there_and_what_runs_in_folders_is_given_none() -> Outcome {
    let (sandbox, _operator) = running().await?;
    let there = async || [uids(&sandbox, "pods").await, uids(&sandbox, "statefulsets").await];
    let before = there().await;
    set(&sandbox, &Value::Null).await?;
    says(&sandbox, "StorageRemoved", "as it was").await;
    assert_eq!(there().await, before);
    set(&sandbox, &json!({"class": "slow", "size": "10Gi"})).await?;
    says(&sandbox, "Refused", "set it back to fast").await;
    set(&sandbox, &json!({"class": null, "size": "10Gi"})).await?;
    ready_on(&sandbox, &["node-0", "node-1", "node-2"]).await;
    assert_eq!(there().await, before);

    kubectl(&sandbox, &["delete", "-n", "tf", ZOOKEEPER[0], ZOOKEEPER[1]]).await?.success();
    let is_gone = async || list(&sandbox, "pods").await.is_empty();
    eventually("its pods are gone", is_gone).await;
    send(&sandbox, &["create"], &zookeeper(&Value::Null)).await?.success();
    let is_ready = async || condition(&sandbox).await[0] == "True";
    eventually("it is Ready in folders", is_ready).await;
    let before = there().await;
    set(&sandbox, &fast("10Gi")).await?;
    says(&sandbox, "StorageAdded", "Remove storage").await;
    assert_eq!(there().await, before);
    for size in ["", "0Gi", "10", "1.5Gi", "10GB"] {
        let said = send(&sandbox, &["apply"], &zookeeper(&fast(size))).await?;
        said.refused(&[
            "size must be a whole number of at most five digits with Mi, Gi or Ti, such as 100Gi",
        ]);
    }
    Ok(())
}
