//! The operator on a real control plane with simulated nodes, with the rights that a cluster gives it: what
//! becomes of an object, of what others do to it, and of the operator itself. What the objects say is in the
//! golden files of `operator/tests`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::time::{Duration, Instant};

use opensdn_deploy::names::operator::{NAME, NAMESPACE, USER};
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

pub(crate) const STATEFUL_SET: [&str; 2] = ["statefulset", "redis1-redis-statefulset"];
const CONFIG_MAP: [&str; 2] = ["configmap", "redis1-redis-files"];
pub(crate) const CERTIFICATES: [&str; 2] = ["secret", "redis1-secret-certificates"];
pub(crate) const BUDGET: [&str; 2] = ["pdb", "redis1-redis"];
const ACCOUNT: [&str; 2] = ["serviceaccount", "redis1-redis-service-account"];
pub(crate) const FIRST_POD: &str = "redis1-redis-statefulset-0";
pub(crate) const REDIS: [&str; 2] = ["redis.tf.tungsten.io", "redis1"];
/// Longer than until the operator looks again where something is left to do.
pub(crate) const LOOKED_AGAIN: Duration = Duration::from_secs(5);
pub(crate) const LABEL: &str = "node-role.kubernetes.io/control-plane=";

pub(crate) fn redis(images: &[&str]) -> Value {
    let containers: Vec<Value> = images
        .iter()
        .map(|name| json!({"name": name, "image": format!("registry.example.com/{name}:R24.1")}))
        .collect();
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Redis",
        "metadata": {"name": "redis1", "namespace": "tf"},
        "spec": {"serviceConfiguration": {"containers": containers}}})
}

/// Three nodes of the control plane, the operator, and a Redis that is Ready.
pub(crate) async fn running(replicas: usize) -> Result<(Sandbox, Operator), Failed> {
    let sandbox = Sandbox::builder().simulated_nodes(3).with_crds().await?;
    let operator = Operator::install(&sandbox, replicas).await?;
    kubectl(&sandbox, &["label", "nodes", "--all", LABEL]).await?.success();
    send(&sandbox, &["create"], &redis(&["redis", "stunnel"])).await?.success();
    all_ready(&sandbox).await;
    Ok((sandbox, operator))
}

/// `null` where there is none. Not by kubectl: tests ask several times a second.
pub(crate) async fn get(sandbox: &Sandbox, what: [&str; 2]) -> Value {
    let read = async || {
        let request = http::Request::get(path(what)).body(Vec::new())?;
        Ok::<Value, Failed>(match sandbox.client()?.request(request).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Value::Null,
            answer => answer?,
        })
    };
    read().await.unwrap_or_else(|error| Value::from(format!("failed to read it: {error}")))
}

fn path([kind, name]: [&str; 2]) -> String {
    let collection = match kind {
        "node" => "/api/v1/nodes".to_owned(),
        "statefulset" | "daemonset" | "deployment" => {
            format!("/apis/apps/v1/namespaces/tf/{kind}s")
        }
        "pdb" => "/apis/policy/v1/namespaces/tf/poddisruptionbudgets".to_owned(),
        kind => match kind.split_once('.') {
            Some((plural, group)) => format!("/apis/{group}/v1alpha1/namespaces/tf/{plural}"),
            None => format!("/api/v1/namespaces/tf/{kind}s"),
        },
    };
    format!("{collection}/{name}")
}

pub(crate) async fn change(
    sandbox: &Sandbox,
    verb: &[&str],
    what: [&str; 2],
    arguments: &[&str],
) -> Outcome {
    let all = [verb, &["-n", "tf"], &what, arguments].concat();
    kubectl(sandbox, &all).await?.success();
    Ok(())
}

