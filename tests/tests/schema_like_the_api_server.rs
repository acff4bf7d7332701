//! What `opensdn-manifests` says of an object without a cluster, and what a real API server says of
//! it: accepted or refused, by the same codes, at the same fields. Asked for every case of the CRDs
//! and every sample, and for what becomes of them when single values are replaced.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use opensdn_manifests::{Document, Problem, Schemas, Severity, Source, codes, read};
use opensdn_testing::shared::Shared;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/tests/cases");
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples");
const NAMESPACE: &str = "tf";

/// How many of the changed objects are asked about: all would take minutes. Each run takes the same.
const ONE_OF: usize = 17;

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas::new(opensdn_crds::all()));

/// What either side says of an object.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    refused: bool,
    /// Code and field of each finding that has a code of ours.
    findings: BTreeSet<String>,
    /// Whether rules were left out because something else is wrong.
    partial: bool,
    text: String,
}

#[tokio::test]
async fn cases_and_samples_are_judged_as_by_the_api_server() -> Outcome {
    compare(documents()?).await
}

#[tokio::test]
async fn changed_objects_are_judged_as_by_the_api_server() -> Outcome {
    let replacements = [
        json!(null),
        json!(""),
        json!("x"),
        json!("10.0.0.1"),
        json!(-1),
        json!(0),
        json!(1.5),
        json!(70_000),
        json!(5_000_000_000_i64),
        json!(true),
        json!([]),
        json!({}),
        json!([null]),
        json!(["a", "a"]),
        json!({ "unknown": 1 }),
        json!("n".repeat(2000)),
    ];
    let mut changed = Vec::new();
    for document in documents()? {
        for pointer in pointers(&document.value, "") {
            for replacement in &replacements {
                let mut value = document.value.clone();
                if let Some(field) = value.pointer_mut(&pointer) {
                    *field = replacement.clone();
                }
                changed.push(value);
            }
        }
    }
    let some: Vec<Value> = changed.into_iter().step_by(ONE_OF).collect();
    assert!(some.len() > 500, "{}", some.len());
    compare(some.iter().map(document).collect::<Result<_, _>>()?).await
}

#[tokio::test]
async fn metadata_is_judged_as_by_the_api_server() -> Outcome {
    let metadata = [
        json!({ "name": "a.b-c" }),
        json!({ "name": "A" }),
        json!({ "name": "-a" }),
        json!({ "name": "a_b" }),
        json!({ "name": "a".repeat(254) }),
        json!({ "name": 1 }),
        json!({ "name": null }),
        json!({}),
        json!(null),
        json!({ "generateName": "a-" }),
        json!({ "generateName": "A-" }),
        json!({ "name": "a", "unknown": 1 }),
        json!({ "name": "a", "labels": { "a": "b", "x.io/a_b.C": "", "n": null } }),
        json!({ "name": "a", "labels": { "a": "b c" } }),
        json!({ "name": "a", "labels": { "a/b/c": "b" } }),
        json!({ "name": "a", "labels": { "-a": "b" } }),
        json!({ "name": "a", "labels": { "a": 1 } }),
        json!({ "name": "a", "labels": [] }),
        json!({ "name": "a", "labels": { "a": "l".repeat(64) } }),
        json!({ "name": "a", "annotations": { "A.io/b": "any thing", "c": "" } }),
        json!({ "name": "a", "annotations": { "a b": "" } }),
        json!({ "name": "a", "annotations": { "a": true } }),
        json!({ "name": "a", "annotations": { "a": "x".repeat(300_000) } }),
        json!({ "name": "a", "finalizers": "x" }),
        json!({ "name": "a", "ownerReferences": {} }),
    ];
    let object = |metadata: &Value| {
        document(&json!({
            "apiVersion": "opensdn.io/v1alpha1", "kind": "UniqueClaim", "metadata": metadata,
            "spec": { "scope": "s", "key": "k", "holder": { "kind": "Config", "name": "c" } }
        }))
    };
    compare(metadata.iter().map(object).collect::<Result<_, _>>()?).await
}

/// Asks both sides about each object, and reports all differences at once.
async fn compare(documents: Vec<Document>) -> Outcome {
    let client = server().await?.client()?;
    let schemas = &*SCHEMAS;
    let asked = documents.iter().map(|document| {
        let client = &client;
        async move {
            let theirs = ask(client, &document.value).await?;
            let ours = judge(&schemas.check(document, None));
            Ok::<_, Failed>(difference(&theirs, &ours, &document.value))
        }
    });
    let differences: Vec<Option<String>> = stream::iter(asked).buffered(16).try_collect().await?;
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    let first = differences.iter().take(20).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(differences.is_empty(), "{} of {}:\n{first}", differences.len(), documents.len());
    Ok(())
}

fn difference(theirs: &Verdict, ours: &Verdict, object: &Value) -> Option<String> {
    // Where the API server gave up earlier it says less than we do, and never something else.
    let same = theirs.refused == ours.refused
        && if theirs.partial {
            theirs.findings.is_subset(&ours.findings)
        } else {
            ours.partial || theirs.findings == ours.findings
        };
    let mut shown = object.to_string();
    shown.truncate(shown.floor_char_boundary(1500));
    (!same).then(|| format!("{shown}\n  theirs: {theirs:?}\n  ours: {ours:?}"))
}

