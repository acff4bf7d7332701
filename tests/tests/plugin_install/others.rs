//! Where others have been before: another namespace, objects and fields of other managers.

use opensdn_testing::Outcome;
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, read, send};
use serde_json::json;

use super::{Plugin, only_api_server};

const BASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/webhook");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_another_namespace_everything_follows_and_the_plugin_says_where_it_is() -> Outcome {
    let sandbox = only_api_server().await?;
    let plugin = Plugin::of(&sandbox)?;
    let namespaces = "--set namespace=my-webhook --set operator.namespace=my-operator --set operator.watchedNamespaces=one,two";
    plugin.run(&format!("install --yes --wait=false {namespaces}")).await?.ended(0);
    for namespace in ["opensdn-system", "opensdn-operator", "tf"] {
        kubectl(&sandbox, &["get", "namespace", namespace]).await?.refused(&["not found"]);
    }
    let claim = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "UniqueClaim", "metadata": {"name": "by-hand"},
        "spec": {"scope": "s", "key": "k", "holder": {"group": "opensdn.io", "kind": "LinkLocalService", "namespace": "one", "name": "mine"}}});
    let create = ["create", "--dry-run=server"];
    let enforced = async || send(&sandbox, &create, &claim).await.is_ok_and(|said| !said.ok);
    eventually("claims made by hand are refused", enforced).await;
    let account =
        ["create", "--dry-run=server", "--as=system:serviceaccount:my-webhook:opensdn-webhook"];
    let taken = async || send(&sandbox, &account, &claim).await.is_ok_and(|said| said.ok);
    eventually("the webhook's account may make claims", taken).await;
    let old = [
        "create",
        "--dry-run=server",
        "--as=system:serviceaccount:opensdn-system:opensdn-webhook",
        "--as-group=system:masters",
    ];
    send(&sandbox, &old, &claim).await?.refused(&["written by the webhook of OpenSDN only"]);

    // Without values the installation keeps those that it has.
    let again =
        plugin.run("install --yes --wait=false --control-namespace my-webhook").await?.ended(0);
    again.with(&["nothing to change"]);
    let elsewhere = plugin.run("uninstall --dry-run=server").await?.ended(2);
    elsewhere.with(&["--control-namespace my-webhook"]);
    let second = plugin.run("install --yes --wait=false").await?.ended(5);
    second.with(&["is not of this installation", "--control-namespace my-webhook"]);
    kubectl(&sandbox, &["get", "namespace", "opensdn-system"]).await?.refused(&["not found"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_others_are_taken_over_only_with_adopt_and_nothing_restarts() -> Outcome {
    let sandbox = only_api_server().await?;
    let plugin = Plugin::of(&sandbox)?;
    let apply = ["apply", "--server-side", "-k", BASE];
    let taken = async || kubectl(&sandbox, &apply).await.is_ok_and(|said| said.ok);
    eventually("the base is taken", taken).await;
    let of_helm = [
        "-n",
        "opensdn-system",
        "annotate",
        "service",
        "opensdn-webhook",
        "meta.helm.sh/release-name=sdn",
    ];
    kubectl(&sandbox, &of_helm).await?.success();
    let label = [
        "-n",
        "opensdn-system",
        "label",
        "service",
        "opensdn-webhook",
        "app.kubernetes.io/managed-by=Helm",
        "--field-manager=helm",
    ];
    kubectl(&sandbox, &label).await?.success();
    let deployment = ["-n", "opensdn-system", "deployment", "opensdn-webhook"];
    let before = read(&sandbox, &deployment).await?;

    let refused = plugin.run("install --yes --wait=false").await?.ended(5);
    assert_eq!(refused.out, "");
    refused.with(&[
        "is not of this installation: kubectl",
        "--adopt",
        "nothing has been changed",
        "and ",
    ]);
    kubectl(&sandbox, &["get", "namespace", "opensdn-operator"]).await?.refused(&["not found"]);

    plugin.run("install --yes --wait=false --adopt").await?.ended(0);
    let after = read(&sandbox, &deployment).await?;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"], before["spec"], "a pod that need not restart does not");
    let service = read(&sandbox, &["-n", "opensdn-system", "service", "opensdn-webhook"]).await?;
    assert_eq!(service["metadata"]["labels"]["app.kubernetes.io/managed-by"], "kubectl-opensdn");
    assert_eq!(service["metadata"]["annotations"].get("meta.helm.sh/release-name"), None);
    plugin.run("install --yes --wait=false").await?.ended(0).with(&["nothing to change"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicts_are_listed_by_object_field_and_manager_and_forced_for_one_object_alone()
-> Outcome {
    let sandbox = only_api_server().await?;
    let plugin = Plugin::of(&sandbox)?;
    plugin.run("install --yes --wait=false").await?.ended(0);
    plugin.run("diff").await?.ended(0);
    let replicas = r#"{"spec":{"replicas":7}}"#;
    for name in ["opensdn-webhook", "opensdn-webhook-configuration"] {
        let patch = [
            "-n",
            "opensdn-system",
            "patch",
            "deployment",
            name,
            "--type=merge",
            "-p",
            replicas,
            "--field-manager=someone",
        ];
        kubectl(&sandbox, &patch).await?.success();
    }
    let line =
        "Deployment/opensdn-system/opensdn-webhook .spec.replicas is 7 by someone, and would be 3";
    let diff = plugin.run("diff").await?.ended(1);
    assert!(
        diff.out.contains(".spec.replicas  7 -> 3  (owned by someone: conflict)"),
        "{}",
        diff.out
    );
    assert!(diff.out.contains("2 objects differ (2 of others)"), "{}", diff.out);
    let refused = plugin.run("install --yes --wait=false").await?.ended(5);
    refused.with(&[line, "--force-conflicts=Deployment/", "nothing has been changed"]);
    // One of the two is still refused.
    plugin
        .run("install --yes --wait=false --force-conflicts=Deployment/opensdn-webhook")
        .await?
        .ended(5);
    let both = "--force-conflicts=Deployment/opensdn-webhook --force-conflicts=deployment/opensdn-webhook-configuration";
    plugin.run(&format!("install --yes --wait=false {both}")).await?.ended(0);
    plugin.run("diff").await?.ended(0);
    plugin.run("install --yes --force-conflicts=Deployment/none").await?.ended(2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_values_do_not_have_any_more_is_pruned_and_nothing_else() -> Outcome {
    let sandbox = only_api_server().await?;
    let plugin = Plugin::of(&sandbox)?;
    plugin.run("install --yes --wait=false").await?.ended(0);
    let without =
        "--set policies.without=even-quorum,plaintext --set operator.watchedNamespaces=other";
    let said = plugin.run(&format!("install --yes --wait=false {without}")).await?.ended(0);
    said.with(&["kubectl opensdn prune"]);
    // Of the same name, and made by a user in the meantime.
    kubectl(&sandbox, &["delete", "admissionpolicy", "plaintext"]).await?.success();
    let own = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy", "metadata": {"name": "plaintext"},
        "spec": {"module": {"builtIn": "plaintext"}}});
    send(&sandbox, &["create"], &own).await?.success();
    let listed = plugin.run("prune --dry-run=server -o json").await?.ended(0).document()?;
    let names: Vec<&str> = listed["removed"]
        .as_array()
        .ok_or("no list")?
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(names, ["even-quorum", "opensdn-operator", "opensdn-operator"], "{listed:#}");
    assert_eq!(listed["kept"][0]["name"], "tf");
    plugin.run("prune").await?.ended(5);
    plugin.run("prune --yes").await?.ended(0);
    kubectl(&sandbox, &["get", "admissionpolicy", "even-quorum"]).await?.refused(&["not found"]);
    kubectl(&sandbox, &["get", "admissionpolicy", "plaintext"]).await?.success();
    kubectl(&sandbox, &["get", "namespace", "tf"]).await?.success();
    let listed = plugin.run("prune --yes -o json").await?.ended(0).document()?;
    assert_eq!(listed["removed"], json!([]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_tf_operator_runs_ours_is_not_installed_beside_it() -> Outcome {
    let sandbox = only_api_server().await?;
    let plugin = Plugin::of(&sandbox)?;
    let create = ["create", "deployment", "tf-operator", "--image=tf-operator:1"];
    kubectl(&sandbox, &create).await?.success();
    let refused = plugin.run("install --yes --wait=false").await?.ended(5);
    refused.with(&["Deployment/default/tf-operator runs", "policies.tfOperator=true"]);
    let note = "what it cannot do with manifests that are right is not judged: --set policies.tfOperator=true";
    let unjudged = "--set operator.enabled=false --dry-run=server";
    plugin.run(&format!("install --yes --wait=false {unjudged}")).await?.ended(0).with(&[note]);
    let judged = "--set operator.enabled=false --set policies.tfOperator=true";
    let said = plugin.run(&format!("install --yes --wait=false {judged}")).await?.ended(0);
    assert!(!said.err.contains(note), "{}", said.err);
    kubectl(&sandbox, &["get", "admissionpolicy", "tf-operator-limits"]).await?.success();
    kubectl(&sandbox, &["get", "namespace", "opensdn-operator"]).await?.refused(&["not found"]);
    let scale = ["scale", "deployment", "tf-operator", "--replicas=0"];
    kubectl(&sandbox, &scale).await?.success();
    plugin.run("install --yes --wait=false --profile default").await?.ended(0);
    Ok(())
}
