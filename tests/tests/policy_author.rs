//! What an author of a policy does, from nothing to a refused object: a policy about a kind of the
//! user's own, by the plugin's commands and kubectl only. Deliberately not here: what the commands
//! print (their transcripts in `plugin/tests`), and languages other than Rust (`test-languages`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::product::{Installation, Product};
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

/// Folders that are kept from one test run to the next: what cargo built, and compiled policies.
fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The plugin in a folder.
fn opensdn(folder: &Path, arguments: &[&str]) -> Result<Output, Failed> {
    let mut command = Command::new(program("kubectl-opensdn")?);
    command
        .args(arguments)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", kept("policy-author-cache"))
        .env("CARGO_TARGET_DIR", kept("policy-author"));
    Ok(command.output()?)
}

/// What the plugin answered; it must have succeeded.
#[track_caller]
fn answer(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A control plane that serves Widgets, with the product and no policies.
struct World {
    sandbox: Sandbox,
    _product: Product,
}

impl World {
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().only_api_server().start().await?;
        let product = Installation::built()?.without_policies().install(&sandbox).await?;
        send(&sandbox, &["apply"], &widgets()).await?.success();
        let established = ["wait", "--for=condition=Established", "crd/widgets.example.io"];
        kubectl(&sandbox, &established).await?.success();
        Ok(Self { sandbox, _product: product })
    }

    async fn create(&self, widget: &Value) -> Result<opensdn_testing::kubectl::Said, Failed> {
        Ok(send(&self.sandbox, &["create", "--dry-run=server"], widget).await?)
    }

    /// Applies what `policy manifest` printed, and returns when it is in force.
    async fn apply(&self, manifest: &Path) -> Outcome {
        let file = manifest.to_string_lossy();
        kubectl(&self.sandbox, &["apply", "--server-side", "-f", &file]).await?.success();
        let ready =
            ["wait", "--for=condition=Ready", "admissionpolicies", "--all", "--timeout=60s"];
        kubectl(&self.sandbox, &ready).await?.success();
        Ok(())
    }
}

fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.io"},
        "spec": {
            "group": "example.io", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    })
}

fn widget(labels: &Value) -> Value {
    json!({
        "apiVersion": "example.io/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default", "labels": labels},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_about_ones_own_kind_goes_from_nothing_to_a_refused_object() -> Outcome {
    let scratch = tempfile::tempdir()?;
    let new = ["policy", "new", "no-owner", "--kinds", "example.io/v1/Widget"];
    answer(&opensdn(scratch.path(), &new)?);
    let project = scratch.path().join("no-owner");
    answer(&opensdn(&project, &["policy", "build"])?);
    let tested = answer(&opensdn(&project, &["policy", "test"])?);
    assert!(tested.contains("coverage: 1 of 1 message reached"), "{tested}");
    let manifest = answer(&opensdn(&project, &["policy", "manifest"])?);
    let file = project.join("policy.yaml");
    std::fs::write(&file, &manifest)?;

    let world = World::start().await?;
    world.create(&widget(&json!({}))).await?.success();
    world.apply(&file).await?;
    let refused = async || {
        let said = world.create(&widget(&json!({}))).await;
        said.is_ok_and(|said| !said.ok && said.err.contains("TEAM0001"))
    };
    eventually("a widget without an owner is refused", refused).await;
    world.create(&widget(&json!({}))).await?.denied(&["[TEAM0001] metadata.labels"]);
    world.create(&widget(&json!({"owner": "network"}))).await?.success();
    Ok(())
}

/// A policy that looks up objects of the very kind that it is about.
const TAKEN_COLOR: &str = r#"//! Colors that another widget has.

use opensdn_policy_sdk::{
    Index, Message, Outcome, Reads, Request, Severity, Verdict, policy, schemars::JsonSchema,
};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "opensdn_policy_sdk::schemars")]
pub struct Settings {}

const TAKEN: Message = Message {
    code: "TEAM0002",
    severity: Severity::Deny,
    title: "another widget has the color",
    explanation: "They could not be told apart.",
    hint: "choose another color",
};

const BY_COLOR: Index = Index {
    name: "widgets-by-color",
    group: "example.io",
    kind: "Widget",
    key: "/spec/color",
    reads: &[],
};

#[derive(Reads)]
#[reads(group = "example.io", kind = "Widget")]
pub struct Parts {
    #[read("/spec/color")]
    color: Option<String>,
}

