//! What users of a real API server see: bad objects are refused with every reason, good ones are
//! stored with their defaults, by every verb that writes.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{self, Said};
use opensdn_testing::sandbox::KubectlError;
use opensdn_testing::shared::Shared;
use opensdn_testing::written_cluster;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy");

/// A cluster with the product, and a namespace of this test's own.
struct World {
    cluster: Shared,
    namespace: String,
}

impl World {
    async fn start() -> Result<Self, Failed> {
        let cluster = Shared::with_product().await?;
        let namespace = cluster.namespace().await?;
        Ok(Self { cluster, namespace })
    }

    /// In the test's namespace.
    async fn kubectl(&self, arguments: &[&str]) -> Result<Said, KubectlError> {
        let arguments = [&["-n", &self.namespace], arguments].concat();
        kubectl::kubectl(&self.cluster, &arguments).await
    }

    async fn send(&self, arguments: &[&str], object: &Value) -> Result<Said, KubectlError> {
        let mut object = object.clone();
        object["metadata"]["namespace"] = json!(self.namespace);
        kubectl::send(&self.cluster, arguments, &object).await
    }

    /// The manifest with the test's namespace instead of its own, and on nodes of the test's own: two clusters do not
    /// share nodes. As a file.
    fn manifest(&self, path: &str) -> Result<NamedTempFile, Failed> {
        let text = std::fs::read_to_string(Path::new(DEPLOY).join(path))?;
        let mut file = NamedTempFile::with_suffix(".yaml")?;
        let namespace = format!("namespace: {}", self.namespace);
        let nodes = format!("example.org/nodes-of: {}", self.namespace);
        // The vrouters of tf-operator's manifest are on all nodes.
        let vrouters = "spec:\n          serviceConfiguration:\n            controlInstance";
        let on_nodes = vrouters.replacen(
            "serviceConfiguration",
            &format!(
                "commonConfiguration: {{nodeSelector: {{{nodes}}}}}\n          serviceConfiguration"
            ),
            1,
        );
        let text = text
            .replace("namespace: tf", &namespace)
            .replace("node-role.kubernetes.io/control-plane: \"\"", &nodes)
            .replace(vrouters, &on_nodes);
        file.write_all(text.as_bytes())?;
        Ok(file)
    }

    /// Applies a manifest of `deploy`.
    async fn apply(&self, path: &str) -> Result<Said, Failed> {
        let file = self.manifest(path)?;
        Ok(self.kubectl(&["apply", "-f", &file.path().to_string_lossy()]).await?)
    }

    async fn stored(&self, kind: &str, name: &str) -> Result<Value, Failed> {
        kubectl::read(&self.cluster, &[kind, name, "-n", &self.namespace]).await
    }
}

fn vrouter(name: &str, service: Value) -> Value {
    json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
        "metadata": {"name": name},
        "spec": {"serviceConfiguration": merged(service)},
    })
}

/// Returns when an update of the Vrouter, whose Control is gone, passes with a warning: the webhook
/// hears of the deletion some time later.
async fn until_warned(world: &World, name: &str) {
    let tries = AtomicUsize::new(0);
    let is_warned = async || {
        let label = format!("a={}", tries.fetch_add(1, Ordering::Relaxed));
        let said = world.kubectl(&["label", "--overwrite", "vrouter", name, &label]).await;
        said.is_ok_and(|said| said.success().contains("labeled") && said.err.contains("[OSDN1801]"))
    };
    eventually("the Vrouter names a Control that is gone", is_warned).await;
}

/// The configuration with the containers that the schema asks for.
fn merged(mut service: Value) -> Value {
    let containers = ["vrouteragent", "nodemanager", "provisioner"]
        .map(|name| json!({"name": name, "image": format!("registry.example.com/{name}:R24.1")}));
    service["containers"] = containers.as_slice().into();
    service
}

fn zookeeper(name: &str) -> Value {
    json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
        "metadata": {"name": name},
        "spec": {"serviceConfiguration": {"containers": [
            {"name": "zookeeper", "image": "registry.example.com/zookeeper:R24.1"},
        ]}},
    })
}

