//! Whose what is there is: data of users, namespaces and objects of others, installations of other tools, and inventories that
//! anybody could have written. A removal takes what the installation has brought, and an installation believes the cluster.
//! Controllers run here: without them no namespace ends.

use opensdn_deploy::names::{INVENTORY, MANAGED_BY_LABEL, NAMESPACE, webhook};
use opensdn_testing::Outcome;
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::written_cluster::manager;
use serde_json::{Value, json};

use super::{Plugin, killed_at};

const BASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/webhook");
const INSTALL: &str = "install --yes --wait=false";
const OPERATOR: &str = "opensdn-operator";

fn config_map(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}})
}

async fn stays(sandbox: &Sandbox, namespace: &str, kind: &str, name: &str) -> Outcome {
    let stored = read(sandbox, &["-n", namespace, kind, name]).await?;
    assert_eq!(stored["metadata"].get("deletionTimestamp"), None, "{kind} {name}");
    let namespace = read(sandbox, &["namespace", namespace]).await?;
    assert_eq!(namespace["metadata"].get("deletionTimestamp"), None, "{namespace:#}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_was_watched_once_keeps_its_data_and_one_with_objects_of_others_stays()
-> Outcome {
    let sandbox = Sandbox::start().await?;
    let plugin = Plugin::of(&sandbox)?;
    plugin.run(INSTALL).await?.ended(0);
    send(&sandbox, &["create"], &config_map("tf", "mine")).await?.success();
    send(&sandbox, &["create"], &config_map(NAMESPACE, "of-others")).await?.success();
    plugin.run(&format!("{INSTALL} --set operator.watchedNamespaces=tf-lab")).await?.ended(0);

    let said = plugin.run("uninstall --yes").await?.ended(0);
    said.with(&[
        "keeps    Namespace/tf: has data",
        "keeps    Namespace/opensdn-system: has objects of others",
        "ConfigMap/opensdn-system/of-others is not of this installation",
    ]);
    stays(&sandbox, "tf", "configmap", "mine").await?;
    stays(&sandbox, NAMESPACE, "configmap", "of-others").await?;
    kubectl(&sandbox, &["get", "namespace", "opensdn-operator"]).await?.refused(&["not found"]);
    kubectl(&sandbox, &["-n", NAMESPACE, "get", "configmap", INVENTORY])
        .await?
        .refused(&["not found"]);
    let again = plugin.run("uninstall --yes").await?.ended(0);
    assert!(again.out.starts_with("nothing to remove"), "{}", again.out);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_was_there_before_stays_wherever_the_installation_was_killed() -> Outcome {
    let sandbox = Sandbox::start().await?;
    let plugin = Plugin::of(&sandbox)?;
    let folder = tempfile::tempdir()?;
    kubectl(&sandbox, &["create", "namespace", NAMESPACE]).await?.success();
    // A pull Secret that the values name does not keep a namespace by itself.
    let secret = ["-n", NAMESPACE, "create", "secret", "generic", "pull"];
    kubectl(&sandbox, &secret).await?.success();
    let install = format!("{INSTALL} --set imagePullSecrets=pull");
    // Among its first writes are a dry run, the inventory, and the label.
    for write in 1..=4 {
        killed_at(&sandbox, folder.path(), &install, write).await?;
    }
    plugin.run(&install).await?.ended(0);
    // At its last step it is not forgotten what is left.
    let held = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATOR, "finalizers": ["example.com/hold"]}});
    let apply = ["apply", "--server-side", "--field-manager=hold"];
    send(&sandbox, &apply, &held).await?.success();
    let said = "keeps    Namespace/opensdn-system: was there before";
    for _ in 0..2 {
        plugin.run("uninstall --yes --timeout 20s").await?.ended(4).with(&[said, OPERATOR]);
    }
    // Nor is it by who looks at the inventory: an install sees that a removal has not ended.
    let state = read(&sandbox, &["-n", NAMESPACE, "configmap", INVENTORY]).await?;
    assert_eq!(state["data"]["state"], "removing");
    let none = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATOR}});
    send(&sandbox, &apply, &none).await?.success();
    plugin.run("uninstall --yes").await?.ended(0);
    kubectl(&sandbox, &["get", "namespace", OPERATOR]).await?.refused(&["not found"]);
    let inventory = ["-n", NAMESPACE, "get", "configmap", INVENTORY];
    kubectl(&sandbox, &inventory).await?.refused(&["not found"]);
    stays(&sandbox, NAMESPACE, "secret", "pull").await?;
    let namespace = read(&sandbox, &["namespace", NAMESPACE]).await?;
    let labels = namespace["metadata"]["labels"].to_string();
    assert!(!labels.contains("applyset"), "it has no label of ours: {labels}");
    Ok(())
}

