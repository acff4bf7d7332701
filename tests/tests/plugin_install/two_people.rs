//! An install and a removal at once, and a removal that is held up.

use std::collections::BTreeMap;

use opensdn_deploy::names::{INVENTORY, NAMESPACE};
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::json;

use super::whole::everything;
use super::{Plugin, only_api_server};

const INSTALL: &str = "install --yes --wait=false";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_install_changes_nothing_while_a_removal_is_at_work_and_takes_up_one_that_was_killed()
-> Outcome {
    let sandbox = Sandbox::start().await?;
    let plugin = Plugin::of(&sandbox)?;
    let before = everything(&sandbox).await?;
    plugin.run(INSTALL).await?.ended(0);
    // A tenant's, which holds the removal for as long as he likes.
    let held = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "VrouterProfile",
        "metadata": {"name": "held", "namespace": "default", "finalizers": ["example.com/hold"]}, "spec": {"moreConfig": {"A": "b"}}});
    send(&sandbox, &["create"], &held).await?.success();
    let context = kubectl(&sandbox, &["config", "current-context"]).await?;
    let purge = format!("uninstall --purge --confirm {}", context.success().trim());
    let planned = plugin.run(&format!("{purge} --dry-run=server")).await?.ended(0);
    planned.with(&["finalizers of others", "example.com/hold"]);

    let mut removal = plugin.command(&purge).spawn()?;
    let gone = async || {
        let role =
            kubectl(&sandbox, &["get", "clusterrole", "opensdn-webhook", "-o", "name"]).await;
        role.is_ok_and(|said| said.out.is_empty())
    };
    eventually("rights go, whatever a tenant holds", gone).await;
    assert!(removal.try_wait()?.is_none(), "it waits for the CRD");
    let inventory = read(&sandbox, &["-n", NAMESPACE, "configmap", INVENTORY]).await?;
    assert_eq!(inventory["data"]["state"], "removing");
    plugin.run(INSTALL).await?.ended(5).with(&["a removal of this installation is at work"]);
    let status = plugin.run("status").await?;
    status.with(&["a removal has started and has not ended"]);
    removal.kill().await?;

    let loose = [
        "patch",
        "vrouterprofiles.opensdn.io",
        "held",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ];
    kubectl(&sandbox, &loose).await?.success();
    let gone = async || {
        let crds = kubectl(&sandbox, &["get", "crd", "-o", "name"]).await;
        crds.is_ok_and(|said| !said.out.contains("opensdn.io"))
    };
    eventually("the CRDs are gone", gone).await;
    plugin.run(INSTALL).await?.ended(0).with(&["a removal was interrupted"]);
    let inventory = read(&sandbox, &["-n", NAMESPACE, "configmap", INVENTORY]).await?;
    assert_eq!(inventory["data"]["state"], "applied");
    plugin.run("diff").await?.ended(0);
    plugin.run(&purge).await?.ended(0);
    let same = async || everything(&sandbox).await.is_ok_and(|now| now == before);
    eventually("the cluster has what it had before", same).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inventory_that_was_shortened_hides_nothing_from_a_removal() -> Outcome {
    let sandbox = only_api_server().await?;
    let plugin = Plugin::of(&sandbox)?;
    plugin.run(INSTALL).await?.ended(0);
    let context = kubectl(&sandbox, &["config", "current-context"]).await?;
    let purge = format!(
        "uninstall --purge --confirm {} --dry-run=server -o json",
        context.success().trim()
    );
    let kinds = async || -> Result<BTreeMap<String, usize>, Failed> {
        let answer = plugin.run(&purge).await?.ended(0).document()?;
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for one in answer["removed"].as_array().into_iter().flatten() {
            *kinds.entry(one["kind"].to_string()).or_default() += 1;
        }
        Ok(kinds)
    };
    let mut whole = kinds().await?;
    let shorten = [
        "-n",
        NAMESPACE,
        "patch",
        "configmap",
        INVENTORY,
        "--type=merge",
        "-p",
        r#"{"data":{"objects":"[]"}}"#,
    ];
    kubectl(&sandbox, &shorten).await?.success();
    let left = kinds().await?;
    // Whose the namespaces are is not known any more.
    whole.remove("\"Namespace\"");
    assert!(whole.len() > 8, "{whole:?}");
    for (kind, number) in &whole {
        assert!(left.get(kind) >= Some(number), "{kind}: {left:?}");
    }
    Ok(())
}
