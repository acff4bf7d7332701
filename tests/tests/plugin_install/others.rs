//! Where others have been before: another namespace, objects and fields of other managers.

use opensdn_testing::eventually::eventually;
use opensdn_testing::installer::install_crds;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::written_cluster::manager;
use opensdn_testing::{Failed, Outcome};
use serde_json::json;

use super::{Plugin, only_api_server};
use crate::plugin_status::document;

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
    // Held to its schema.
    let (listed, code) = document(&sandbox.kubeconfig(), &["prune", "--dry-run=server"])?;
    assert_eq!(code, 0, "{listed:#}");
    let names: Vec<&str> = listed["removed"]
        .as_array()
        .ok_or("no list")?
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(names, ["even-quorum", "opensdn-operator", "opensdn-operator"], "{listed:#}");
    assert_eq!(listed["kept"][0]["name"], "tf");
    let plan = plugin.run("prune").await?.ended(5).with(&["even-quorum"]);
    let text = [plan.out.as_str(), plan.err.as_str()].concat();
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    plugin.run("prune --yes").await?.ended(0);
    kubectl(&sandbox, &["get", "admissionpolicy", "even-quorum"]).await?.refused(&["not found"]);
    kubectl(&sandbox, &["get", "admissionpolicy", "plaintext"]).await?.success();
    kubectl(&sandbox, &["get", "namespace", "tf"]).await?.success();
    let (listed, code) = document(&sandbox.kubeconfig(), &["prune", "--yes"])?;
    assert_eq!((code, &listed["removed"]), (0, &json!([])));
    Ok(())
}

