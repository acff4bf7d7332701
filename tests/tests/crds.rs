//! The API server takes our CRDs as they are committed, and judges objects by them: the samples
//! of `deploy/samples` and the cases of `crds/tests/cases`, one file each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionSpec;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use opensdn_testing::installer::install_crds;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::shared::Shared;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

const YAML: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/yaml");
const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/tests/cases");
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples");
const NAMESPACE: &str = "tf";

#[tokio::test]
async fn api_server_takes_the_generated_yaml_without_a_warning() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    let arguments =
        ["apply", "--server-side", "--warnings-as-errors", "--dry-run=server", "-f", YAML];
    let applied = sandbox.kubectl(&arguments).await?;
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));

    install_crds(&sandbox.client()?, &opensdn_crds::all()).await?;
    let listed = sandbox.kubectl(&["api-resources", "--categories=opensdn", "-o=name"]).await?;
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(names.lines().count(), opensdn_crds::all().len(), "{names}");
    Ok(())
}

#[tokio::test]
async fn yaml_can_be_applied_without_server_side_apply_too() -> Outcome {
    // It is what tf-operator's users do; the object then has to fit into an annotation.
    let sandbox = server().await?;
    let applied = sandbox.kubectl(&["apply", "--dry-run=server", "-f", YAML]).await?;
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    Ok(())
}

#[tokio::test]
async fn samples_are_accepted_without_a_warning() -> Outcome {
    let sandbox = server().await?;
    for path in files(SAMPLES)? {
        let file = path.to_string_lossy().into_owned();
        let arguments = [
            "apply",
            "--server-side",
            "--dry-run=server",
            "--validate=strict",
            "--warnings-as-errors",
            "-f",
            &file,
        ];
        let applied = sandbox.kubectl(&arguments).await?;
        assert!(applied.status.success(), "{file}: {}", String::from_utf8_lossy(&applied.stderr));
    }
    Ok(())
}

#[tokio::test]
async fn cases_are_judged_as_they_say() -> Outcome {
    let client = server().await?.client()?;
    let mut wrong = Vec::new();
    let (mut given, mut remedied) = (BTreeSet::new(), BTreeSet::new());
    for path in files(CASES)? {
        let case: Value = serde_saphyr::from_str(&fs::read_to_string(&path)?)?;
        let answer = create(&client, &case["object"], true).await;
        if let Some(difference) = difference(&case, &answer) {
            wrong.push(format!("{}: {difference}", path.display()));
        }
        let texts = case["refuse"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let codes: Vec<String> =
            texts.filter(|text| text.starts_with("OSDN")).map(str::to_owned).collect();
        given.extend(codes.clone());
        if let Some(remedy) = case.pointer("/remedy/object") {
            let mut object = case["object"].clone();
            json_patch::merge(&mut object, remedy);
            if let Err(error) = create(&client, &object, true).await {
                wrong.push(format!("{}: after its remedy: {error}", path.display()));
            }
            remedied.extend(codes);
        }
    }
    let untried: Vec<&String> = given.difference(&remedied).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(untried.is_empty(), "no case tries what is said of {untried:?}");
    Ok(())
}

#[tokio::test]
async fn default_manager_of_tf_operator_is_stored_unchanged() -> Outcome {
    let client = server().await?.client()?;
    let text = fs::read_to_string(Path::new(SAMPLES).join("tf-operator-default.yaml"))?;
    let mut object: Value = serde_saphyr::from_str(&text)?;
    // Other tests of this cluster try the sample under its own name.
    object["metadata"]["name"] = "stored-unchanged".into();
    let stored = create(&client, &object, false).await?;
    assert_eq!(stored.data["spec"], object["spec"]);
    api(&client, &object)?.delete("stored-unchanged", &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test]
async fn unknown_fields_are_pruned_and_kubectl_says_so() -> Outcome {
    let sandbox = server().await?;
    let object = json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": { "name": "unknown", "namespace": NAMESPACE },
        "spec": { "services": { "zookeepers": [] } }
    });
    let stored = create(&sandbox.client()?, &object, true).await?;
    assert_eq!(stored.data["spec"]["services"], json!({}));
    let arguments = ["create", "--dry-run=server", "-f", "-"];
    let refused = sandbox.kubectl_with_input(&arguments, &object.to_string()).await?;
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("unknown field \"spec.services.zookeepers\""), "{message}");
    Ok(())
}

