//! A cluster that tf-operator has made: the operator takes its objects over under their names, pods and passwords included,
//! and an Upgrade brings it to the next release. The objects are made as tf-operator makes them (its `pkg/controller`).
//! What has no owner is in `operator.rs`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use opensdn_crds::component::{COMPONENTS, Component};
use opensdn_testing::eventually::eventually_within;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::manager::service_name;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::{change, get};
use crate::operator_given_ca::{authority, secret};
use crate::operator_upgrade::{MANAGER, WHOLE, World, image, manager};
use crate::watched_pods::Pods;

const KINDS: [&str; 5] = ["Zookeeper", "Redis", "Cassandra", "Rabbitmq", "Config"];
const MASTER: &str = "node-role.kubernetes.io/master";
/// Under which name controller-runtime writes for a program of that name.
const AS_TF_OPERATOR: [&str; 2] = ["create", "--field-manager=tf-operator"];

pub(crate) fn owner(object: &Value) -> Value {
    json!([{"apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}])
}

/// What all objects of a component have.
fn metadata(component: &Value, name: String) -> Value {
    let word = word(component);
    json!({"name": name, "namespace": "tf", "ownerReferences": owner(component),
        "labels": {"tf_manager": word, (word): component["metadata"]["name"]}})
}

fn word(component: &Value) -> String {
    component["kind"].as_str().unwrap_or_default().to_lowercase()
}

/// `AddCommonVolumes` and its like.
fn volumes(component: &Value) -> Vec<(String, &'static str, Value)> {
    let (name, word) =
        (component["metadata"]["name"].as_str().unwrap_or_default(), word(component));
    let of_host = |path: String| json!({"hostPath": {"path": path, "type": ""}});
    let mut all = vec![
        (
            format!("{name}-{word}-volume"),
            "/etc/contrailconfigmaps",
            json!({"configMap": {"name": format!("{name}-{word}-configmap")}}),
        ),
        (
            "ca-certs".to_owned(),
            "/etc/ssl/certs/kubernetes",
            json!({"configMap": {"name": "csr-signer-ca"}}),
        ),
        (
            format!("{name}-secret-certificates"),
            "/etc/certificates",
            json!({"secret": {"secretName": format!("{name}-secret-certificates")}}),
        ),
        (
            "contrail-logs".to_owned(),
            "/var/log/contrail",
            of_host(format!("/var/log/contrail/{word}")),
        ),
    ];
    for (name, path) in [
        ("etc-hosts", "/etc/hosts"),
        ("etc-resolv", "/etc/resolv.conf"),
        ("etc-timezone", "/etc/timezone"),
        ("etc-localtime", "/etc/localtime"),
        ("var-crashes", "/var/crashes"),
    ] {
        all.push((name.to_owned(), path, of_host(path.to_owned())));
    }
    all
}

/// `GetSTS` and `PrepareSTS`.
fn stateful_set(component: &Value, facts: &Component) -> Value {
    let (name, word) =
        (component["metadata"]["name"].as_str().unwrap_or_default(), word(component));
    let volumes = volumes(component);
    let mounts: Vec<Value> =
        volumes.iter().map(|(name, path, _)| json!({"name": name, "mountPath": path})).collect();
    let container = |name: &&str| {
        let mut container = json!({"name": name, "image": image(name, "R24.1"), "volumeMounts": mounts,
            "command": ["bash", format!("/etc/contrailconfigmaps/run-{name}.sh")],
            "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                {"name": "NODE_TYPE", "value": "config"}, {"name": "LOG_LEVEL", "value": "SYS_DEBUG"}]});
        if *name == "redis" {
            let ping = json!(["sh", "-c", "redis-cli -h 127.0.0.1 -p 6379 ping"]);
            container["readinessProbe"] =
                json!({"failureThreshold": 3, "periodSeconds": 3, "exec": {"command": ping}});
            container["startupProbe"] =
                json!({"failureThreshold": 30, "periodSeconds": 3, "exec": {"command": ping}});
        }
        container
    };
    let containers: Vec<Value> = facts.containers.main.iter().map(container).collect();
    let mut volumes: Vec<Value> = volumes
        .into_iter()
        .map(|(name, _, mut source)| {
            source["name"] = json!(name);
            source
        })
        .collect();
    volumes.push(json!({"name": "status", "downwardAPI": {"defaultMode": 420,
        "items": [{"fieldRef": {"fieldPath": "metadata.labels"}, "path": "pod_labels"}]}}));
    let strategy = match facts.kind {
        "Config" => json!({"type": "OnDelete"}),
        _ => json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
    };
    let mut metadata = metadata(component, format!("{name}-{word}-statefulset"));
    let labels = std::mem::take(&mut metadata["labels"]);
    metadata["labels"] = labels.clone();
    let everything = |effect: &str| json!({"effect": effect, "operator": "Exists"});
    let alone = json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchExpressions": [{"key": word, "operator": "In", "values": [name]}]}}]});
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {
        "podManagementPolicy": "Parallel", "replicas": 3, "selector": {"matchLabels": labels},
        "serviceName": if facts.kind == "Config" { "config" } else { "" }, "updateStrategy": strategy,
        "template": {"metadata": {"labels": labels}, "spec": {
            "affinity": {"podAntiAffinity": alone}, "containers": containers, "volumes": volumes,
            "dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": true, "nodeSelector": {(MASTER): ""},
            "tolerations": [everything("NoSchedule"), everything("NoExecute")]}}}})
}

/// The objects of a component.
fn objects(component: &Value, facts: &Component) -> Vec<Value> {
    let (name, word) =
        (component["metadata"]["name"].as_str().unwrap_or_default(), word(component));
    let of_kind = |kind: &str, name: String, data: Value| {
        let key = if kind == "Secret" { "stringData" } else { "data" };
        json!({"apiVersion": "v1", "kind": kind, "metadata": metadata(component, name), (key): data})
    };
    let mut all = vec![
        of_kind(
            "ConfigMap",
            format!("{name}-{word}-configmap"),
            json!({"run-provisioner.sh": "sleep infinity"}),
        ),
        of_kind("Secret", format!("{name}-secret-certificates"), json!({})),
    ];
    if facts.kind == "Rabbitmq" {
        let passwords = json!({"user": "rabbit-user", "password": "of-tf-operator", "vhost": "vhost0", "salted_password": "abcd"});
        all.push(of_kind("Secret", format!("{name}-secret"), passwords));
    }
    all.push(stateful_set(component, facts));
    all
}

/// The cluster before the operator: a Manager, its components, and their objects with pods that are ready.
async fn as_tf_operator_made_it(world: &World, kinds: &[&str]) -> Outcome {
    let sandbox = &world.sandbox;
    kubectl(sandbox, &["label", "nodes", "--all", &format!("{MASTER}=")]).await?.success();
    let mut manager = manager(kinds);
    manager["spec"]["commonConfiguration"] = json!({"nodeSelector": {(MASTER): ""}});
    send(sandbox, &["create"], &manager).await?.success();
    // A stage of its upgrade that it did not finish.
    let status = r#"{"status":{"ziuState":3}}"#;
    change(sandbox, &["patch", "--subresource=status", "--type=merge", "-p", status], MANAGER, &[])
        .await?;
    let stored = get(sandbox, MANAGER).await;
    for facts in COMPONENTS.iter().filter(|facts| kinds.contains(&facts.kind)) {
        let service = stored["spec"]["services"][facts.key].clone();
        let mut service = service.get(0).cloned().unwrap_or(service);
        service["spec"]["commonConfiguration"] = stored["spec"]["commonConfiguration"].clone();
        let component = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": facts.kind, "spec": service["spec"],
            "metadata": {"name": service_name(facts.kind), "namespace": "tf", "ownerReferences": owner(&stored)}});
        send(sandbox, &AS_TF_OPERATOR, &component).await?.success();
        let plural = format!("{}.tf.tungsten.io", facts.plural);
        let component = get(sandbox, [&plural, &service_name(facts.kind)]).await;
        for object in objects(&component, facts) {
            send(sandbox, &AS_TF_OPERATOR, &object).await?.success();
        }
    }
    let all_run = async || {
        let pods = read(sandbox, &["pods", "-n", "tf"]).await.unwrap_or_default();
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count() == 3 * kinds.len()
    };
    eventually_within(WHOLE, "the pods of tf-operator run", all_run).await;
    Ok(())
}

async fn stateful_sets(world: &World) -> Result<Vec<Value>, Failed> {
    let sets = read(&world.sandbox, &["statefulsets", "-n", "tf"]).await?;
    Ok(sets["items"].as_array().cloned().unwrap_or_default())
}

fn uids(objects: &[Value]) -> Vec<Value> {
    objects.iter().map(|object| object["metadata"]["uid"].clone()).collect()
}

async fn passwords(world: &World) -> Value {
    get(&world.sandbox, ["secret", "rabbitmq1-secret"]).await["data"].clone()
}

/// What is said of the pods of each component.
async fn as_before(world: &World) -> Vec<bool> {
    let mut all = Vec::new();
    for facts in COMPONENTS.iter().filter(|facts| KINDS.contains(&facts.kind)) {
        let plural = format!("{}.tf.tungsten.io", facts.plural);
        let stored = get(&world.sandbox, [&plural, &service_name(facts.kind)]).await;
        let conditions = stored["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.push(conditions.iter().any(|one| one["type"] == "PodsAsBefore"));
    }
    all
}

/// A node's, and it is back before the pods of its services would be recreated.
async fn a_label_is_away_for_a_moment(world: &World) -> Outcome {
    let label = |how: &'static str| ["label", "node", "node-0", how];
    kubectl(&world.sandbox, &label("node-role.kubernetes.io/master-")).await?.success();
    let is_noticed = async || {
        let stored = get(&world.sandbox, ["redis.tf.tungsten.io", "redis1"]).await;
        stored["status"]["takenOver"]["differsSince"].is_string()
    };
    eventually_within(WHOLE, "it is noticed", is_noticed).await;
    kubectl(&world.sandbox, &label("node-role.kubernetes.io/master=")).await?.success();
    let is_over = async || !is_noticed().await && world.is_ready().await;
    eventually_within(WHOLE, "it is as before", is_over).await;
    assert_eq!(as_before(world).await, [true; KINDS.len()], "and no pod was recreated");
    Ok(())
}

/// A pod that is lost is there once more.
async fn comes_back(world: &World, pods: &Pods, name: &str) -> Outcome {
    // Its successor of the same name is there at once, and kubectl would wait for that to go, too.
    let delete = ["-n", "tf", "delete", "pod", "--wait=false", name];
    kubectl(&world.sandbox, &delete).await?.success();
    let is_back = async || pods.by_name()[name] == 2 && world.is_ready().await;
    eventually_within(WHOLE, "what is lost comes back", is_back).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_tf_operator_stays_as_it_is_until_an_upgrade_replaces_each_pod_once() -> Outcome
{
    let world = World::empty(1).await?;
    world.operator.stop(0).await;
    let (ca, key) = authority("tf-operator")?;
    send(&world.sandbox, &AS_TF_OPERATOR, &secret(&ca, &key)).await?.success();
    as_tf_operator_made_it(&world, &KINDS).await?;
    let before = stateful_sets(&world).await?;
    let files =
        async || get(&world.sandbox, ["configmap", "redis1-redis-configmap"]).await["data"].clone();
    let (of_redis, of_rabbitmq) = (files().await, passwords(&world).await);
    let pods = Pods::watch(&world.sandbox, "tf")?;
    let all_are_seen = async || pods.by_name().len() == 3 * KINDS.len();
    eventually_within(WHOLE, "all pods are seen", all_are_seen).await;

    world.operator.start(0)?;
    eventually_within(WHOLE, "the Manager is Ready", async || world.is_ready().await).await;
    // Also for another operator, which has seen nothing of what the first one thought.
    world.operator.kill(0);
    world.operator.start(0)?;
    comes_back(&world, &pods, "redis1-redis-statefulset-1").await?;
    assert_eq!(as_before(&world).await, [true; KINDS.len()], "it is said of each");
    let specs = |sets: &[Value]| sets.iter().map(|set| set["spec"].clone()).collect::<Vec<_>>();
    assert_eq!(specs(&stateful_sets(&world).await?), specs(&before));
    assert_eq!(files().await, of_redis, "pods that start again find what they know");
    let mut number = pods.by_name();
    assert_eq!(number.remove("redis1-redis-statefulset-1"), Some(2));
    assert!(
        number.len() == 3 * KINDS.len() - 1 && number.values().all(|pods| *pods == 1),
        "{number:?}"
    );

    a_label_is_away_for_a_moment(&world).await?;

    let recreate =
        ["-n", "tf", "annotate", "cassandras.tf.tungsten.io/configdb1", "opensdn.io/recreate=now"];
    kubectl(&world.sandbox, &recreate).await?.success();
    let are_new = async || {
        let number = pods.by_name();
        let new =
            number.iter().filter(|(name, pods)| name.starts_with("configdb1-") && **pods == 2);
        new.count() == 3 && world.is_ready().await
    };
    eventually_within(WHOLE, "the members of one service are recreated", are_new).await;

    world.create("to-1", json!({"version": "R24.1.1"})).await?;
    world.until("to-1", "Succeeded").await;
    assert_eq!(world.tags().await?, ["R24.1.1"]);
    assert_eq!(passwords(&world).await["password"], of_rabbitmq["password"]);
    assert_eq!(as_before(&world).await, [false; KINDS.len()]);
    assert_eq!(
        files().await,
        of_redis,
        "pods of tf-operator that still ran would all have started their daemons again"
    );
    let most = pods.most_away();
    assert!(most.values().all(|away| away.len() <= 1), "{most:?}");
    let mut number = pods.by_name();
    assert_eq!(number.remove("redis1-redis-statefulset-1"), Some(3));
    for member in 0..3 {
        let name = format!("configdb1-cassandra-statefulset-{member}");
        assert_eq!(number.remove(&name), Some(3), "{name}");
    }
    assert!(number.values().all(|pods| *pods == 2), "each is replaced once: {number:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_ca_of_tf_operator_members_are_taken_over_one_at_a_time() -> Outcome {
    let world = World::empty(1).await?;
    world.operator.stop(0).await;
    as_tf_operator_made_it(&world, &["Redis", "Rabbitmq"]).await?;
    let before = uids(&stateful_sets(&world).await?);
    let password = passwords(&world).await["password"].clone();
    let pods = Pods::watch(&world.sandbox, "tf")?;
    let all_are_seen = async || pods.by_name().len() == 3 * 2;
    eventually_within(WHOLE, "all pods are seen", all_are_seen).await;

    world.operator.start(0)?;
    eventually_within(WHOLE, "the Manager is Ready", async || world.is_ready().await).await;
    let sets = stateful_sets(&world).await?;
    assert_eq!(uids(&sets), before, "none was made again");
    for set in &sets {
        // What is not wanted any more is gone: these would keep pods from starting, or the API server from taking a change.
        let text = set["spec"].to_string();
        assert!(!text.contains("etc-timezone") && !text.contains("pod_labels"), "{set:#}");
    }
    assert_eq!(passwords(&world).await["password"], password, "daemons run with it");
    let most = pods.most_away();
    assert!(most.values().all(|away| away.len() <= 1), "{most:?}");
    let number = pods.by_name();
    assert_eq!(number.len(), 3 * 2, "{number:?}");
    assert!(number.values().all(|pods| *pods == 2), "each is replaced once: {number:?}");
    Ok(())
}

/// The command of the first container, and who keeps that so.
async fn command_of_redis(world: &World) -> Value {
    let set = get(&world.sandbox, ["statefulset", "redis1-redis-statefulset"]).await;
    set["spec"]["template"]["spec"]["containers"][0]["command"].clone()
}

/// What somebody with the role `edit` does to a workload: another command, as if tf-operator had written it.
async fn tamper(world: &World) -> Outcome {
    let patch = json!({"metadata": {"annotations": {"opensdn.io/applied": null, "opensdn.io/as-before": ""},
        "managedFields": [{"manager": "tf-operator", "operation": "Update", "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {".": {}}}}]},
        "spec": {"template": {"spec": {"containers": [{"name": "redis", "command": ["sh", "-c", "tampered"]}]}}}});
    let set = ["-n", "tf", "patch", "statefulset", "redis1-redis-statefulset"];
    let patch = ["--type=strategic", "-p", &patch.to_string()].map(str::to_owned);
    let patch: Vec<&str> = set.into_iter().chain(patch.iter().map(String::as_str)).collect();
    kubectl(&world.sandbox, &patch).await?.success();
    Ok(())
}

async fn until_it_is_put_back(world: &World, what: &str) {
    let is_put_back = async || {
        let command = command_of_redis(world).await.to_string();
        !command.contains("tampered") && command != "null" && world.is_ready().await
    };
    eventually_within(WHOLE, what, is_put_back).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tampered_workload_never_passes_for_one_of_tf_operator() -> Outcome {
    let world = World::empty(1).await?;
    world.operator.stop(0).await;
    let (ca, key) = authority("tf-operator")?;
    // As an editor on Windows has stored it.
    let ca = ca.replace('\n', "\r\n");
    send(&world.sandbox, &AS_TF_OPERATOR, &secret(&ca, &key)).await?.success();
    as_tf_operator_made_it(&world, &["Redis"]).await?;
    world.operator.start(0)?;
    let is_as_before = async || {
        let stored = get(&world.sandbox, ["redis.tf.tungsten.io", "redis1"]).await;
        world.is_ready().await && stored["status"]["takenOver"]["wouldBe"].is_string()
    };
    eventually_within(WHOLE, "the workload stays as it was", is_as_before).await;

    tamper(&world).await?;
    until_it_is_put_back(&world, "what is not as tf-operator made it is not left").await;
    let set = get(&world.sandbox, ["statefulset", "redis1-redis-statefulset"]).await;
    let applied = &set["metadata"]["annotations"]["opensdn.io/applied"];
    assert!(applied.is_string(), "it is the operator's by now: {set:#}");
    let stored = get(&world.sandbox, ["redis.tf.tungsten.io", "redis1"]).await;
    assert!(stored["status"]["takenOver"].is_null(), "{stored:#}");

    // What cannot be together with what the operator wants of it.
    let rolling = r#"{"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}}"#;
    let patch = ["-n", "tf", "patch", "statefulset", "redis1-redis-statefulset", "-p", rolling];
    kubectl(&world.sandbox, &patch).await?.success();
    let is_on_delete = async || {
        let set = get(&world.sandbox, ["statefulset", "redis1-redis-statefulset"]).await;
        set["spec"]["updateStrategy"] == json!({"type": "OnDelete"}) && world.is_ready().await
    };
    eventually_within(WHOLE, "its way to update is put back", is_on_delete).await;

    // With the CA of tf-operator as it is, and also for an operator that remembers nothing.
    tamper(&world).await?;
    world.operator.kill(0);
    world.operator.start(0)?;
    until_it_is_put_back(&world, "its own is never one of tf-operator").await;
    Ok(())
}