/// A Manager in this namespace, and what runs by it.
async fn running(sandbox: &Sandbox, namespace: &str) -> Outcome {
    let mut object = manager(&["Redis"]);
    object["metadata"]["namespace"] = json!(namespace);
    let made = async || send(sandbox, &["create"], &object).await.is_ok_and(|said| said.ok);
    eventually("its kind is served", made).await;
    let stored = read(sandbox, &["-n", namespace, "managers.tf.tungsten.io", "cluster1"]).await?;
    let owner = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager", "name": "cluster1", "controller": true,
        "uid": stored["metadata"]["uid"]});
    let labels = json!({"a": "b"});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "redis1", "namespace": namespace, "ownerReferences": [owner]},
        "spec": {"serviceName": "a", "replicas": 0, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}}});
    send(sandbox, &["create"], &set).await?.success();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_purge_what_runs_stays_also_in_the_namespace_of_the_webhook() -> Outcome {
    let sandbox = Sandbox::start().await?;
    let plugin = Plugin::of(&sandbox)?;
    plugin.run(INSTALL).await?.ended(0);
    for namespace in ["tf", NAMESPACE] {
        running(&sandbox, namespace).await?;
    }
    plugin.run("uninstall --orphan --purge --yes").await?.ended(2);
    plugin.run("uninstall --keep-crds=false --yes").await?.ended(2).with(&["--purge"]);
    let said = plugin.run("uninstall --orphan --keep-crds --yes").await?.ended(0);
    said.with(&["keeps    Namespace/opensdn-system: has data"]);
    for namespace in ["tf", NAMESPACE] {
        stays(&sandbox, namespace, "managers.tf.tungsten.io", "cluster1").await?;
        stays(&sandbox, namespace, "statefulset", "redis1").await?;
    }
    for gone in [
        ["-n", NAMESPACE, "get", "deployment", webhook::NAME],
        ["-n", NAMESPACE, "get", "configmap", INVENTORY],
    ] {
        kubectl(&sandbox, &gone).await?.refused(&["not found"]);
    }
    kubectl(&sandbox, &["get", "namespace", "opensdn-operator"]).await?.refused(&["not found"]);
    Ok(())
}

/// As its pods write it.
fn configuration() -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": webhook::NAME, "labels": {MANAGED_BY_LABEL: webhook::NAME}},
        "webhooks": [{"name": "ours.validate.opensdn.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Ignore", "clientConfig": {"service": {"namespace": NAMESPACE, "name": webhook::NAME}},
            "rules": [{"apiGroups": ["tf.tungsten.io"], "apiVersions": ["*"], "resources": ["managers"], "operations": ["CREATE"]}]}]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_of_another_tool_is_not_removed() -> Outcome {
    let sandbox = Sandbox::start().await?;
    let plugin = Plugin::of(&sandbox)?;
    let apply = ["apply", "--server-side", "-k", BASE];
    let taken = async || kubectl(&sandbox, &apply).await.is_ok_and(|said| said.ok);
    eventually("the base is taken", taken).await;
    send(&sandbox, &["create"], &configuration()).await?.success();
    let secret = ["-n", NAMESPACE, "create", "secret", "generic", webhook::CA_SECRET];
    kubectl(&sandbox, &secret).await?.success();
    for line in ["uninstall --yes", "uninstall --yes --control-namespace elsewhere"] {
        let said = plugin.run(line).await?.ended(0);
        assert!(said.out.starts_with("nothing to remove"), "{line}: {}", said.out);
        said.with(&["is not of this installation, and stays"]);
    }
    stays(&sandbox, NAMESPACE, "secret", webhook::CA_SECRET).await?;
    stays(&sandbox, NAMESPACE, "deployment", webhook::NAME).await?;
    read(&sandbox, &["validatingwebhookconfiguration", webhook::NAME]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inventory_that_a_tenant_has_written_counts_for_nothing() -> Outcome {
    let sandbox = Sandbox::start().await?;
    let plugin = Plugin::of(&sandbox)?;
    // What a true one looks like, with another registry.
    plugin.run(&format!("{INSTALL} --set registry=evil.example.com/x")).await?.ended(0);
    let mut inventory = read(&sandbox, &["-n", NAMESPACE, "configmap", INVENTORY]).await?;
    plugin.run("uninstall --yes").await?.ended(0);
    kubectl(&sandbox, &["create", "namespace", "tenant"]).await?.success();
    let labels = inventory["metadata"]["labels"].take();
    inventory["metadata"] = json!({"name": INVENTORY, "namespace": "tenant", "labels": labels});
    send(&sandbox, &["create"], &inventory).await?.success();

    let said = plugin.run("uninstall --yes").await?.ended(0);
    assert!(said.out.starts_with("nothing to remove"), "{}", said.out);
    for place in ["", "--control-namespace tenant"] {
        let said = plugin.run(&format!("install --dry-run=server {place}")).await?;
        assert!(!said.err.contains("evil.example.com"), "{}", said.err);
    }
    let bundle = plugin.run("support-bundle --dry-run").await?.ended(0);
    assert!(!bundle.out.contains("/namespaces/tenant/"), "{}", bundle.out);
    Ok(())
}
