//! From an empty cluster to one whose webhook answers, and back to the same list of objects.

use std::collections::BTreeSet;

use opensdn_deploy::names::NAMESPACE;
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, read};
use opensdn_testing::product::Installation;
use opensdn_testing::sandbox::{Cluster, Sandbox};
use opensdn_testing::{Failed, Outcome};
use serde_json::Value;

use super::{Plugin, killed_at, rendered, said};

/// Every object of the cluster, but for what it makes by itself all the time.
pub(crate) async fn everything(cluster: &Cluster) -> Result<BTreeSet<String>, Failed> {
    let kinds = kubectl(cluster, &["api-resources", "--verbs=list", "-o", "name"]).await?;
    let kinds: Vec<&str> =
        kinds.success().lines().filter(|kind| !kind.starts_with("events")).collect();
    let format =
        r#"jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{"\n"}{end}"#;
    let listed = kubectl(cluster, &["get", &kinds.join(","), "-A", "-o", format]).await?;
    Ok(listed.success().lines().map(str::to_owned).collect())
}

/// Which fields are ours since when: an apply that changes something gives a new time.
async fn writes(cluster: &Cluster) -> Result<Vec<Value>, Failed> {
    let mut found = Vec::new();
    for kind in
        ["deployments", "clusterroles", "admissionpolicies", "crds", "configmaps", "namespaces"]
    {
        let list = read(
            cluster,
            &[
                kind,
                "-A",
                "--show-managed-fields",
                "-l",
                "app.kubernetes.io/managed-by=kubectl-opensdn",
            ],
        )
        .await?;
        for object in list["items"].as_array().into_iter().flatten() {
            let fields = object["metadata"]["managedFields"].as_array().into_iter().flatten();
            found.extend(fields.filter(|one| one["manager"] == "kubectl-opensdn").cloned());
        }
    }
    assert!(found.len() > 30, "{found:?}");
    Ok(found)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_an_empty_cluster_to_a_webhook_that_answers_and_back() -> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(3).start().await?;
    let plugin = Plugin::of(&sandbox)?;
    let before = everything(&sandbox).await?;

    let asked = plugin.run("install").await?.ended(5);
    assert_eq!(asked.out, "");
    asked.with(&[
        "context ",
        sandbox.api_server_url(),
        " objects, 20 of them CRDs: will create ",
        "no terminal to ask on",
        "--yes",
    ]);
    plugin.run("install --dry-run=server").await?.ended(0);
    plugin.run("install --dry-run=client").await?.ended(0);
    assert_eq!(everything(&sandbox).await?, before, "nothing is written");

    let child = plugin.command("install --yes -o json").spawn()?;
    let deployed = async || {
        let get = ["-n", NAMESPACE, "get", "deployment", "opensdn-webhook"];
        kubectl(&sandbox, &get).await.is_ok_and(|said| said.ok)
    };
    eventually("the programs are applied", deployed).await;
    let product = Installation::built()?.apart(1).prepare(&sandbox).await?;
    product.start_replica(0)?;
    product.start_writer(0)?;
    let installed = said(&child.wait_with_output().await?).ended(0);
    let answer = installed.document()?;
    assert_eq!(answer["kind"], "Installation");
    assert_eq!(
        (&answer["ready"], &answer["counts"]["create"]),
        (&true.into(), &rendered()?.len().into())
    );

    let written = writes(&sandbox).await?;
    let second = plugin.run("install --yes").await?.ended(0);
    assert!(
        second.out.contains("and the webhook answers: 0 objects created, 0 changed"),
        "{}",
        second.out
    );
    second.with(&["nothing to change"]);
    assert_eq!(writes(&sandbox).await?, written, "a second run changes nothing");
    plugin.run("diff").await?.ended(0);

    // Dead, and refusing everything of ours; what writes the configurations lives, as on a node that is lost.
    product.kill_replica(0);
    plugin.run("uninstall").await?.ended(5).with(&["keeps    20 CRDs", "keeps    Namespace/tf"]);
    plugin.run("uninstall --yes").await?.ended(0);
    for kind in [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "clusterroles",
        "namespaces",
    ] {
        let left = kubectl(&sandbox, &["get", kind, "-o", "name"]).await?;
        let ours = left.success().lines().filter(|name| name.contains("opensdn")).count();
        assert_eq!(ours, 0, "{kind}: {}", left.out);
    }
    drop(product);
    kubectl(&sandbox, &["get", "crd", "managers.tf.tungsten.io"]).await?.success();
    let again = plugin.run("uninstall --yes").await?.ended(0);
    assert!(again.out.starts_with("nothing to remove; "), "{}", again.out);
    purged(&sandbox, &plugin, &before).await
}

/// Installed again over what was kept, and removed, first without what is kept and then with everything, killed on the way.
async fn purged(sandbox: &Sandbox, plugin: &Plugin, before: &BTreeSet<String>) -> Outcome {
    let folder = tempfile::tempdir()?;
    plugin.run("install --yes --wait=false").await?.ended(0);
    for write in [1, 7, 14, 20] {
        killed_at(sandbox, folder.path(), "uninstall --yes", write).await?;
    }
    plugin.run("uninstall --yes").await?.ended(0);
    let again = plugin.run("uninstall --yes").await?.ended(0);
    assert!(again.out.starts_with("nothing to remove; "), "{}", again.out);
    plugin.run("install --yes --wait=false").await?.ended(0);
    plugin.run("uninstall --purge --yes").await?.ended(5).with(&["--confirm"]);
    plugin.run("uninstall --purge --confirm other").await?.ended(5);
    for write in [1, 10, 20, 30] {
        killed_at(sandbox, folder.path(), "uninstall --purge --confirm it", write).await?;
    }
    let context = kubectl(sandbox, &["config", "current-context"]).await?;
    let purge = format!("uninstall --purge --confirm {}", context.success().trim());
    plugin.run(&purge).await?.ended(0);
    let same = async || everything(sandbox).await.is_ok_and(|now| now == *before);
    eventually("the cluster has what it had before", same).await;
    let again = plugin.run(&purge).await?.ended(0);
    assert!(again.out.starts_with("nothing to remove"), "{}", again.out);
    Ok(())
}