/// Status and reason of a condition of the Redis.
pub(crate) async fn condition(sandbox: &Sandbox, type_: &str) -> (String, String, String) {
    let redis = get(sandbox, REDIS).await;
    let all = redis["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["type"] == type_).unwrap_or_default();
    let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

/// With one of three nodes in view it is Ready with one pod.
async fn all_ready(sandbox: &Sandbox) {
    let all = async || {
        let (status, _, message) = condition(sandbox, "Ready").await;
        status == "True" && message.contains("3 of 3 pods ready")
    };
    eventually("three members are ready", all).await;
}

pub(crate) async fn ready(sandbox: &Sandbox) {
    let is_ready = async || {
        let redis = get(sandbox, REDIS).await;
        let seen = &redis["status"]["observedGeneration"];
        condition(sandbox, "Ready").await.0 == "True" && *seen == redis["metadata"]["generation"]
    };
    eventually("the Redis is Ready", is_ready).await;
}

/// The nodes of the pods.
async fn places(sandbox: &Sandbox) -> Vec<String> {
    let pods = read(sandbox, &["pods", "-n", "tf", "-l", "tf_manager=redis"]).await;
    let pods = pods.unwrap_or_default()["items"].as_array().cloned().unwrap_or_default();
    let node = |pod: &Value| pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
    pods.iter().map(node).collect()
}

async fn replicas(sandbox: &Sandbox) -> Value {
    get(sandbox, STATEFUL_SET).await["spec"]["replicas"].clone()
}

/// What the operator has asked of the API server so far, but for its watches, its Lease, and what answers
/// nothing but that it may.
pub(crate) fn calls(sandbox: &Sandbox) -> Result<Vec<String>, Failed> {
    let of_operator = sandbox.requests_of(USER)?;
    let calls = of_operator.iter().filter(|event| {
        event["verb"] != "watch"
            && event["verb"] != "list"
            && event["objectRef"]["resource"] != "leases"
    });
    Ok(calls.map(|event| format!("{} {}", event["verb"], event["requestURI"])).collect())
}

/// What it has asked for, once it asks for nothing more.
pub(crate) async fn settled(sandbox: &Sandbox, operator: &Operator) -> Result<Vec<String>, Failed> {
    let passes = async || operator.metric(0, "opensdn_reconcile_total").await;
    let mut before = passes().await;
    loop {
        // What it has just written comes back by its watches, and has it look again.
        tokio::time::sleep(LOOKED_AGAIN).await;
        let now = passes().await;
        if now <= before {
            return calls(sandbox);
        }
        before = now;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_runs_on_each_node_and_a_pass_with_nothing_to_do_makes_no_call() -> Outcome {
    let (sandbox, operator) = running(1).await?;
    assert_eq!(replicas(&sandbox).await, 3);
    let status = get(&sandbox, REDIS).await["status"].clone();
    assert_eq!((&status["active"], &status["degraded"]), (&json!(true), &json!(false)));
    let ips: Vec<_> = status["nodes"].as_object().into_iter().flatten().collect();
    assert_eq!(ips.len(), 3, "{status}");
    for (name, node) in ips {
        let ip = node["ip"].as_str().unwrap_or_default();
        let files = get(&sandbox, CONFIG_MAP).await;
        let text = files["data"][format!("stunnel.{ip}")].as_str().unwrap_or_default();
        assert!(text.contains(&format!("accept = {ip}:6389")), "{name} {ip}: {text}");
        let secret = get(&sandbox, CERTIFICATES).await;
        assert!(secret["data"][format!("server-key-{ip}.pem")].is_string(), "{name} {ip}");
    }

    // What it has just written comes back by its watches, and has it look again.
    let passes = async || operator.metric(0, "opensdn_reconcile_total").await;
    let mut before = passes().await;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = passes().await;
        if now <= before {
            break;
        }
        before = now;
    }
    let asked = calls(&sandbox)?;
    change(&sandbox, &["label"], REDIS, &["looked-at=again"]).await?;
    change(&sandbox, &["label"], STATEFUL_SET, &["looked-at=again"]).await?;
    let looked = async || passes().await >= before + 2.0;
    eventually("it has looked at both", looked).await;
    operator.stop(0).await;
    operator.start(0)?;
    let looked = async || passes().await >= 1.0;
    eventually("it has looked at all after a restart", looked).await;
    assert_eq!(calls(&sandbox)?, asked, "calls of passes that had nothing to do");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_change_or_delete_comes_back_and_the_rest_is_left_alone() -> Outcome {
    let (sandbox, _operator) = running(1).await?;
    change(&sandbox, &["scale"], STATEFUL_SET, &["--replicas=1"]).await?;
    eventually("the members are back", async || replicas(&sandbox).await == 3).await;

    let script = async || get(&sandbox, CONFIG_MAP).await["data"]["run-redis.sh"].clone();
    let good = script().await;
    let evil = r#"{"data":{"run-redis.sh":"evil"}}"#;
    change(&sandbox, &["patch", "--type=merge", "-p", evil], CONFIG_MAP, &[]).await?;
    eventually("the script is back", async || script().await == good).await;

    let no_owner = r#"{"metadata":{"ownerReferences":null,"labels":null}}"#;
    change(&sandbox, &["patch", "--type=merge", "-p", no_owner], CONFIG_MAP, &[]).await?;
    let owner = async || get(&sandbox, CONFIG_MAP).await["metadata"]["ownerReferences"].is_array();
    eventually("the owner is back", owner).await;

    // Daemons are running with what is in it.
    let secret = async || get(&sandbox, CERTIFICATES).await;
    let data = secret().await["data"].clone();
    change(&sandbox, &["patch", "--type=merge", "-p", no_owner], CERTIFICATES, &[]).await?;
    let is_back = async || secret().await["metadata"]["labels"].is_object();
    eventually("the Secret has its labels again", is_back).await;
    assert_eq!(secret().await["data"], data, "no certificate was issued again");

    let mut uids = Vec::new();
    for what in [STATEFUL_SET, CONFIG_MAP, CERTIFICATES, BUDGET, ACCOUNT] {
        uids.push((what, get(&sandbox, what).await["metadata"]["uid"].clone()));
        change(&sandbox, &["delete", "--wait=false"], what, &[]).await?;
    }
    for (what, before) in uids {
        let is_new = async || {
            let uid = get(&sandbox, what).await["metadata"]["uid"].clone();
            uid.is_string() && uid != before
        };
        eventually(&format!("{what:?} is there again"), is_new).await;
    }
    ready(&sandbox).await;

    // What has our label and is not ours stays, as does what others add.
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-others",
        "namespace": "tf", "labels": {"app.kubernetes.io/managed-by": NAME}}});
    send(&sandbox, &["create"], &other).await?.success();
    let owner = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Redis", "name": "redis1",
        "uid": get(&sandbox, REDIS).await["metadata"]["uid"], "controller": true});
    let forged = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "forged",
        "namespace": "tf", "labels": {"app.kubernetes.io/managed-by": NAME}, "ownerReferences": [owner]}});
    send(&sandbox, &["create"], &forged).await?.success();
    change(&sandbox, &["annotate"], STATEFUL_SET, &["example.com/note=kept"]).await?;
    change(&sandbox, &["scale"], STATEFUL_SET, &["--replicas=2"]).await?;
    eventually("the members are back", async || replicas(&sandbox).await == 3).await;
    let note =
        get(&sandbox, STATEFUL_SET).await["metadata"]["annotations"]["example.com/note"].clone();
    assert_eq!(note, "kept");
    assert!(get(&sandbox, ["configmap", "of-others"]).await.is_object());
    assert!(get(&sandbox, ["configmap", "forged"]).await.is_object());
    ready(&sandbox).await;

    change(&sandbox, &["delete"], REDIS, &[]).await?;
    for what in [STATEFUL_SET, CONFIG_MAP, CERTIFICATES, BUDGET, ACCOUNT] {
        eventually(&format!("{what:?} is gone"), async || get(&sandbox, what).await.is_null())
            .await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_made_under_a_name_of_ours_is_not_touched_until_they_give_it() -> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(1).with_crds().await?;
    let _operator = Operator::install(&sandbox, 1).await?;
    kubectl(&sandbox, &["label", "nodes", "--all", LABEL]).await?.success();
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": CERTIFICATES[1], "namespace": "tf"}, "stringData": {"of": "others"}});
    send(&sandbox, &["create"], &secret).await?.success();
    send(&sandbox, &["create"], &redis(&["redis", "stunnel"])).await?.success();
    let told = async || condition(&sandbox, "Stalled").await.1 == "NotOurs";
    eventually("it says whose it is", told).await;
    let (_, _, message) = condition(&sandbox, "Stalled").await;
    let expected =
        "kubectl annotate -n tf secret/redis1-secret-certificates opensdn.io/adopt=redis1";
    assert!(message.contains(expected), "{message}");
    let secret = get(&sandbox, CERTIFICATES).await;
    assert_eq!(secret["data"].as_object().map(serde_json::Map::len), Some(1), "not written");
    assert!(secret["metadata"]["ownerReferences"].is_null(), "it would go with the Redis");
    assert!(get(&sandbox, STATEFUL_SET).await.is_null(), "pods would mount it");

    change(&sandbox, &["annotate"], CERTIFICATES, &["opensdn.io/adopt=redis1"]).await?;
    change(&sandbox, &["label"], REDIS, &["looked-at=again"]).await?;
    ready(&sandbox).await;
    let secret = get(&sandbox, CERTIFICATES).await;
    assert!(secret["metadata"]["ownerReferences"].is_array());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_follow_the_nodes_and_the_status_says_what_to_do() -> Outcome {
    let (sandbox, _operator) = running(1).await?;
    assert_eq!(get(&sandbox, BUDGET).await["spec"]["maxUnavailable"], 1);
    let unlabel = |node| ["label", "node", node, "node-role.kubernetes.io/control-plane-"];
    // The StatefulSet takes away another, the last one.
    let first = read(&sandbox, &["pod", "-n", "tf", FIRST_POD]).await?["spec"]["nodeName"].clone();
    let first = first.as_str().ok_or("the pod is on no node")?;
    kubectl(&sandbox, &unlabel(first)).await?.success();
    eventually("a member goes with its node", async || replicas(&sandbox).await == 2).await;
    let is_gone = async || get(&sandbox, BUDGET).await.is_null();
    eventually("two members have no budget", is_gone).await;
    let others: Vec<&str> =
        ["node-0", "node-1", "node-2"].into_iter().filter(|node| *node != first).collect();
    let moved = async || {
        let mut left = places(&sandbox).await;
        left.sort();
        left == others
    };
    eventually("members are on the other nodes", moved).await;
    ready(&sandbox).await;
    for node in others {
        kubectl(&sandbox, &unlabel(node)).await?.success();
        // Where both go at once the operator sees no node, and takes nothing away.
        eventually("one member is left", async || replicas(&sandbox).await == 1).await;
    }
    let told = async || condition(&sandbox, "Ready").await.1 == "NoNodes";
    eventually("it says that there is no node", told).await;
    let (_, _, message) = condition(&sandbox, "Reconciling").await;
    assert!(
        message.contains("label nodes, or set spec.commonConfiguration.nodeSelector"),
        "{message}"
    );
    assert_eq!(replicas(&sandbox).await, 1, "without a node nothing is taken away");
    kubectl(&sandbox, &["label", "nodes", "--all", LABEL]).await?.success();
    all_ready(&sandbox).await;

    // What runs, runs on while the object is wrong.
    send(&sandbox, &["replace"], &redis(&["redis"])).await?.success();
    let told = async || condition(&sandbox, "Stalled").await.1 == "ImageMissing";
    eventually("it says that an image is missing", told).await;
    let (_, _, message) = condition(&sandbox, "Stalled").await;
    assert!(message.contains("no image for stunnel: add an entry"), "{message}");
    assert_eq!(condition(&sandbox, "Available").await.0, "True");
    assert_eq!(replicas(&sandbox).await, 3);
    send(&sandbox, &["replace"], &redis(&["redis", "stunnel"])).await?.success();
    ready(&sandbox).await;

    change(&sandbox, &["annotate"], REDIS, &["opensdn.io/paused=true"]).await?;
    let told = async || condition(&sandbox, "Paused").await.0 == "True";
    eventually("it says that it is paused", told).await;
    change(&sandbox, &["scale"], STATEFUL_SET, &["--replicas=1"]).await?;
    let told = async || condition(&sandbox, "Ready").await.2.contains("1 of 3 pods ready");
    eventually("it says what has changed", told).await;
    assert_eq!(replicas(&sandbox).await, 1, "paused, it changes nothing");
    change(&sandbox, &["annotate"], REDIS, &["opensdn.io/paused-"]).await?;
    eventually("it goes on", async || replicas(&sandbox).await == 3).await;

    stops_and_starts_again(&sandbox).await
}

async fn stops_and_starts_again(sandbox: &Sandbox) -> Outcome {
    ready(sandbox).await;
    change(sandbox, &["annotate"], REDIS, &["opensdn.io/stopped=true"]).await?;
    let told = async || condition(sandbox, "Ready").await.1 == "Stopped";
    eventually("it says that it is stopped", told).await;
    assert_eq!(places(sandbox).await, Vec::<String>::new());
    assert_eq!(condition(sandbox, "Available").await.0, "False");
    assert!(get(sandbox, CONFIG_MAP).await.is_object(), "only the pods go");
    change(sandbox, &["annotate"], REDIS, &["opensdn.io/stopped-"]).await?;
    let back = async || condition(sandbox, "Ready").await.1 == "PodsReady";
    eventually("it is started again", back).await;
    assert_eq!(places(sandbox).await.len(), 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_replica_acts_and_another_takes_over() -> Outcome {
    let (sandbox, operator) = running(2).await?;
    let holder = async || {
        let lease = read(&sandbox, &["-n", NAMESPACE, "lease", NAME]).await.unwrap_or_default();
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    };
    let first = holder().await;
    let number = usize::from(first == "operator-1");
    let other = format!("operator-{}", 1 - number);
    let passes = async |number| operator.metric(number, "opensdn_reconcile_total").await;
    assert!(passes(1 - number).await < 1.0, "only who has the Lease acts");

    let begun = Instant::now();
    operator.stop(number).await;
    eventually("the other has the Lease", async || holder().await == other).await;
    // A Lease that was not released would hold for 60 s.
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    change(&sandbox, &["scale"], STATEFUL_SET, &["--replicas=1"]).await?;
    eventually("the other acts", async || replicas(&sandbox).await == 3).await;
    operator.start(number)?;
    operator.kill(1 - number);
    eventually("the first has it again", async || holder().await == first).await;
    change(&sandbox, &["delete"], BUDGET, &[]).await?;
    let is_back = async || get(&sandbox, BUDGET).await.is_object();
    eventually("the first acts again", is_back).await;
    Ok(())
}

pub(crate) const CA: [&str; 2] = ["secret", "opensdn-ca"];
pub(crate) const TRUST: [&str; 2] = ["configmap", "csr-signer-ca"];

/// The addresses whose server certificate that CA issued.
pub(crate) async fn issued_by(sandbox: &Sandbox, ca: &str) -> Result<Vec<String>, Failed> {
    let secret = get(sandbox, CERTIFICATES).await;
    let mut addresses = Vec::new();
    for (key, value) in secret["data"].as_object().into_iter().flatten() {
        let Some(address) = key.strip_prefix("server-").and_then(|key| key.strip_suffix(".crt"))
        else {
            continue;
        };
        let pem: k8s_openapi::ByteString = serde_json::from_value(value.clone())?;
        if opensdn_pki::leaf::is_issued_by(&String::from_utf8(pem.0)?, ca)? {
            addresses.push(address.to_owned());
        }
    }
    Ok(addresses)
}

pub(crate) async fn pem(sandbox: &Sandbox, key: &str) -> Result<String, Failed> {
    let value = get(sandbox, CA).await["data"][key].clone();
    let pem: k8s_openapi::ByteString = serde_json::from_value(value)?;
    Ok(String::from_utf8(pem.0)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ca_is_replaced_by_announcing_it_first_and_not_all_pods_show_it_at_once() -> Outcome {
    let (sandbox, _operator) = running(1).await?;
    let old = pem(&sandbox, "ca.crt").await?;
    assert_eq!(issued_by(&sandbox, &old).await?.len(), 3);
    let bundle = async || {
        let text = get(&sandbox, TRUST).await["data"]["ca-bundle.crt"].clone();
        text.as_str().unwrap_or_default().to_owned()
    };
    change(&sandbox, &["annotate"], CA, &["opensdn.io/rotate-ca=now"]).await?;
    let is_announced = async || bundle().await.matches("BEGIN CERTIFICATE").count() == 2;
    eventually("pods trust the next CA beside the old one", is_announced).await;
    let new = pem(&sandbox, "next.crt").await?;
    assert!(bundle().await.contains(new.trim()) && bundle().await.contains(old.trim()));
    assert_eq!(
        issued_by(&sandbox, &old).await?.len(),
        3,
        "nobody shows what some do not trust yet"
    );

    // As if ten minutes had passed.
    let long_ago = ["opensdn.io/published-at=2026-01-01T00:00:00Z", "--overwrite"];
    change(&sandbox, &["annotate"], TRUST, &long_ago).await?;
    let signs = async || pem(&sandbox, "ca.crt").await.is_ok_and(|ca| ca == new);
    eventually("the new CA signs", signs).await;
    change(&sandbox, &["label"], REDIS, &["looked-at=again"]).await?;
    ready(&sandbox).await;
    // The first has its turn three minutes after the last certificate was made.
    let (by_new, by_old) = (issued_by(&sandbox, &new).await?, issued_by(&sandbox, &old).await?);
    assert!(by_new.len() <= 1 && by_new.len() + by_old.len() == 3, "{by_new:?} {by_old:?}");
    assert!(bundle().await.contains(old.trim()), "they are trusted still");
    Ok(())
}
