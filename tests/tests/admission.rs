//! What users of a real API server see: bad objects are refused with every reason, good ones are
//! stored with their defaults, by every verb that writes.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use opensdn_testing::{Failed, Outcome};
use opensdn_testing::{
    eventually::eventually,
    kubectl::{self, Said},
    product::{Installation, Product},
    sandbox::{Builder, KubectlError, Sandbox},
};
use serde_json::{Value, json};

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples");
const REFUSED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples-refused");

/// A sandbox with the product and the namespace `tf`.
struct World {
    sandbox: Sandbox,
    _product: Product,
}

impl World {
    async fn start() -> Result<Self, Failed> {
        Self::with(Sandbox::builder().only_api_server()).await
    }

    async fn with(sandbox: Builder) -> Result<Self, Failed> {
        let sandbox = sandbox.start().await?;
        let product = Installation::built()?.install(&sandbox).await?;
        let world = Self { sandbox, _product: product };
        world.kubectl(&["create", "namespace", "tf"]).await?.success();
        Ok(world)
    }

    async fn kubectl(&self, arguments: &[&str]) -> Result<Said, KubectlError> {
        kubectl::kubectl(&self.sandbox, arguments).await
    }

    async fn send(&self, arguments: &[&str], object: &Value) -> Result<Said, KubectlError> {
        kubectl::send(&self.sandbox, arguments, object).await
    }

    async fn stored(&self, kind: &str, name: &str) -> Result<Value, Failed> {
        kubectl::read(&self.sandbox, &[kind, name, "-n", "tf"]).await
    }
}

fn vrouter(name: &str, service: Value) -> Value {
    json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
        "metadata": {"name": name, "namespace": "tf"},
        "spec": {"serviceConfiguration": merged(service)},
    })
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
        "metadata": {"name": name, "namespace": "tf"},
        "spec": {"serviceConfiguration": {"containers": [
            {"name": "zookeeper", "image": "registry.example.com/zookeeper:R24.1"},
        ]}},
    })
}

