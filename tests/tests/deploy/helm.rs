//! The Helm chart renders what the plugin renders: Helm itself says so, for the default values and others.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use opensdn_deploy::Values;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use super::kustomize::plain;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/helm/opensdn");
/// Helm that has been built from its modules does not know the version of Kubernetes that a released one assumes.
const TEMPLATE: [&str; 5] = ["template", "opensdn", CHART, "--kube-version", "1.36.0"];
const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/helm/build.sh");
const KEEP: &str = "helm.sh/resource-policy";

/// Helm; built when it is not there yet.
fn built() -> Result<PathBuf, Failed> {
    let built = Command::new(BUILD).stderr(Stdio::inherit()).output()?;
    if !built.status.success() {
        return Err(format!("{BUILD} has failed: {}", built.status).into());
    }
    Ok(PathBuf::from(String::from_utf8(built.stdout)?.trim()))
}

/// What Helm says to the arguments and the values: its output, or why it refused.
fn helm(
    program: &PathBuf,
    arguments: &[&str],
    values: &Value,
) -> Result<Result<String, String>, Failed> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("values.json");
    std::fs::write(&file, values.to_string())?;
    let output = Command::new(program)
        .args(arguments)
        .arg("--values")
        .arg(&file)
        .env("HOME", folder.path())
        .env("KUBECONFIG", folder.path().join("none"))
        .output()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let out = text(output.stdout);
    Ok(if output.status.success() { Ok(out) } else { Err(text(output.stderr)) })
}

fn template(program: &PathBuf, values: &Value) -> Result<Vec<Value>, Failed> {
    let arguments = [&TEMPLATE[..], &["--include-crds"]].concat();
    Ok(serde_saphyr::from_multiple::<Value>(&helm(program, &arguments, values)??)?)
}

/// What they are compared by, in one order, and without what keeps a namespace with data from `helm uninstall`.
fn comparable(objects: Vec<Value>) -> Vec<String> {
    let one = |mut object: Value| {
        let is_namespace = object["kind"] == "Namespace";
        let metadata = object["metadata"].as_object_mut();
        if is_namespace && let Some(metadata) = metadata {
            metadata.retain(|key, value| key != "annotations" || value.get(KEEP).is_none());
        }
        plain(object).to_string()
    };
    let mut objects: Vec<String> = objects.into_iter().map(one).collect();
    objects.sort();
    objects
}

#[test]
fn the_chart_renders_the_objects_of_the_plugin() -> Outcome {
    let program = built()?;
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    for values in [
        json!({}),
        json!({"profile": "ha"}),
        json!({"profile": "single-node", "webhook": {"replicas": 2}}),
        json!({"registry": "registry.local:5000/sdn", "imagePullSecrets": ["pull", "more"]}),
        json!({"namespace": "sdn", "operator":
            {"namespace": "sdn-operator", "watchedNamespaces": ["one", "two"]}}),
        json!({"webhook": {"image": {"digest": digest}, "logLevel": "debug", "configurationReplicas": 1},
            "operator": {"image": {"name": "other", "tag": "1.0"}, "replicas": 1, "logLevel": "warn"}}),
        json!({"operator": {"enabled": false}, "policies": {"tfOperator": true}}),
        json!({"platform": "openshift", "operator": {"watchedNamespaces": ["tf", "lab"]}}),
        json!({"platform": "openstack", "apiServerPorts": [16443]}),
        json!({"policies": {"enabled": false}}),
        json!({"policies": {"secretKeys": true, "mode": "warn", "without": ["even-quorum"]}}),
    ] {
        let typed: Values = serde_json::from_value(values.clone())?;
        assert_eq!(typed.problems(), [], "{values}");
        let mut expected: Vec<Value> =
            opensdn_deploy::render(&typed)?.into_iter().flat_map(|step| step.objects).collect();
        let found = comparable(template(&program, &values)?);
        // Without its policies an installation has the CRDs all the same; so has the folder crds/.
        let expected = comparable(std::mem::take(&mut expected));
        assert_eq!(found.len(), expected.len(), "{values}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{values}");
        }
    }
    Ok(())
}

#[test]
fn the_chart_keeps_namespaces_with_data_and_leaves_its_own_to_helm() -> Outcome {
    let program = built()?;
    let objects = template(&program, &json!({}))?;
    let kept: Vec<&Value> = objects
        .iter()
        .filter(|object| object["metadata"]["annotations"][KEEP] == "keep")
        .map(|object| &object["metadata"]["name"])
        .collect();
    assert_eq!(kept, ["tf"]);
    let arguments = [&TEMPLATE[..], &["--namespace", "opensdn-system"]].concat();
    let text = helm(&program, &arguments, &json!({}))??;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    let is_namespace = |object: &&Value| object["kind"] == "Namespace";
    let names: Vec<&Value> =
        objects.iter().filter(is_namespace).map(|object| &object["metadata"]["name"]).collect();
    assert_eq!(names, ["opensdn-operator", "tf"]);
    Ok(())
}

/// By the schema and by the template, as the plugin refuses them.
#[test]
fn the_chart_refuses_values_that_the_plugin_refuses() -> Outcome {
    let program = built()?;
    for (values, word) in [
        (json!({"webhok": {}}), "webhok"),
        (json!({"profile": "huge"}), "profile"),
        (json!({"webhook": {"replicas": "many"}}), "replicas"),
        (json!({"namespace": "tf"}), "namespace"),
        (json!({"namespace": "kube-system"}), "namespace"),
    ] {
        let typed = serde_json::from_value::<Values>(values.clone());
        assert!(typed.is_err() || typed.is_ok_and(|typed| !typed.problems().is_empty()));
        let refusal = helm(&program, &TEMPLATE, &values)?.unwrap_err();
        assert!(refusal.contains(word), "{values}: {refusal}");
    }
    let lint = helm(&program, &["lint", "--strict", CHART], &json!({}))?;
    assert!(lint.is_ok(), "{lint:?}");
    Ok(())
}