/// A create whose name is taken, which the API server would refuse after the webhook.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_of_a_name_that_exists_keeps_no_key_from_another_object() -> Outcome {
    let world = World::start().await?;
    let create = ["create", "--validate=false"];
    world.send(&create, &link_local("named-first", "169.254.77.1")).await?.success();
    let again = world.send(&create, &link_local("named-first", "169.254.77.2")).await?;
    // Clients act by the reason.
    assert!(!again.ok && again.err.contains("(AlreadyExists)"), "{}", again.err);
    assert!(again.err.contains("/named-first already exists"), "{}", again.err);
    world.send(&create, &link_local("named-second", "169.254.77.2")).await?.success();

    // With the keys that it has, too, and what it has stays its own.
    let same = world.send(&create, &link_local("named-first", "169.254.77.1")).await?;
    assert!(!same.ok && same.err.contains("(AlreadyExists)"), "{}", same.err);
    let other = world.send(&create, &link_local("named-third", "169.254.77.1")).await?;
    assert!(!other.ok && other.err.contains("already taken"), "{}", other.err);

    // What writes whether it is there or not continues to; and what is gone is in no one's way.
    for (name, ip) in [("named-first", "169.254.77.3"), ("named-fourth", "169.254.77.4")] {
        let apply = ["apply", "--server-side", "--force-conflicts"];
        let applied = world.send(&apply, &link_local(name, ip)).await?;
        applied.success();
    }
    world.kubectl(&["delete", "linklocalservice", "named-first"]).await?.success();
    world.send(&create, &link_local("named-first", "169.254.77.3")).await?.success();
    Ok(())
}

