//! The samples of `deploy/samples` against every built-in policy: they are what people begin with,
//! and one of them is what upstream's own templates render.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use opensdn_policies::ALL;
use opensdn_policy_host::{
    Engine, Finding, Policy, Severity, apply,
    cases::{self, Case, Report},
    group,
};
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn documents(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    let documents = text.split("\n---").map(|text| serde_saphyr::from_str(text).unwrap());
    documents.filter(Value::is_object).collect()
}

fn files(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files
}

fn samples() -> Vec<Value> {
    files("deploy/samples").iter().flat_map(|file| documents(file)).collect()
}

fn upstream() -> Value {
    documents(&root().join("deploy/samples/tf-operator-default.yaml")).remove(0)
}

async fn policies() -> Vec<Policy> {
    let engine = Engine::start(4).unwrap();
    let mut policies = Vec::new();
    for built_in in ALL {
        policies.push(
            Policy::load(&engine, built_in.bytes, None, crate::compiled().as_ref()).await.unwrap(),
        );
    }
    policies
}

/// What every policy says to the object's creation among `cluster`; `strict` where it can be.
async fn judge(
    policies: &[Policy],
    object: &Value,
    strict: bool,
    cluster: &[Value],
) -> Vec<Report> {
    let mut reports = Vec::new();
    for policy in policies {
        let strictness = json!({"profile": "strict"});
        let has_profile = policy.check_settings(&strictness).is_empty();
        let settings = if strict && has_profile { strictness } else { json!({}) };
        let case = json!({"object": object, "settings": settings, "cluster": cluster,
                          "expect": {}});
        let case: Case = serde_json::from_value(case).unwrap();
        reports.push(cases::run(policy, &case).await.unwrap());
    }
    reports
}

fn denials(reports: &[Report]) -> Vec<&Finding> {
    let findings = reports.iter().flat_map(|report| &report.verdict.findings);
    findings.filter(|finding| finding.severity == Severity::Deny).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn upstreams_own_manifest_passes_with_warnings() {
    let reports = judge(&policies().await, &upstream(), false, &[]).await;
    assert!(denials(&reports).is_empty(), "{:#?}", denials(&reports));
    assert!(reports.iter().all(|report| report.verdict.failures.is_empty()));
    let warned: Vec<_> = reports.iter().flat_map(|report| &report.verdict.findings).collect();
    let lines = group(warned.iter().copied());
    assert!(lines.len() <= 10, "{lines:#?}");
    let codes: BTreeSet<_> = warned.iter().map(|finding| finding.code.as_str()).collect();
    assert!(codes.is_superset(&["OSDN1306", "OSDN1523"].into()), "{codes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_strict_profile_refuses_what_upstream_leaves_open() {
    let reports = judge(&policies().await, &upstream(), true, &[]).await;
    let codes: BTreeSet<_> = denials(&reports).iter().map(|finding| finding.code.clone()).collect();
    assert_eq!(codes, ["OSDN1306".to_owned()].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_sample_is_refused_and_each_fits_its_schema_with_its_defaults() {
    let schemas: Vec<_> = files("crds/yaml").iter().flat_map(|file| documents(file)).collect();
    let (policies, samples) = (policies().await, samples());
    for sample in &samples {
        let reports = judge(&policies, sample, false, &samples).await;
        let denials = denials(&reports);
        assert!(denials.is_empty(), "{}: {denials:#?}", sample["metadata"]["name"]);
        let mut defaulted = sample.clone();
        for report in &reports {
            assert!(report.mutation.failures.is_empty(), "{:?}", report.mutation.failures);
            apply(&mut defaulted, &report.mutation.patch).unwrap();
        }
        let schema = schemas
            .iter()
            .find(|definition| definition["spec"]["names"]["kind"] == sample["kind"])
            .map(|definition| &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
            .unwrap();
        let validator = jsonschema::validator_for(schema).unwrap();
        let problems: Vec<_> =
            validator.iter_errors(&defaulted).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{}: {problems:#?}", sample["kind"]);
    }
}