/// Refuses objects of that group, resource and name.
fn admission_policy(group: &str, resource: &str, name: &str) -> [serde_json::Value; 2] {
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-such-thing"}, "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [group], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": [resource]}]},
            "validations": [{"expression": format!("object.metadata.name != '{name}'"), "message": "not in this cluster"}]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-such-thing"}, "spec": {"policyName": "no-such-thing", "validationActions": ["Deny"]}});
    [policy, binding]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_cluster_would_refuse_is_known_before_the_first_object_is_written() -> Outcome {
    let sandbox = only_api_server().await?;
    let plugin = Plugin::of(&sandbox)?;
    let refusing =
        admission_policy("rbac.authorization.k8s.io", "clusterroles", "opensdn-operator");
    for object in refusing {
        send(&sandbox, &["create"], &object).await?.success();
    }
    let role = [
        "create",
        "clusterrole",
        "opensdn-operator",
        "--verb=get",
        "--resource=pods",
        "--dry-run=server",
    ];
    let enforced = async || kubectl(&sandbox, &role).await.is_ok_and(|said| !said.ok);
    eventually("the policy of the cluster is enforced", enforced).await;
    let refused = plugin.run("install --yes --wait=false").await?.ended(5);
    refused.with(&[
        "ClusterRole/opensdn-operator is refused: ",
        "not in this cluster",
        "nothing has been changed",
    ]);
    let check = plugin.run("check --pre --only K003").await?.ended(1);
    let said = check.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("1 of ") && said.contains("would be refused"), "{said}");
    assert!(said.contains("ClusterRole/opensdn-operator: "), "{said}");
    // With values that install no operator nothing is refused.
    let folder = tempfile::tempdir()?;
    let values = folder.path().join("values.yaml");
    std::fs::write(&values, "operator: {enabled: false}")?;
    let command = format!("check --pre --only K003 -f {}", values.display());
    plugin.run(&command).await?.ended(0);
    plugin.run("check --only K003 --set operator.enabled=false").await?.ended(2);
    let without = format!("check --only K003 -f {}", values.display());
    plugin.run(&without).await?.ended(2).with(&["has values of an installation", "check --pre"]);
    for namespace in ["opensdn-system", "opensdn-operator"] {
        kubectl(&sandbox, &["get", "namespace", namespace]).await?.refused(&["not found"]);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_tf_operator_runs_ours_is_not_installed_beside_it() -> Outcome {
    let sandbox = only_api_server().await?;
    let plugin = Plugin::of(&sandbox)?;
    let create = ["create", "deployment", "tf-operator", "--image=tf-operator:1"];
    kubectl(&sandbox, &create).await?.success();
    // Whoever has a namespace may call a Deployment so.
    plugin.run("install --yes --wait=false --dry-run=server").await?.ended(0);
    // A tenant's account has some right in many a cluster.
    let little = "--clusterrole=system:service-account-issuer-discovery";
    let account = "--serviceaccount=default:default";
    kubectl(&sandbox, &["create", "clusterrolebinding", "little", little, account])
        .await?
        .success();
    plugin.run("install --yes --wait=false --dry-run=server").await?.ended(0);
    // However it is bound.
    let group = "--group=system:serviceaccounts:default";
    let bind = ["create", "clusterrolebinding", "all", "--clusterrole=cluster-admin", group];
    kubectl(&sandbox, &bind).await?.success();
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_manager_and_what_looks_after_it_there_hold_nothing_up() -> Outcome {
    let sandbox = only_api_server().await?;
    let plugin = Plugin::of(&sandbox)?;
    kubectl(&sandbox, &["create", "namespace", "lab"]).await?.success();
    install_crds(&sandbox.client()?, &opensdn_crds::all()).await?;
    let mut of_tenant = manager(&["Redis"]);
    of_tenant["metadata"]["namespace"] = json!("lab");
    send(&sandbox, &["create"], &of_tenant).await?.success();
    let create = ["-n", "lab", "create", "deployment", "tf-operator", "--image=tf-operator:1"];
    kubectl(&sandbox, &create).await?.success();
    let role =
        ["-n", "lab", "create", "role", "own", "--verb=*", "--resource=managers.tf.tungsten.io"];
    kubectl(&sandbox, &role).await?.success();
    let account = "--serviceaccount=lab:default";
    let bind = ["-n", "lab", "create", "rolebinding", "own", "--role=own", account];
    kubectl(&sandbox, &bind).await?.success();
    let install = "install --yes --wait=false --adopt --dry-run=server";
    let said = plugin.run(install).await?.ended(0);
    assert!(!said.out.contains("tf-operator is scaled"), "{}", said.out);
    let whole = format!("{}{}", said.out, said.err);
    assert!(whole.contains("no operator looks after Manager lab/"), "{whole}");
    // Where ours is to look after that Manager there would be two.
    let there = format!("{install} --set operator.watchedNamespaces=lab");
    plugin.run(&there).await?.ended(0).with(&["Deployment/lab/tf-operator is scaled to 0"]);
    Ok(())
}

/// Gives the account of tf-operator its rights in the whole cluster.
async fn may_do_everything(sandbox: &Sandbox, namespace: &str) -> Outcome {
    let account = format!("--serviceaccount={namespace}:default");
    let bind =
        ["create", "clusterrolebinding", "tf-operator", "--clusterrole=cluster-admin", &account];
    kubectl(sandbox, &bind).await?.success();
    Ok(())
}

/// What tf-operator has made of a Manager, with pods that run.
async fn made_by_tf_operator(sandbox: &Sandbox) -> Outcome {
    for namespace in ["tf", "tf-lab", "own"] {
        kubectl(sandbox, &["create", "namespace", namespace]).await?.success();
    }
    for namespace in ["tf", "own"] {
        let create =
            ["-n", namespace, "create", "deployment", "tf-operator", "--image=tf-operator:1"];
        kubectl(sandbox, &create).await?.success();
    }
    may_do_everything(sandbox, "tf").await?;
    install_crds(&sandbox.client()?, &opensdn_crds::all()).await?;
    for namespace in ["tf", "tf-lab"] {
        let mut object = manager(&["Redis"]);
        object["metadata"]["namespace"] = json!(namespace);
        send(sandbox, &["create"], &object).await?.success();
    }
    let redis = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Redis", "metadata": {"name": "redis1", "namespace": "tf"},
        "spec": {"serviceConfiguration": {"containers": [{"name": "redis", "image": "redis:1"}]}}});
    send(sandbox, &["create"], &redis).await?.success();
    let stored = read(sandbox, &["-n", "tf", "redis.tf.tungsten.io", "redis1"]).await?;
    let owner = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Redis", "name": "redis1", "controller": true,
        "uid": stored["metadata"]["uid"]});
    let labels = json!({"tf_manager": "redis", "redis": "redis1"});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "redis1-redis-statefulset", "namespace": "tf", "labels": labels, "ownerReferences": [owner]},
        "spec": {"serviceName": "", "replicas": 2, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "redis", "image": "redis:1"}]}}}});
    send(sandbox, &["create"], &set).await?.success();
    let run = async || {
        let of_both = [
            ["-n", "tf", "statefulset", "redis1-redis-statefulset"],
            ["-n", "tf", "deployment", "tf-operator"],
        ];
        let mut ready = Vec::new();
        for one in of_both {
            let stored = read(sandbox, &one).await.unwrap_or_default();
            ready.push(stored["status"]["readyReplicas"].as_i64());
        }
        ready == [Some(2), Some(1)]
    };
    eventually("the pods of tf-operator run", run).await;
    Ok(())
}

