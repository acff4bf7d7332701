//! The cases of the policies, brought about in a cluster: what a case finds there is stored, an old
//! object too, and then the object is written over the wire and given to `validate`; a change of a
//! stored object to `validate --live`. UIDs are those that the API server gave.

use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams};
use opensdn_policy_host::cases::{Case, ExpectedFinding};
use opensdn_testing::admin_changes::AdminChanges;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::builder::{self, Builder};
use super::direct::{Direct, Write};
use super::{Failed, Outcome, Verdict, World, difference, files, of_wire, text};

/// How long the webhook's watches may be behind what was stored a moment ago.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Where cases are brought about, and those who are asked about them.
pub(crate) struct Stage<'w> {
    pub(crate) world: &'w World,
    pub(crate) builder: Builder,
    pub(crate) direct: Direct,
}

/// What came of a case.
pub(crate) enum Compared {
    Same,
    Different(String),
    /// Why it was not compared.
    LeftOut(String),
}

pub(crate) fn all() -> Vec<(String, &'static str, Case)> {
    let mut cases = Vec::new();
    for policy in opensdn_policies::ALL {
        for file in files(&format!("policies/{}/cases", policy.name)) {
            let text = std::fs::read_to_string(&file).unwrap();
            let case = serde_saphyr::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            cases.push((format!("{}/{name}", policy.name), policy.name, case));
        }
    }
    assert!(cases.len() > 100, "the cases of the policies have gone");
    cases
}

/// Makes the schemas take any value, keeping fields and types, and exempts the builder.
pub(crate) async fn relax(world: &World) -> Outcome {
    let client = world.sandbox.client()?;
    let api: Api<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> =
        Api::all(client);
    for definition in opensdn_crds::all() {
        let name = definition.metadata.name.clone().unwrap_or_default();
        if name.starts_with("admissionpolicies.") || name.starts_with("uniqueclaims.") {
            continue;
        }
        let mut versions = serde_json::to_value(&definition.spec.versions)?;
        for version in versions.as_array_mut().unwrap() {
            loosen(&mut version["schema"]["openAPIV3Schema"]);
        }
        let patch = json!({"spec": {"versions": versions}});
        api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    let changes = AdminChanges::new(world.sandbox.client()?, 1);
    for policy in opensdn_policies::ALL {
        let exemptions = json!({"users": [builder::NAME]});
        changes.swap(policy.name, json!({"exemptions": exemptions})).await?;
    }
    Ok(())
}

/// Every part of a schema that restricts values goes; what gives the object its form stays.
fn loosen(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    const FORM: [&str; 9] = [
        "type",
        "properties",
        "items",
        "additionalProperties",
        "nullable",
        "default",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-int-or-string",
        "x-kubernetes-embedded-resource",
    ];
    map.retain(|key, _| FORM.contains(&key.as_str()));
    let properties = map.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flatten().for_each(|(_, inner)| loosen(inner));
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            loosen(inner);
        }
    }
}

/// What a case is about, as it is in the cluster.
#[derive(Default)]
struct Scene {
    object: Value,
    /// The others that are stored.
    cluster: Vec<Value>,
    /// The object as it is stored, where it is changed.
    stored: Option<Value>,
}

/// Brings the case about, compares what is said, and removes all traces.
pub(crate) async fn compare(
    stage: &mut Stage<'_>,
    policy: &str,
    case: &Case,
) -> Result<Compared, Failed> {
    // Of a deletion no file says anything: what the case expects is compared.
    let Some(object) = case.object.as_ref().or(case.old_object.as_ref()) else {
        return Ok(Compared::LeftOut("it has no object".to_owned()));
    };
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return Ok(Compared::LeftOut(
            "only the API server writes that it is being deleted".to_owned(),
        ));
    }
    let has_settings = case.settings.as_object().is_some_and(|map| !map.is_empty());
    if case.expect.failure.is_some() && has_settings {
        let why = "with its settings no request gets as far as the policy";
        return Ok(Compared::LeftOut(why.to_owned()));
    }
    let all = std::iter::once(object).chain(&case.cluster).chain(&case.old_object);
    for namespace in all.map(|one| text(one, "/metadata/namespace")) {
        stage.builder.namespace(namespace).await?;
    }
    // Those of a manifest, which are put back.
    let usual = if has_settings { Some(settings_of(stage.world, policy).await?) } else { None };
    if usual.is_some() {
        settings(stage.world, policy, &case.settings).await?;
    }
    let mut scene = Scene::default();
    let outcome = match build(&mut stage.builder, case, object, &mut scene).await? {
        Ok(()) if case.object.is_none() => judge_deletion(stage, case, &scene).await,
        Ok(()) => judge(stage, policy, case, &scene).await,
        Err(why) => Ok(Compared::LeftOut(why)),
    };
    for one in scene.stored.iter().chain(&scene.cluster) {
        stage.builder.delete(one).await?;
    }
    if let Some(usual) = usual {
        settings(stage.world, policy, &usual).await?;
    }
    outcome
}