fn link_local(name: &str, ip: &str) -> Value {
    json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
        "metadata": {"name": name, "namespace": "tf"},
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
    generated["metadata"] = json!({"generateName": "bad-", "namespace": "tf"});
    world.send(&["create"], &generated).await?.denied(&reasons);

    let control = format!("{SAMPLES}/control.yaml");
    world.kubectl(&["apply", "-f", &control]).await?.success();
    let good = vrouter(
        "good",
        json!({"sslEnable": true, "controlInstance": "control1", "dataSubnet": "10.1.0.0/24"}),
    );
    // The webhook hears of what it names some time later.
    let passes = async || world.send(&["apply"], &good).await.is_ok_and(|said| said.ok);
    eventually("the control instance is known", passes).await;
    let off = r#"{"spec":{"serviceConfiguration":{"sslEnable":false}}}"#;
    let patch = ["patch", "vrouter", "good", "-n", "tf", "--type=merge", "-p", off];
    world.kubectl(&patch).await?.denied(&["[OSDN1816]"]);
    let status = r#"{"status":{"active":true}}"#;
    let patch = [
        "patch",
        "vrouter",
        "good",
        "-n",
        "tf",
        "--subresource=status",
        "--type=merge",
        "-p",
        status,
    ];
    world.kubectl(&patch).await?.success();
    let delete = ["delete", "vrouter", "good", "-n", "tf"];
    let said = world.kubectl(&delete).await?;
    said.denied(&["[OSDN1111]", "vhost0 and the CNI go from its nodes"]);
    let confirm = "kubectl annotate --overwrite -n tf vrouters.tf.tungsten.io/good \
                   opensdn.io/confirm-loss=Vrouter/good";
    said.denied(&[confirm]);
    // As a user would copy it.
    let confirm: Vec<_> = confirm.split(' ').skip(1).collect();
    world.kubectl(&confirm).await?.success();
    world.kubectl(&delete).await?.success();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_vanishes_from_a_manager_is_confirmed_first() -> Outcome {
    let world = World::start().await?;
    for file in ["vrouter-profile", "manager"] {
        let file = format!("{SAMPLES}/{file}.yaml");
        world.kubectl(&["apply", "-f", &file]).await?.success();
    }
    let without = r#"{"spec":{"services":{"queryengine":null}}}"#;
    let change = async |patch: &str| {
        let merge = ["patch", "manager", "cluster1", "-n", "tf", "--type=merge", "-p", patch];
        world.kubectl(&merge).await
    };
    let lost = "[OSDN1112] spec.services.queryengine";
    change(without).await?.denied(&[lost, "opensdn.io/confirm-loss"]);
    let confirmed = r#"{"metadata":{"annotations":{"opensdn.io/confirm-loss":"QueryEngine/queryengine1"}},
        "spec":{"services":{"queryengine":null}}}"#;
    change(confirmed).await?.success();
    let services = world.stored("manager", "cluster1").await?["spec"]["services"].clone();
    assert_eq!(services.get("queryengine"), None);

    world.kubectl(&["delete", "manager", "cluster1", "-n", "tf"]).await?.denied(&["[OSDN1111]"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_other_policies_refuse_can_be_confirmed_and_deleted() -> Outcome {
    let world = World::start().await?;
    let control = format!("{SAMPLES}/control.yaml");
    world.kubectl(&["apply", "-f", &control]).await?.success();
    let service = json!({"controlInstance": "control1", "dataSubnet": "10.1.0.0/24"});
    let wrong = vrouter("wrong", service);
    let passes = async || world.send(&["apply"], &wrong).await.is_ok_and(|said| said.ok);
    eventually("the control instance is known", passes).await;
    world.kubectl(&["delete", "-f", &control]).await?.success();

    let annotate = |what: &'static str| ["annotate", "vrouter", "wrong", "-n", "tf", what];
    // The webhook hears of the deletion some time later.
    let is_wrong = async || {
        let said = world.kubectl(&annotate("a=b")).await;
        said.is_ok_and(|said| said.err.contains("[OSDN1801]"))
    };
    eventually("the vrouter names a control that is gone", is_wrong).await;
    let confirm = annotate("opensdn.io/confirm-loss=Vrouter/wrong");
    world.kubectl(&confirm).await?.success();
    world.kubectl(&["delete", "vrouters", "--all", "-n", "tf"]).await?.success();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_with_its_owner_or_its_namespace_is_not_held_up() -> Outcome {
    let world = World::with(Sandbox::builder()).await?;
    let owner = json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": "cluster1", "namespace": "tf",
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
    let delete = ["delete", "zookeeper", "child", "-n", "tf"];
    let anew = ["[OSDN1111]", "Manager cluster1 would make it anew"];
    world.kubectl(&delete).await?.denied(&anew);

    world.kubectl(&["delete", "manager", "cluster1", "-n", "tf"]).await?.success();
    let gone = ["wait", "--for=delete", "zookeeper/child", "-n", "tf", "--timeout=60s"];
    world.kubectl(&gone).await?.success();
    world.stored("zookeeper", "other").await?;
    world.kubectl(&["delete", "namespace", "tf", "--timeout=60s"]).await?.success();
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
    let manager = format!("{REFUSED}/manager.yaml");
    let said = world.kubectl(&["apply", "-f", &manager]).await?;
    let place = "spec.services.vrouters[0].spec.serviceConfiguration";
    said.denied(&[
        "problems in Manager tf/cluster2",
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
    let file = format!("{SAMPLES}/tf-operator-default.yaml");
    let said = world.kubectl(&["apply", "-n", "tf", "-f", &file]).await?;
    said.success();
    assert!(said.err.contains("Warning: [OSDN"), "{}", said.err);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sample_cluster_is_stored() -> Outcome {
    let world = World::start().await?;
    for name in ["vrouter-profile", "manager", "link-local-service"] {
        let file = format!("{SAMPLES}/{name}.yaml");
        world.kubectl(&["apply", "-f", &file]).await?.success();
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_has_one_holder_and_is_free_again_after_it() -> Outcome {
    let world = World::start().await?;
    let first = link_local("first", "169.254.7.1");
    let second = link_local("second", "169.254.7.1");
    world.send(&["create", "--dry-run=server"], &first).await?.success();
    world.send(&["create"], &first).await?.success();
    world.send(&["create"], &second).await?.denied(&["LinkLocalService tf/first", "169.254.7.1"]);
    world.send(&["apply", "--dry-run=server"], &second).await?.denied(&["tf/first"]);
    world.send(&["apply"], &first).await?.success();

    world.kubectl(&["delete", "linklocalservice", "first", "-n", "tf"]).await?.success();
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