async fn pods(sandbox: &Sandbox, labels: &str) -> Result<Vec<serde_json::Value>, Failed> {
    let found = read(sandbox, &["pods", "-n", "tf", "-l", labels]).await?;
    let found = found["items"].as_array().cloned().unwrap_or_default();
    let each = found.iter().map(|pod| json!([pod["metadata"]["uid"], pod["status"]["startTime"]]));
    Ok(each.collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_tf_operator_runs_is_taken_over_with_adopt_and_no_pod_of_it_restarts_by_that()
-> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(2).start().await?;
    let plugin = Plugin::of(&sandbox)?;
    made_by_tf_operator(&sandbox).await?;
    let before = pods(&sandbox, "tf_manager=redis").await?;
    let replicas_in = async |namespace: &str| {
        let stored = read(&sandbox, &["-n", namespace, "deployment", "tf-operator"]).await?;
        Ok::<_, Failed>(stored["spec"]["replicas"].clone())
    };
    let replicas = async || replicas_in("tf").await;
    let is_installed = async || kubectl(&sandbox, &["get", "namespace", "opensdn-operator"]).await;

    plugin.run("install --yes --wait=false").await?.ended(5).with(&["--adopt"]);
    let unwatched = plugin.run("install --yes --wait=false --adopt").await?.ended(5);
    unwatched.with(&["Manager tf-lab/cluster1", "--set operator.watchedNamespaces=tf,tf-lab"]);
    let watched = "--adopt --set operator.watchedNamespaces=tf,tf-lab";
    let shown = plugin.run(&format!("install {watched} --dry-run=server -o json")).await?.ended(0);
    let taken = &shown.document()?["takeOver"];
    shown.with(&["Redis tf/redis1: its 2 pods are recreated one after the other"]);
    assert_eq!(taken["operators"][0]["name"], "tf-operator");
    assert_eq!(
        (&taken["services"][0]["pods"], &taken["services"][0]["ready"]),
        (&json!(2), &json!(2))
    );
    // Without a terminal nobody can confirm it.
    plugin.run(&format!("install --wait=false {watched}")).await?.ended(5);
    assert_eq!(replicas().await?, 1, "nothing has been changed");
    is_installed().await?.refused(&["not found"]);

    a_pod_that_stays_is_waited_for_each_time(&sandbox, &plugin, watched).await?;
    plugin.run(&format!("install --yes --wait=false {watched}")).await?.ended(0);
    assert_eq!(replicas().await?, 0);
    assert_eq!(replicas_in("own").await?, 1, "it is only called so");
    assert_eq!(pods(&sandbox, "app=tf-operator").await?, Vec::<serde_json::Value>::new());
    is_installed().await?.success();
    // Whatever restarts is the operator's doing, which runs nowhere here.
    assert_eq!(pods(&sandbox, "tf_manager=redis").await?, before);
    let again = plugin.run("install --yes --wait=false").await?.ended(0);
    assert!(!again.err.contains("takes over"), "{}", again.err);
    again.with(&["nothing to change"]);

    // Who starts it again is known by the next run, and by a check.
    kubectl(&sandbox, &["-n", "tf", "scale", "deployment", "tf-operator", "--replicas=1"])
        .await?
        .success();
    plugin.run("install --yes --wait=false").await?.ended(5).with(&["tf-operator runs"]);
    let checked = plugin.run("check --only K005").await?.ended(1);
    assert!(checked.out.contains("tf-operator runs (tf/tf-operator)"), "{}", checked.out);
    Ok(())
}

/// Also by the run that finds it scaled to 0 already.
async fn a_pod_that_stays_is_waited_for_each_time(
    sandbox: &Sandbox,
    plugin: &Plugin,
    watched: &str,
) -> Outcome {
    let found = read(sandbox, &["pods", "-n", "tf", "-l", "app=tf-operator"]).await?;
    let pod = found["items"][0]["metadata"]["name"].as_str().ok_or("it has no pod")?.to_owned();
    let finalizers = async |finalizers: serde_json::Value| {
        let patch = json!({"metadata": {"finalizers": finalizers}}).to_string();
        kubectl(sandbox, &["-n", "tf", "patch", "pod", &pod, "--type=merge", "-p", &patch]).await
    };
    finalizers(json!(["example.org/hangs"])).await?.success();
    for _ in 0..2 {
        let command = format!("install --yes --wait=false --timeout 3s {watched}");
        let late = plugin.run(&command).await?.ended(4);
        late.with(&[&pod, "the same command has continued", "--replicas=1"]);
        kubectl(sandbox, &["get", "namespace", "opensdn-operator"]).await?.refused(&["not found"]);
    }
    // What it would be refused for it is refused for all the same.
    let narrow = "--adopt --set operator.watchedNamespaces=tf";
    plugin
        .run(&format!("install --yes --wait=false {narrow}"))
        .await?
        .ended(5)
        .with(&["tf-lab/cluster1"]);
    finalizers(json!(null)).await?.success();
    let gone = async || {
        kubectl(sandbox, &["-n", "tf", "get", "pod", &pod]).await.is_ok_and(|said| !said.ok)
    };
    eventually("the pod is gone", gone).await;
    // Nothing of it runs any more, and what it made still is to be taken over.
    plugin
        .run(&format!("install --yes --wait=false {narrow}"))
        .await?
        .ended(5)
        .with(&["tf-lab/cluster1"]);
    let wide = "--adopt --set operator.watchedNamespaces=tf,tf-lab";
    let shown = plugin.run(&format!("install {wide} --dry-run=server -o json")).await?.ended(0);
    let shown = shown.with(&["takes over what tf-operator ran", "no operator is in its place"]);
    assert_eq!(shown.document()?["takeOver"]["services"][0]["kind"], "Redis");
    Ok(())
}