fn link_local(name: &str, ip: &str) -> Value {
    json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
        "metadata": {"name": name},
        "spec": {"ip": ip, "port": 9100, "fabric": {"addresses": ["10.0.0.10"], "port": 9100}},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_verb_that_writes_is_judged() -> Outcome {
    let world = World::start().await?;
    let bad = vrouter("bad", json!({"sslEnable": false, "physicalInterface": "eth0$(reboot)"}));
    let reasons = ["[OSDN1816] spec.serviceConfiguration.sslEnable", "[OSDN1812]", "->"];
    for verb in [
        &["create"][..],
        &["apply"],
        &["apply", "--server-side"],
        &["apply", "--dry-run=server"],
        &["create", "--dry-run=server"],
    ] {
        world.send(verb, &bad).await?.denied(&reasons);
    }
    let mut generated = bad.clone();
    generated["metadata"] = json!({"generateName": "bad-"});
    world.send(&["create"], &generated).await?.denied(&reasons);

    world.apply("samples/control.yaml").await?.success();
    let good = vrouter(
        "good",
        json!({"sslEnable": true, "controlInstance": "control1", "dataSubnet": "10.1.0.0/24"}),
    );
    // The webhook hears of what it names some time later.
    let passes = async || world.send(&["apply"], &good).await.is_ok_and(|said| said.ok);
    eventually("the control instance is known", passes).await;
    let off = r#"{"spec":{"serviceConfiguration":{"sslEnable":false}}}"#;
    let patch = ["patch", "vrouter", "good", "--type=merge", "-p", off];
    world.kubectl(&patch).await?.denied(&["[OSDN1816]"]);
    let status = r#"{"status":{"active":true}}"#;
    let patch = ["patch", "vrouter", "good", "--subresource=status", "--type=merge", "-p", status];
    world.kubectl(&patch).await?.success();
    let delete = ["delete", "vrouter", "good"];
    let said = world.kubectl(&delete).await?;
    said.denied(&["[OSDN1111]", "vhost0 and the CNI go from its nodes"]);
    let confirm = format!(
        "kubectl annotate --overwrite -n {} vrouters.tf.tungsten.io/good \
         opensdn.io/confirm-loss=Vrouter/good",
        world.namespace
    );
    said.denied(&[&confirm]);
    // As a user would copy it.
    let confirm: Vec<_> = confirm.split(' ').skip(1).collect();
    world.kubectl(&confirm).await?.success();
    world.kubectl(&delete).await?.success();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sample_cluster_is_stored_and_a_service_that_vanishes_from_it_is_confirmed_first()
-> Outcome {
    let world = World::start().await?;
    for name in ["vrouter-profile", "manager", "link-local-service"] {
        world.apply(&format!("samples/{name}.yaml")).await?.success();
    }
    let without = r#"{"spec":{"services":{"queryengine":null}}}"#;
    let change = async |patch: &str| {
        let merge = ["patch", "manager", "cluster1", "--type=merge", "-p", patch];
        world.kubectl(&merge).await
    };
    let lost = "[OSDN1112] spec.services.queryengine";
    change(without).await?.denied(&[lost, "opensdn.io/confirm-loss"]);
    let confirmed = r#"{"metadata":{"annotations":{"opensdn.io/confirm-loss":"QueryEngine/queryengine1"}},
        "spec":{"services":{"queryengine":null}}}"#;
    change(confirmed).await?.success();
    let services = world.stored("manager", "cluster1").await?["spec"]["services"].clone();
    assert_eq!(services.get("queryengine"), None);

    world.kubectl(&["delete", "manager", "cluster1"]).await?.denied(&["[OSDN1111]"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_and_wrong_can_be_changed_elsewhere_confirmed_and_deleted() -> Outcome {
    let world = World::start().await?;
    world.apply("samples/control.yaml").await?.success();
    let service = json!({"controlInstance": "control1", "dataSubnet": "10.1.0.0/24"});
    let wrong = vrouter("wrong", service);
    let passes = async || world.send(&["apply"], &wrong).await.is_ok_and(|said| said.ok);
    eventually("the control instance is known", passes).await;
    world.kubectl(&["delete", "control", "control1"]).await?.success();

    until_warned(&world, "wrong").await;
    let other = r#"{"spec":{"serviceConfiguration":{"controlInstance":"none-of-these"}}}"#;
    let patch = ["patch", "vrouter", "wrong", "--type=merge", "-p", other];
    world.kubectl(&patch).await?.denied(&["[OSDN1801]"]);
    let confirm = ["annotate", "vrouter", "wrong", "opensdn.io/confirm-loss=Vrouter/wrong"];
    world.kubectl(&confirm).await?.success();
    world.kubectl(&["delete", "vrouters", "--all"]).await?.success();
    Ok(())
}

/// A Config that says to be of the Manager `cluster1`, with one link-local service.
pub(crate) fn config(name: &str, uid: &Value, service: &Value) -> Value {
    let containers: Vec<Value> = ["api", "devicemanager", "dnsmasq", "schematransformer"]
        .into_iter()
        .chain(["servicemonitor", "nodemanager", "provisioner"])
        .map(|name| json!({"name": name, "image": format!("registry.example.com/{name}:R24.1")}))
        .collect();
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Config",
        "metadata": {"name": name, "ownerReferences": [{"apiVersion": "tf.tungsten.io/v1alpha1",
            "kind": "Manager", "name": "cluster1", "uid": uid, "controller": true}]},
        "spec": {"serviceConfiguration":
            {"linklocalServices": [service], "containers": containers}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_reference_takes_no_address_that_the_owner_does_not_have() -> Outcome {
    let world = World::start().await?;
    world.send(&["create"], &link_local("holder", "169.254.8.3")).await?.success();
    let service = |name: &str, ip: &str| json!({"ipFabricServiceHost": "10.0.0.10", "name": name, "ip": ip, "port": 9100});
    let owned = service("owned", "169.254.8.4");
    world.apply("samples/vrouter-profile.yaml").await?.success();
    let file = world.manifest("samples/manager.yaml")?;
    let print = ["create", "--dry-run=client", "-o", "json", "-f", &file.path().to_string_lossy()];
    let mut owner: Value = serde_json::from_str(world.kubectl(&print).await?.success())?;
    let of_manager = config("config1", &Value::Null, &owned)["spec"].clone();
    owner["spec"]["services"]["config"] =
        json!({"metadata": {"name": "config1"}, "spec": of_manager});
    world.send(&["create"], &owner).await?.success();
    let uid = world.stored("manager", "cluster1").await?["metadata"]["uid"].clone();
    let taken = config("config1", &uid, &service("other", "169.254.8.3"));
    let holder = format!("LinkLocalService {}/holder", world.namespace);
    world.send(&["create"], &taken).await?.denied(&["[OSDN3009]", &holder]);
    // The webhook hears of the Manager some time later.
    let good = config("config1", &uid, &owned);
    let dry_run = ["create", "--dry-run=server"];
    let passes = async || world.send(&dry_run, &good).await.is_ok_and(|said| said.ok);
    eventually("what the Manager has is its Config's too", passes).await;
    let mut elsewhere = owned.clone();
    elsewhere["ipFabricServiceHost"] = json!("10.0.0.66");
    let manager = format!("Manager {}/cluster1", world.namespace);
    for (why, config) in [
        ("another object of that name", config("config1", &json!("made-up"), &elsewhere)),
        ("another Config", config("config2", &uid, &elsewhere)),
        ("another target", config("config1", &uid, &elsewhere)),
    ] {
        let said = world.send(&dry_run, &config).await?;
        assert!(!said.ok && said.err.contains(&manager), "{why}: {}", said.err);
    }
    // To vrouters the same row is one, whoever says it.
    world.send(&dry_run, &config("config2", &uid, &owned)).await?.success();
    world.send(&["create"], &good).await?.success();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_its_finalizers_is_judged_unless_only_its_metadata_change() -> Outcome {
    let world = World::start().await?;
    world.send(&["create"], &link_local("held", "169.254.8.1")).await?.success();
    let mut leaving = link_local("leaving", "169.254.8.2");
    leaving["metadata"]["finalizers"] = json!(["example.io/wait"]);
    world.send(&["create"], &leaving).await?.success();
    world.kubectl(&["delete", "linklocalservice", "leaving", "--wait=false"]).await?.success();

    let patch = async |change: &str| {
        let merge = ["patch", "linklocalservice", "leaving", "--type=merge", "-p", change];
        world.kubectl(&merge).await
    };
    let holder = format!("LinkLocalService {}/held", world.namespace);
    patch(r#"{"spec":{"ip":"169.254.8.1"}}"#).await?.denied(&["[OSDN3009]", &holder]);
    patch(r#"{"spec":{"ip":"127.0.0.1"}}"#).await?.denied(&["[OSDN1604]"]);
    patch(r#"{"metadata":{"finalizers":null,"labels":{"a":"b"}}}"#).await?.success();
    let gone = ["wait", "--for=delete", "linklocalservice/leaving", "--timeout=60s"];
    world.kubectl(&gone).await?.success();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_with_its_owner_or_its_namespace_is_not_held_up() -> Outcome {
    let world = World::start().await?;
    let owner = json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": "cluster1",
            "annotations": {"opensdn.io/confirm-loss": "Manager/cluster1"}},
        "spec": {"services": {}},
    });
    world.send(&["create"], &owner).await?.success();
    let uid = world.stored("manager", "cluster1").await?["metadata"]["uid"].clone();
    let mut child = zookeeper("child");
    child["metadata"]["ownerReferences"] = json!([{"apiVersion": "tf.tungsten.io/v1alpha1",
        "kind": "Manager", "name": "cluster1", "uid": uid, "controller": true}]);
    world.send(&["create"], &child).await?.success();
    world.send(&["create"], &zookeeper("other")).await?.success();
    let delete = ["delete", "zookeeper", "child"];
    let made_again = ["[OSDN1111]", "Manager cluster1 would make it again"];
    world.kubectl(&delete).await?.denied(&made_again);

    world.kubectl(&["delete", "manager", "cluster1"]).await?.success();
    let gone = ["wait", "--for=delete", "zookeeper/child", "--timeout=60s"];
    world.kubectl(&gone).await?.success();
    world.stored("zookeeper", "other").await?;
    world.kubectl(&["delete", "namespace", &world.namespace, "--timeout=60s"]).await?.success();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defaults_are_stored_and_a_second_apply_changes_nothing() -> Outcome {
    let world = World::start().await?;
    let zookeeper = zookeeper("zookeeper1");
    world.send(&["apply"], &zookeeper).await?.success();
    let stored = world.stored("zookeeper", "zookeeper1").await?;
    let service = &stored["spec"]["serviceConfiguration"];
    assert_eq!((&service["clientPort"], &service["electionPort"]), (&json!(2181), &json!(2888)));

    assert!(world.send(&["apply"], &zookeeper).await?.success().contains("unchanged"));
    let diff = world.send(&["diff"], &zookeeper).await?;
    assert!(diff.ok && diff.out.is_empty(), "{}{}", diff.out, diff.err);
    world.send(&["replace"], &stored).await?.success();
    let again = world.stored("zookeeper", "zookeeper1").await?;
    assert_eq!(again["spec"], stored["spec"]);
    assert_eq!(again["metadata"]["generation"], stored["metadata"]["generation"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_holds_the_reasons_of_all_policies() -> Outcome {
    let world = World::start().await?;
    let said = world.apply("samples-refused/manager.yaml").await?;
    let place = "spec.services.vrouters[0].spec.serviceConfiguration";
    said.denied(&[
        &format!("problems in Manager {}/cluster2", world.namespace),
        &format!("[OSDN1816] {place}.sslEnable"),
        &format!("[OSDN1812] {place}.physicalInterface"),
        "profiles[0]",
        "certKeyLength",
    ]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warnings_are_shown_and_the_object_is_stored() -> Outcome {
    let world = World::start().await?;
    let said = world.apply("samples/tf-operator-default.yaml").await?;
    said.success();
    assert!(said.err.contains("Warning: [OSDN"), "{}", said.err);
    let warnings = said.err.lines().filter(|line| line.starts_with("Warning: ")).count();
    assert!(warnings <= 10 && !said.err.contains("more warnings"), "{}", said.err);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_has_one_holder_and_is_free_again_after_it() -> Outcome {
    let world = World::start().await?;
    let first = link_local("first", "169.254.7.1");
    let second = link_local("second", "169.254.7.1");
    world.send(&["create", "--dry-run=server"], &first).await?.success();
    world.send(&["create"], &first).await?.success();
    let holder = format!("{}/first", world.namespace);
    let taken = world.send(&["create"], &second).await?;
    taken.denied(&[&format!("LinkLocalService {holder}"), "169.254.7.1"]);
    world.send(&["apply", "--dry-run=server"], &second).await?.denied(&[&holder]);
    world.send(&["apply"], &first).await?.success();

    world.kubectl(&["delete", "linklocalservice", "first"]).await?.success();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let said = world.send(&["create"], &second).await?;
        if said.ok {
            return Ok(());
        }
        assert!(tokio::time::Instant::now() < deadline, "still held: {}", said.err);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

/// A Manager whose vrouters run on the nodes with these labels.
fn manager_on(name: &str, labels: Value) -> Value {
    let mut manager = written_cluster::manager(&[
        "Cassandra",
        "Config",
        "Control",
        "Rabbitmq",
        "Vrouter",
        "Zookeeper",
    ]);
    manager["metadata"]["name"] = json!(name);
    manager["spec"]["services"]["vrouters"][0]["spec"]["commonConfiguration"] =
        json!({"nodeSelector": labels});
    manager
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_managers_that_want_the_same_nodes_at_once_one_is_stored() -> Outcome {
    let world = World::start().await?;
    let namespaces = [world.namespace.clone(), world.cluster.namespace().await?];
    let send = async |arguments: &[&str], namespace: &str, mut manager: Value| {
        manager["metadata"]["namespace"] = json!(namespace);
        kubectl::send(&world.cluster, arguments, &manager).await
    };
    let create = async |namespace: &str, manager| send(&["create"], namespace, manager).await;
    let rack = json!({"example.org/rack-of": world.namespace});
    let [one, other] = &namespaces;
    let both = tokio::join!(
        create(one, manager_on("one", rack.clone())),
        create(other, manager_on("one", rack.clone()))
    );
    let (said_to_one, said_to_other) = (both.0?, both.1?);
    assert_ne!(said_to_one.ok, said_to_other.ok, "{}{}", said_to_one.err, said_to_other.err);
    let (refused, winner, loser) =
        if said_to_one.ok { (said_to_other, one, other) } else { (said_to_one, other, one) };
    refused.denied(&["OSDN1103", &format!("Manager {winner}/one")]);

    // Whose nodes are among those of the other learns it by the look-up, once the winner is heard of.
    let mut narrow = rack.clone();
    narrow["example.org/row"] = json!("1");
    let is_refused = async || {
        let dry = ["create", "--dry-run=server"];
        let said = send(&dry, loser, manager_on("narrow", narrow.clone())).await;
        said.is_ok_and(|said| {
            !said.ok && said.err.contains("OSDN1103") && said.err.contains("run on the nodes with")
        })
    };
    eventually("a selector within the other is refused", is_refused).await;
    let elsewhere = format!("not-of-{}", world.namespace);
    let elsewhere = json!({"example.org/rack-of": elsewhere, "example.org/row": "1"});
    create(loser, manager_on("elsewhere", elsewhere)).await?.success();

    // What is deleted gives its nodes back.
    let confirmed = "opensdn.io/confirm-loss=Manager/one";
    let annotate = ["annotate", "-n", winner, "managers.tf.tungsten.io", "one", confirmed];
    kubectl::kubectl(&world.cluster, &annotate).await?.success();
    kubectl::kubectl(&world.cluster, &["delete", "manager", "one", "-n", winner]).await?.success();
    let is_free =
        async || create(loser, manager_on("again", rack.clone())).await.is_ok_and(|said| said.ok);
    eventually("the nodes are free again", is_free).await;
    Ok(())
}