fn color(request: &Request<Parts>, _: &Settings, verdict: &mut Verdict) -> Outcome {
    let color = request.object.as_ref().and_then(|object| object.color.as_deref());
    for other in BY_COLOR.find(color.unwrap_or_default())? {
        verdict.add(TAKEN.at("/spec/color").says(format!("{} has it", other.name())));
    }
    Ok(())
}

policy! {
    name: "taken-color",
    summary: "every widget has a color of its own",
    settings: Settings,
    messages: [TAKEN],
    indexes: [BY_COLOR],
    validate: [color],
}
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manifest_lets_the_webhook_read_what_the_policy_looks_up() -> Outcome {
    let scratch = tempfile::tempdir()?;
    let new = ["policy", "new", "taken-color", "--kinds", "example.io/v1/Widget"];
    answer(&opensdn(scratch.path(), &new)?);
    let project = scratch.path().join("taken-color");
    std::fs::write(project.join("src/lib.rs"), TAKEN_COLOR)?;
    answer(&opensdn(&project, &["policy", "build"])?);
    let file = project.join("policy.yaml");
    std::fs::write(&file, answer(&opensdn(&project, &["policy", "manifest"])?))?;

    let world = World::start().await?;
    let colored = |name: &str| {
        let mut widget = widget(&json!({}));
        widget["metadata"]["name"] = json!(name);
        widget["spec"] = json!({"color": "blue"});
        widget
    };
    send(&world.sandbox, &["create"], &colored("first")).await?.success();
    world.apply(&file).await?;
    let refused = async || {
        let said = world.create(&colored("second")).await;
        said.is_ok_and(|said| !said.ok && said.err.contains("TEAM0002"))
    };
    eventually("a second blue widget is refused", refused).await;
    world.create(&colored("second")).await?.denied(&["[TEAM0002] spec.color: first has it"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manifests_of_built_in_policies_are_taken_by_the_webhook() -> Outcome {
    let world = World::start().await?;
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join("policies.json");
    for policy in opensdn_policies::ALL {
        let arguments = ["policy", "manifest", policy.name, "--mode", "warn", "-o", "json"];
        std::fs::write(&file, answer(&opensdn(scratch.path(), &arguments)?))?;
        world.apply(&file).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn look_ups_are_recorded_from_the_cluster_and_replayed_without_it() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    for (name, rack) in [("n1", "a"), ("n2", "a")] {
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"rack": rack}}});
        send(&sandbox, &["create"], &node).await?.success();
    }
    let scratch = tempfile::tempdir()?;
    let zookeeper = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
        "metadata": {"name": "z", "namespace": "tf"},
        "spec": {"commonConfiguration": {"nodeSelector": {"rack": "a"}},
            "serviceConfiguration": {}}});
    std::fs::write(scratch.path().join("zookeeper.json"), zookeeper.to_string())?;
    let run = ["policy", "run", "even-quorum", "-f", "zookeeper.json", "-o", "json"];
    let kubeconfig = sandbox.kubeconfig();
    let kubeconfig = kubeconfig.as_os_str().to_str().ok_or("a path that is text")?;
    let record = [&run[..], &["--record", "lookups.json", "--kubeconfig", kubeconfig]].concat();
    let recorded: Value = said(&opensdn(scratch.path(), &record)?)?;
    assert_eq!(codes(&recorded), ["OSDN1205"], "{recorded}");

    let replay = [&run[..], &["--replay", "lookups.json"]].concat();
    let replayed: Value = said(&opensdn(scratch.path(), &replay)?)?;
    assert_eq!(replayed.get("findings"), recorded.get("findings"));
    assert_eq!(replayed.get("lookUps"), recorded.get("lookUps"));

    let vrouter = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
        "metadata": {"name": "v", "namespace": "tf"},
        "spec": {"serviceConfiguration": {"controlInstance": "control1"}}});
    std::fs::write(scratch.path().join("vrouter.json"), vrouter.to_string())?;
    let other = ["policy", "run", "missing-reference", "-f", "vrouter.json", "-o", "json"];
    let replay = [&other[..], &["--replay", "lookups.json"]].concat();
    let output = opensdn(scratch.path(), &replay)?;
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(said(&output)?.get("code"), Some(&json!("not-in-record")));
    Ok(())
}

/// The document that the plugin wrote, whatever it ended with.
fn said(output: &Output) -> Result<Value, Failed> {
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    Ok(serde_json::from_str(&text).map_err(|_| format!("no JSON: {text}\n{error}"))?)
}

fn codes(answer: &Value) -> Vec<&str> {
    let findings = answer.get("findings").and_then(Value::as_array).into_iter().flatten();
    findings.filter_map(|finding| finding.get("code").and_then(Value::as_str)).collect()
}