/// Stores what the case finds in its cluster. What is stored is in the scene also where it fails.
async fn build(
    builder: &mut Builder,
    case: &Case,
    object: &Value,
    scene: &mut Scene,
) -> Result<Result<(), String>, Failed> {
    // An object that has a UID is there already; what it was like the case does not say.
    let exists = || {
        let mut before = object.clone();
        before["spec"] = json!({});
        (!uid(object).is_empty()).then_some(before)
    };
    let old = case.old_object.clone().or_else(exists);
    let is_old = old.is_some();
    let mut all: Vec<(bool, &Value)> = old
        .iter()
        .map(|one| (true, one))
        .chain(case.cluster.iter().map(|one| (false, one)))
        .collect();
    // What others refer to comes first: they need the UID that it is given.
    all.sort_by_key(|(_, one)| uid(one).is_empty());
    let mut uids = Vec::new();
    for (is_old, one) in all {
        let one = with_uids(one, &uids);
        let stored = match builder.create(&one).await? {
            Ok(stored) => stored,
            Err(why) => return Ok(Err(format!("its cluster cannot be brought about: {why}"))),
        };
        if !uid(&one).is_empty() {
            uids.push((uid(&one).to_owned(), uid(&stored).to_owned()));
        }
        let one = with_uids(&one, &uids);
        if !is_old {
            builder.set_status(&one).await?;
        }
        if is_old {
            scene.stored = Some(one);
        } else {
            scene.cluster.push(one);
        }
    }
    scene.object = with_uids(object, &uids);
    assert_eq!(scene.stored.is_some(), is_old);
    Ok(Ok(()))
}

fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// The object with the UIDs of the cluster in the place of those of the case.
fn with_uids(object: &Value, uids: &[(String, String)]) -> Value {
    let written = |uid: &str| format!("\"uid\":{}", json!(uid));
    let text = uids.iter().fold(object.to_string(), |text, (case, cluster)| {
        text.replace(&written(case), &written(cluster))
    });
    serde_json::from_str(&text).unwrap_or_default()
}

/// Empty where it has none.
async fn settings_of(world: &World, policy: &str) -> Result<Value, Failed> {
    let object = world.kubectl(&["get", "admissionpolicy", policy, "-o", "json"]).await?;
    let object: Value = serde_json::from_str(object.success())?;
    Ok(object["spec"].get("settings").cloned().unwrap_or_else(|| json!({})))
}

/// Replaces them all: a merge would leave what the new ones do not name.
async fn settings(world: &World, policy: &str, settings: &Value) -> Outcome {
    let patch = json!([{"op": "add", "path": "/spec/settings", "value": settings}]).to_string();
    let arguments = ["patch", "admissionpolicy", policy, "--type=json", "-p", &patch];
    world.kubectl(&arguments).await?.success();
    Ok(())
}

/// Deletes, and nothing goes, until the webhook says what the case expects.
async fn judge_deletion(
    stage: &mut Stage<'_>,
    case: &Case,
    scene: &Scene,
) -> Result<Compared, Failed> {
    let expected = &case.expect.findings;
    let until = Instant::now() + TIMEOUT;
    loop {
        let said = stage.direct.wire(Write::Delete(&case.request.user), &scene.object).await?;
        let Verdict { lines, .. } = of_wire(&said);
        let is_said = |finding: &ExpectedFinding| {
            let code = format!("[{}] ", finding.code);
            let has = |line: &String| line.contains(&code) && line.contains(&finding.message);
            lines.iter().any(|line| has(line) && line.contains(&finding.hint))
        };
        if lines.len() == expected.len()
            && expected.iter().all(is_said)
            && said.ok == expected.is_empty()
        {
            return Ok(Compared::Same);
        }
        if Instant::now() > until {
            return Ok(Compared::Different(said.err));
        }
        sleep(Duration::from_millis(300)).await;
    }
}

/// Asks both until they agree: the webhook's watches may be behind.
async fn judge(
    stage: &mut Stage<'_>,
    policy: &str,
    case: &Case,
    scene: &Scene,
) -> Result<Compared, Failed> {
    let settings = match case.settings.as_object().is_some_and(|map| !map.is_empty()) {
        true => json!({policy: case.settings}),
        false => json!({}),
    };
    let world = stage.world;
    let (write, offline) = if scene.stored.is_some() {
        (Write::Replace, world.offline_change(&scene.object, &settings).await?)
    } else {
        let documents: Vec<&Value> = std::iter::once(&scene.object)
            .chain(&scene.cluster)
            .chain([&world.service_cidrs])
            .collect();
        (Write::Create, world.judged(&stage.direct, &documents, &settings).await?)
    };
    let until = Instant::now() + TIMEOUT;
    loop {
        let wire = of_wire(&stage.direct.wire(write, &scene.object).await?);
        if wire.schema {
            return Ok(Compared::LeftOut("the API server refuses its types".to_owned()));
        }
        let Some(difference) = difference(&wire, &offline) else { return Ok(Compared::Same) };
        if Instant::now() > until {
            return Ok(Compared::Different(difference));
        }
        sleep(Duration::from_millis(300)).await;
    }
}