#[tokio::test]
async fn largest_manager_stays_within_the_budget_of_rules() -> Outcome {
    let client = server().await?.client()?;
    let container = json!({ "name": "c", "image": "i".repeat(200) });
    // As many as there may be, and as long as all of them fit into what etcd takes.
    let variables: BTreeMap<String, String> =
        (0..512).map(|index| (format!("VARIABLE_{index}"), "v".repeat(8))).collect();
    let toleration = json!({ "key": "k", "operator": "Equal", "value": "v" });
    let group = |index: usize| {
        json!({
            "metadata": { "name": format!("{index:041}") },
            "spec": {
                "commonConfiguration": { "tolerations": vec![toleration.clone(); 16] },
                "serviceConfiguration": {
                    "containers": vec![container.clone(); 32],
                    "envVariablesConfig": variables,
                    "dataSubnet": "10.0.0.0/24", "vrouterGateway": "10.0.0.1",
                    "physicalInterface": vec!["ens3"; 20].join(","),
                    "sriovPhysicalInterface": vec!["ens5"; 100].join(","),
                    "sriovPhysicalNetwork": vec!["net"; 100].join(",")
                }
            }
        })
    };
    let groups: Vec<Value> = (0..64).map(group).collect();
    let object = json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": { "name": "largest", "namespace": NAMESPACE },
        "spec": { "services": { "vrouters": groups } }
    });
    create(&client, &object, true).await?;
    Ok(())
}

#[tokio::test]
async fn defaults_of_our_own_kinds_are_stored() -> Outcome {
    let client = server().await?.client()?;
    let object = json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
        "metadata": { "name": "defaults" },
        "spec": {
            "module": { "builtIn": "plaintext" },
            "kinds": [{ "kind": "ConfigMap" }],
            "settings": { "any": { "thing": [1, "two"] } }
        }
    });
    let stored = create(&client, &object, true).await?;
    let spec = &stored.data["spec"];
    assert_eq!(spec["mode"], "enforce");
    assert_eq!(spec["kinds"][0]["operations"], json!(["CREATE", "UPDATE"]));
    assert_eq!(spec["kinds"][0]["group"], "");
    assert_eq!(spec["settings"], object["spec"]["settings"]);
    Ok(())
}

#[tokio::test]
async fn what_a_claim_is_on_cannot_be_changed() -> Outcome {
    let client = server().await?.client()?;
    let object = json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "UniqueClaim",
        "metadata": { "name": "claim" },
        "spec": { "scope": "s", "key": "k", "holder": { "kind": "Config", "name": "c" } }
    });
    create(&client, &object, false).await?;
    let claims = api(&client, &object)?;
    let change = |patch: Value| {
        let claims = claims.clone();
        async move { claims.patch("claim", &PatchParams::default(), &Patch::Merge(patch)).await }
    };
    change(json!({ "spec": { "holder": { "uid": "u" } } })).await?;
    for field in ["scope", "key"] {
        let refused = change(json!({ "spec": { field: "other" } })).await;
        let message = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(message.contains(&format!("{field} cannot be changed")), "{message}");
    }
    Ok(())
}

#[tokio::test]
async fn what_an_upgrade_changes_cannot_be_changed_and_how_it_proceeds_can() -> Outcome {
    let client = server().await?.client()?;
    let object = json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
        "metadata": { "name": "fixed", "namespace": NAMESPACE },
        "spec": {
            "manager": "cluster1", "version": "R25.1", "requestedBy": "alice",
            "plan": "0123456789", "force": ["OSDN5008"],
            // As many and as long as they may be: the rule compares them all.
            "images": vec![json!({ "container": "redis", "image": "i".repeat(512) }); 128]
        }
    });
    create(&client, &object, false).await?;
    let upgrades = api(&client, &object)?;
    let change = async |spec: Value| {
        let patch = Patch::Merge(json!({ "spec": spec }));
        upgrades.patch("fixed", &PatchParams::default(), &patch).await
    };
    for spec in [
        json!({ "manager": "other" }),
        json!({ "version": "R24.1" }),
        json!({ "version": null }),
        json!({ "registry": "registry.example.com" }),
        json!({ "images": null }),
        json!({ "requestedBy": null }),
        json!({ "requestedBy": "bob" }),
        json!({ "plan": "abcdef" }),
        json!({ "force": null }),
        json!({ "force": ["OSDN5008", "OSDN5014"] }),
        json!({ "prePull": false }),
        json!({ "waitForDrain": true }),
        json!({ "images": [{ "container": "redis", "image": "redis:7.4" }] }),
    ] {
        let refused = change(spec.clone()).await.err().map(|error| error.to_string());
        let message = refused.unwrap_or_default();
        assert!(message.contains("cannot be changed once it is made"), "{spec}: {message}");
    }
    for spec in [
        json!({ "paused": true, "pauseBefore": ["vrouters"] }),
        json!({ "paused": null, "pauseBefore": null, "retries": 1, "soak": "1s" }),
        json!({ "skip": [{ "step": "Webui/webui1", "reason": "by hand" }] }),
        json!({ "goal": "RollBack", "onFailure": "Stop", "waveTimeout": "1h" }),
    ] {
        change(spec).await?;
    }
    Ok(())
}

