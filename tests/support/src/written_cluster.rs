//! A cluster as far as `status` reads it, where nothing runs: a Manager with the status that the operator writes, and nodes
//! with a pod each. Deliberately not here: simulated nodes, whose pods become ready (`sandbox`).

use std::ops::Range;

use opensdn_crds::component::{COMPONENTS, Count};
use serde_json::{Value, json};

use crate::Failed;
use crate::installer::install_crds;
use crate::kubectl::{kubectl, send};
use crate::sandbox::Sandbox;

/// A Manager of these kinds of services, with images for all of their containers, each named after its kind.
#[must_use]
pub fn manager(kinds: &[&str]) -> Value {
    let mut services = serde_json::Map::new();
    for facts in COMPONENTS.iter().filter(|facts| kinds.contains(&facts.kind)) {
        let image = |name: &str| json!({"name": name, "image": format!("registry.example.com/{name}:R24.1")});
        let containers: Vec<Value> = facts.containers.all().map(image).collect();
        let item = json!({"metadata": {"name": format!("{}1", facts.kind.to_lowercase())},
            "spec": {"serviceConfiguration": {"containers": containers}}});
        let item = if facts.count == Count::Many { json!([item]) } else { item };
        services.insert(facts.key.to_owned(), item);
    }
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": "cluster1", "namespace": "tf"}, "spec": {"services": services}})
}

/// A Manager with the status that the operator writes when all is well.
///
/// # Errors
/// Something cannot be created.
pub async fn written(sandbox: &Sandbox) -> Result<(), Failed> {
    install_crds(&sandbox.client()?, &opensdn_crds::all()).await?;
    kubectl(sandbox, &["create", "namespace", "tf"]).await?.success();
    // No controller runs that would make it, and no pod is without.
    kubectl(sandbox, &["create", "serviceaccount", "default", "-n", "tf"]).await?.success();
    send(sandbox, &["create"], &manager(&["Redis", "Vrouter"])).await?.success();
    let row = |kind: &str| {
        json!({"kind": kind, "name": format!("{}1", kind.to_lowercase()), "ready": true,
        "reason": "PodsReady", "message": "1 of 1 pods ready", "versions": ["R24.1"]})
    };
    let ready = json!({"type": "Ready", "status": "True", "reason": "ServicesReady", "message": "2 of 2 services ready",
        "lastTransitionTime": "2026-11-24T12:00:00Z"});
    let status = json!({"status": {"observedGeneration": 1, "services": [row("Redis"), row("Vrouter")], "conditions": [ready]}});
    let patch = [
        "patch",
        "managers.tf.tungsten.io",
        "cluster1",
        "-n",
        "tf",
        "--subresource=status",
        "--type=merge",
        "-p",
    ];
    kubectl(sandbox, &[&patch[..], &[&status.to_string()]].concat()).await?.success();
    Ok(())
}

/// Nodes of these numbers, each with a pod of the vrouter.
///
/// # Errors
/// One cannot be created.
pub async fn nodes_with_vrouters(sandbox: &Sandbox, numbers: Range<usize>) -> Result<(), Failed> {
    let node = |number: usize| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{number}")}});
    let pod = |number: usize| {
        json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("v{number}"), "namespace": "tf", "labels": {"tf_manager": "vrouter", "vrouter": "vrouter1"}},
        "spec": {"nodeName": format!("n{number}"), "serviceAccountName": "default", "automountServiceAccountToken": false,
            "containers": [{"name": "agent", "image": "registry.example.com/agent:R24.1"}]}})
    };
    let items: Vec<Value> = numbers.flat_map(|number| [node(number), pod(number)]).collect();
    send(sandbox, &["create"], &json!({"apiVersion": "v1", "kind": "List", "items": items}))
        .await?
        .success();
    Ok(())
}