fn judge(problems: &[Problem]) -> Verdict {
    let errors = || problems.iter().filter(|problem| problem.severity == Severity::Error);
    let coded = errors().filter(|problem| problem.code.starts_with("OSDN"));
    let field = |problem: &Problem| dotted(problem.pointer.as_deref().unwrap_or_default());
    Verdict {
        refused: errors().next().is_some(),
        findings: coded.map(|problem| format!("{} {}", problem.code, field(problem))).collect(),
        partial: problems.iter().any(|problem| problem.code == codes::NOT_CHECKED),
        text: errors().map(|problem| format!("[{}] {}; ", problem.code, problem.message)).collect(),
    }
}

/// Creates the object as kubectl does, strictly and only for trial.
async fn ask(client: &Client, object: &Value) -> Result<Verdict, Failed> {
    let path = path(object)?;
    let request = http::Request::post(format!("{path}?dryRun=All&fieldValidation=Strict"))
        .header("content-type", "application/json")
        .body(serde_json::to_vec(object)?)?;
    let status = match client.request::<Value>(request).await {
        Ok(_) => return Ok(Verdict::default()),
        Err(kube::Error::Api(status)) => status,
        Err(error) => return Err(error.into()),
    };
    let causes = status.details.as_ref().map(|details| details.causes.as_slice());
    let causes = causes.unwrap_or_default();
    let coded = causes.iter().filter_map(|cause| {
        let at = cause.message.find("OSDN")?;
        let code = cause.message.get(at..at + 8)?;
        // Their name for the object as a whole.
        let field = if cause.field == "<nil>" { "" } else { &cause.field };
        Some(format!("{code} {}", field.replace('[', ".").replace(']', "")))
    });
    let early =
        causes.is_empty() || causes.iter().any(|cause| cause.message.contains("not checked"));
    Ok(Verdict {
        refused: true,
        findings: coded.collect(),
        partial: early,
        text: status.message.clone(),
    })
}

fn path(object: &Value) -> Result<String, Failed> {
    /// Kind, plural and scope.
    static KINDS: LazyLock<Vec<[String; 3]>> = LazyLock::new(|| {
        let specs = opensdn_crds::all().into_iter().map(|definition| definition.spec);
        specs.map(|spec| [spec.names.kind, spec.names.plural, spec.scope]).collect()
    });
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let version = text("/apiVersion").ok_or("no apiVersion")?;
    let found = KINDS.iter().find(|[kind, ..]| Some(kind.as_str()) == text("/kind"));
    let [_, plural, scope] = found.ok_or("no such kind")?;
    Ok(match scope.as_str() {
        "Cluster" => format!("/apis/{version}/{plural}"),
        _ => format!("/apis/{version}/namespaces/{NAMESPACE}/{plural}"),
    })
}

/// The objects of all cases and samples that are of our kinds.
fn documents() -> Result<Vec<Document>, Failed> {
    let schemas = &*SCHEMAS;
    let mut documents = Vec::new();
    for path in files(CASES)? {
        let case: Value = serde_saphyr::from_str(&fs::read_to_string(&path)?)?;
        documents.push(document(case.get("object").ok_or("a case without an object")?)?);
    }
    for path in files(SAMPLES)? {
        let parsed = read(&Source::new(path.to_string_lossy(), fs::read_to_string(&path)?));
        assert_eq!(parsed.problems, [], "{}", path.display());
        documents.extend(parsed.documents.into_iter().filter(|document| {
            let here = document.namespace().is_none_or(|namespace| namespace == NAMESPACE);
            here && schemas.knows(document)
        }));
    }
    Ok(documents)
}

fn document(value: &Value) -> Result<Document, Failed> {
    let mut parsed = read(&Source::new("object", value.to_string()));
    assert_eq!(parsed.problems, [], "{value}");
    parsed.documents.pop().ok_or_else(|| format!("no document: {value}").into())
}

/// Every field below the spec, and the spec.
fn pointers(value: &Value, at: &str) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => {
            let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
            fields.iter().map(|(name, value)| (format!("{at}/{}", escaped(name)), value)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (format!("{at}/{index}"), item)).collect()
        }
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for (pointer, value) in inner.into_iter().filter(|(pointer, _)| pointer.starts_with("/spec")) {
        found.extend(pointers(value, &pointer));
        found.push(pointer);
    }
    found
}

/// A pointer with dots, as the API server's paths look once their brackets are dots too.
fn dotted(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
    parts.collect::<Vec<_>>().join(".")
}

/// An API server with our CRDs, and the namespace of the cases.
async fn server() -> Result<&'static Shared, Failed> {
    let cluster = Shared::with_crds().await?;
    // Another test may have made it.
    cluster.kubectl(&["create", "namespace", NAMESPACE]).await?;
    Ok(cluster)
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