#[tokio::test]
async fn conditions_of_several_writers_stand_side_by_side() -> Outcome {
    let client = server().await?.client()?;
    let object = json!({
        "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
        "metadata": { "name": "conditions", "namespace": NAMESPACE },
        "spec": { "serviceConfiguration": {} }
    });
    create(&client, &object, false).await?;
    let zookeepers = api(&client, &object)?;
    for (writer, condition) in [("one", "Ready"), ("two", "Stalled")] {
        let status = json!({
            "apiVersion": object["apiVersion"], "kind": object["kind"],
            "status": { "active": true, "conditions": [{ "type": condition, "status": "True" }] }
        });
        let params = PatchParams::apply(writer);
        zookeepers.patch_status("conditions", &params, &Patch::Apply(status)).await?;
    }
    let stored = zookeepers.get("conditions").await?;
    let conditions = stored.data["status"]["conditions"].as_array().map(Vec::len);
    assert_eq!(conditions, Some(2), "{}", stored.data);
    Ok(())
}

#[tokio::test]
async fn explain_tells_unit_default_and_effect() -> Outcome {
    let sandbox = server().await?;
    for (field, wanted) in [
        ("vrouter.spec.serviceConfiguration.hugePages2M", "not bytes"),
        ("manager.spec.services.zookeeper.spec.serviceConfiguration.clientPort", "Default 2181"),
        ("redis.spec.serviceConfiguration.clusterName", "No effect in tf-operator"),
        ("admissionpolicy.spec.failureMode", "cannot answer"),
    ] {
        let output = sandbox.kubectl(&["explain", field]).await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(wanted), "{field}: {text}");
    }
    Ok(())
}

/// An API server with our CRDs, and the namespace of the cases.
async fn server() -> Result<&'static Shared, Failed> {
    let cluster = Shared::with_crds().await?;
    // Another test may have made it.
    cluster.kubectl(&["create", "namespace", NAMESPACE]).await?;
    Ok(cluster)
}

async fn create(client: &Client, object: &Value, dry_run: bool) -> Result<DynamicObject, Failed> {
    let params = PostParams { dry_run, ..PostParams::default() };
    let typed: DynamicObject = serde_json::from_value(object.clone())?;
    Ok(api(client, object)?.create(&params, &typed).await?)
}

/// The API of the kind that the object is of, in the object's namespace.
fn api(client: &Client, object: &Value) -> Result<Api<DynamicObject>, Failed> {
    static RESOURCES: LazyLock<Vec<ApiResource>> = LazyLock::new(resources);
    let resource = RESOURCES
        .iter()
        .find(|resource| resource.kind == object["kind"])
        .ok_or_else(|| format!("no CRD for {}", object["kind"]))?;
    Ok(match object.pointer("/metadata/namespace").and_then(Value::as_str) {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    })
}

fn resources() -> Vec<ApiResource> {
    let resource = |spec: CustomResourceDefinitionSpec| ApiResource {
        api_version: format!("{}/{}", spec.group, opensdn_crds::VERSION),
        group: spec.group,
        version: opensdn_crds::VERSION.to_owned(),
        kind: spec.names.kind,
        plural: spec.names.plural,
    };
    opensdn_crds::all().into_iter().map(|definition| resource(definition.spec)).collect()
}

/// How the answer differs from what the case says: `expect: accept`, or `refuse:` with texts
/// that the refusal must contain. With `remedy:`, a merge patch that does what the refusal says, the
/// object is accepted.
fn difference(case: &Value, answer: &Result<DynamicObject, Failed>) -> Option<String> {
    let message = answer.as_ref().err().map(ToString::to_string);
    match (case["expect"].as_str(), case["refuse"].as_array(), message) {
        (Some("accept"), None, None) => None,
        (Some("accept"), None, Some(message)) => Some(format!("refused: {message}")),
        (None, Some(_), None) => Some("accepted".to_owned()),
        (None, Some(wanted), Some(message)) => wanted
            .iter()
            .filter_map(Value::as_str)
            .find(|wanted| !message.contains(wanted))
            .map(|wanted| format!("no {wanted:?} in: {message}")),
        _ => Some("wants either `expect: accept` or `refuse:`".to_owned()),
    }
}

fn files(folder: &str) -> Result<Vec<PathBuf>, Failed> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    assert!(!files.is_empty(), "{folder} is empty");
    Ok(files)
}
