//! `diff -f` of manifests: what an apply of them would change is shown field by field, by a real API server, and nothing
//! else: no defaults, no secrets.

use std::path::Path;

use opensdn_testing::Outcome;
use opensdn_testing::installer::install_crds;
use opensdn_testing::kubectl::{kubectl, read};
use opensdn_testing::sandbox::Sandbox;
use serde_json::Value;

use super::{Plugin, only_api_server, said};

const MANIFESTS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {color: blue, size: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1", ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: default}
stringData: {password: hunter2-hunter2}
---
apiVersion: tf.tungsten.io/v1alpha1
kind: Zookeeper
metadata: {name: zookeeper1}
spec:
  commonConfiguration: {}
  serviceConfiguration: {containers: [{name: zookeeper, image: "example.com/zookeeper:1"}]}
"#;

async fn applied(sandbox: &Sandbox, folder: &Path) -> Outcome {
    install_crds(&sandbox.client()?, &opensdn_crds::all()).await?;
    let file = folder.join("all.yaml");
    std::fs::write(&file, MANIFESTS)?;
    let file = file.display().to_string();
    kubectl(sandbox, &["apply", "--server-side", "-f", &file]).await?.success();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_as_its_manifests_say_does_not_differ_whatever_the_api_server_has_filled_in()
-> Outcome {
    let (sandbox, folder) = (only_api_server().await?, tempfile::tempdir()?);
    let plugin = Plugin::of(&sandbox)?;
    applied(&sandbox, folder.path()).await?;
    let named = format!("diff -f {}", folder.path().display());
    let same = plugin.run(&named).await?.ended(0);
    assert_eq!(same.out, "0 objects differ, 4 equal\n");
    let input = std::fs::File::open(folder.path().join("all.yaml"))?;
    let same = said(&plugin.command("diff --filename -").stdin(input).output().await?).ended(0);
    assert_eq!(same.out, "0 objects differ, 4 equal\n");
    // What client-side apply has set is no conflict to kubectl, and so none here.
    kubectl(&sandbox, &["delete", "configmap", "settings"]).await?.success();
    let file = folder.path().join("all.yaml").display().to_string();
    kubectl(&sandbox, &["apply", "-f", &file]).await?.success();
    plugin.run(&named).await?.ended(0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_apply_of_manifests_would_change_is_shown_by_field_and_nothing_is_written()
-> Outcome {
    let (sandbox, folder) = (only_api_server().await?, tempfile::tempdir()?);
    let plugin = Plugin::of(&sandbox)?;
    applied(&sandbox, folder.path()).await?;
    let patch = [
        "patch",
        "configmap",
        "settings",
        "--type=merge",
        "-p",
        r#"{"data":{"size":"9"}}"#,
        "--field-manager=someone",
    ];
    kubectl(&sandbox, &patch).await?.success();
    let before = read(&sandbox, &["deployment,configmap,secret", "-A"]).await?;
    let changed = MANIFESTS
        .replace("web:1", "web:2")
        .replace("hunter2-hunter2", "other-secret")
        .replace("blue", "red")
        + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: new}}\n\
           ---\n{apiVersion: example.com/v1, kind: Nothing, metadata: {name: x}}\n\
           ---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: wrong}, dta: {}}\n";
    let file = folder.path().join("changed.yaml");
    std::fs::write(&file, changed)?;
    let line = format!("diff -f {}", file.display());
    let differs = plugin.run(&line).await?.ended(1);
    for part in [
        "~ ConfigMap/default/settings\n    .data.color  blue -> red\n    .data.size  9 -> 1  (owned by someone: conflict)\n",
        "~ Deployment/default/web\n    .spec.template.spec.containers[0].image  example.com/web:1 -> example.com/web:2\n",
        "~ Secret/default/login\n    .data.password  sha256:",
        "+ ConfigMap/default/new\n",
        "! Nothing/x\n    the API server would refuse it: the cluster does not serve Nothing of example.com/v1",
        "! ConfigMap/default/wrong\n",
        "6 objects differ (1 with conflicts, 2 refused), 1 equal\n",
    ] {
        assert!(differs.out.contains(part), "{part:?} is missing in: {}", differs.out);
    }
    assert!(!differs.out.contains("Zookeeper"), "{}", differs.out);
    let json = plugin.run(&format!("{line} -o json")).await?.ended(1);
    assert_eq!(json.document()?["kind"], "ManifestDiff");
    let encoded = ["aHVudGVyMi1odW50ZXIy", "b3RoZXItc2VjcmV0"];
    for out in [&differs.out, &json.out] {
        assert!(encoded.iter().all(|secret| !out.contains(secret)), "{out}");
    }
    let shown = plugin.run(&format!("{line} -o json --show-secrets")).await?.ended(1);
    assert!(encoded.iter().all(|secret| shown.out.contains(secret)), "{}", shown.out);
    let summary = plugin.run(&format!("{line} --summary")).await?.ended(1);
    assert_eq!(summary.out.lines().count(), 1, "{}", summary.out);
    let names = plugin.run(&format!("{line} -o name")).await?.ended(1);
    assert!(names.out.contains("deployment.apps/web\n"), "{}", names.out);
    assert_eq!(
        versions(&read(&sandbox, &["deployment,configmap,secret", "-A"]).await?),
        versions(&before)
    );
    refused(&plugin, folder.path(), &line).await
}

/// Values beside manifests, and a namespace that is not that of the objects.
async fn refused(plugin: &Plugin, folder: &Path, line: &str) -> Outcome {
    let values = folder.join("values.yaml");
    std::fs::write(&values, "profile: ha\n")?;
    let mixed = plugin.run(&format!("{line} -f {}", values.display())).await?.ended(2);
    mixed.with(&["changed.yaml has manifests, and", "values.yaml has none", "give either"]);
    let set = plugin.run(&format!("{line} --set profile=ha")).await?.ended(2);
    set.with(&["--set and --profile are of values"]);
    plugin.run(&format!("{line} -n other")).await?.ended(2).with(&["--namespace is other"]);
    plugin.run(&format!("diff -f {}", values.display())).await?.ended(1);
    Ok(())
}

/// What each object was at.
fn versions(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|one| one["metadata"]["resourceVersion"].to_string()).collect()
}
