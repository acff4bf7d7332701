//! The audit's reports for others, and `kubectl opensdn audit`, in a real API server with the kinds as their users ship them: who has
//! one, what is written when, and what is left alone. Deliberately not here: what a report says (unit tests of
//! the webhook), the summary (`claims/controller.rs`).

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeMap;

use base64::Engine as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opensdn_deploy::names::webhook::{AUDIT_REPORT, NAME, USER};
use opensdn_testing::admin_port;
use opensdn_testing::creation_order::wait_for_next_second;
use opensdn_testing::eventually::eventually;
use opensdn_testing::installer::install_crds;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::product::{Installation, Product};
use opensdn_testing::programs::program;
use opensdn_testing::report_apis::ReportApi;
use opensdn_testing::sandbox::{Sandbox, User};
use opensdn_testing::signal::{self, Signal};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::webhook_policies::modules;

const OURS: &str = "--selector=app.kubernetes.io/managed-by=opensdn-webhook";

/// A control plane with an API for reports and our kinds, in which objects are stored that no webhook has
/// seen.
async fn world(apis: &[ReportApi]) -> Result<Sandbox, Failed> {
    let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
    let client = sandbox.client()?;
    for api in apis {
        api.install(&client).await?;
    }
    kubectl(&sandbox, &["create", "namespace", "tf"]).await?.success();
    for (name, ip) in [("metadata-proxy", "169.254.3.1"), ("good", "169.254.3.2")] {
        send(&sandbox, &["create"], &service(name, ip)).await?.success();
    }
    Ok(sandbox)
}

fn service(name: &str, ip: &str) -> Value {
    json!({
        "apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
        "metadata": {"name": name, "namespace": "tf"},
        "spec": {"ip": ip, "port": 80, "fabric": {"addresses": ["10.1.1.1"], "port": 8080}},
    })
}

/// A kind without a namespace.
fn gizmos() -> Result<CustomResourceDefinition, Failed> {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gizmos.example.io"},
        "spec": {"group": "example.io", "scope": "Cluster",
            "names": {"kind": "Gizmo", "plural": "gizmos"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    Ok(serde_json::from_value(crd)?)
}

async fn install(sandbox: &Sandbox, replicas: usize) -> Result<Product, Failed> {
    let installation = Installation::built()?.replicas(replicas);
    let installation = installation.argument("--audit-delay=1").argument("--audit-interval=1");
    Ok(installation.install(sandbox).await?)
}

/// Our reports by what they are about: `Kind namespace/name`.
async fn reports(sandbox: &Sandbox, kind: &str) -> Result<BTreeMap<String, Value>, Failed> {
    let list = read(sandbox, &[kind, "--all-namespaces", OURS]).await?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let about = |report: &Value| {
        let text = |name: &str| report["scope"][name].as_str().unwrap_or_default().to_owned();
        format!("{} {}/{}", text("kind"), text("namespace"), text("name"))
    };
    let ours = items.into_iter().filter(|report| {
        report["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("opensdn-"))
    });
    Ok(ours.map(|report| (about(&report), report)).collect())
}

async fn summary(sandbox: &Sandbox) -> Result<Value, Failed> {
    let get = ["get", "configmap", AUDIT_REPORT, "-n", "opensdn-system", "-o", "json"];
    let said = kubectl(sandbox, &get).await?;
    let map: Value = serde_json::from_str(if said.ok { &said.out } else { "{}" })?;
    Ok(serde_json::from_str(map["data"]["report.json"].as_str().unwrap_or("{}"))?)
}

/// Waits for the end of an audit that begins after this.
async fn another_audit(sandbox: &Sandbox) -> Result<Value, Failed> {
    let now = k8s_openapi::jiff::Timestamp::now();
    let is_later = |summary: &Value| {
        let began = summary["began"].as_str().and_then(|began| began.parse().ok());
        began.is_some_and(|began: k8s_openapi::jiff::Timestamp| began > now)
    };
    let ended = async || summary(sandbox).await.is_ok_and(|summary| is_later(&summary));
    eventually("another audit has ended", ended).await;
    summary(sandbox).await
}

fn version(report: &Value) -> &str {
    report["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

fn rules(report: &Value) -> Vec<&str> {
    let results = report["results"].as_array().into_iter().flatten();
    results.filter_map(|result| result["rule"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_with_findings_has_a_report_that_changes_when_they_do() -> Outcome {
    const PROXY: &str = "LinkLocalService tf/metadata-proxy";
    let sandbox = world(&[ReportApi::OpenReports]).await?;
    let others = json!({"apiVersion": "openreports.io/v1alpha1", "kind": "Report",
        "metadata": {"name": "of-another-engine", "namespace": "tf",
            "labels": {"app.kubernetes.io/managed-by": "opensdn-webhook"}},
        "results": [{"policy": "other", "rule": "their-rule", "result": "fail"}]});
    send(&sandbox, &["create"], &others).await?.success();
    let product = install(&sandbox, 2).await?;
    let has = async |about: &str| {
        reports(&sandbox, "reports").await.is_ok_and(|found| found.contains_key(about))
    };
    eventually("the object has a report", async || has(PROXY).await).await;

    let found = reports(&sandbox, "reports").await?;
    assert_eq!(found.keys().collect::<Vec<_>>(), [PROXY], "a good object has none");
    let first = &found[PROXY];
    assert_eq!(rules(first), ["OSDN3012"], "{first:#}");
    let result = &first["results"][0];
    assert_eq!(result["policy"], "duplicate-link-local", "{result:#}");
    assert_eq!(result["category"], "Underlay network", "{result:#}");
    assert_eq!(result["severity"], "high", "the policy denies it: {result:#}");
    assert!(result["timestamp"]["seconds"].as_i64() > Some(1_700_000_000), "{result:#}");

    // An audit that finds the same writes nothing, by whichever replica.
    let said = another_audit(&sandbox).await?;
    assert_eq!(said["policyReports"]["unchanged"], 1, "{said:#}");
    assert_eq!(said["policies"]["duplicate-link-local"]["denials"], 1, "{said:#}");
    product.kill_replica(0);
    product.start_replica(0)?;
    let said = another_audit(&sandbox).await?;
    assert_eq!(said["policyReports"]["written"], 0, "{said:#}");
    let second = reports(&sandbox, "reports").await?;
    assert_eq!(version(first), version(&second[PROXY]));

    // What has changed is written, and what was found before keeps its time.
    let patch = r#"{"spec":{"mode":"audit"}}"#;
    let change = ["patch", "admissionpolicy", "duplicate-link-local", "--type=merge", "-p", patch];
    kubectl(&sandbox, &change).await?.success();
    let changed = async || {
        let found = reports(&sandbox, "reports").await.unwrap_or_default();
        found.get(PROXY).is_some_and(|one| one["results"][0]["properties"]["mode"] == "audit")
    };
    eventually("the report says the new mode", changed).await;
    let third = &reports(&sandbox, "reports").await?[PROXY];
    assert_eq!(third["results"][0]["timestamp"], result["timestamp"]);

    // What is put right has no report any more, nor what is gone.
    kubectl(&sandbox, &["delete", "linklocalservice", "metadata-proxy", "-n", "tf"])
        .await?
        .success();
    eventually("the report is deleted", async || !has(PROXY).await).await;
    let left = read(&sandbox, &["reports", "-n", "tf", "of-another-engine"]).await?;
    assert_eq!(left["results"][0]["rule"], "their-rule");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_write_into_a_report_is_put_right_and_no_value_stops_the_audit() -> Outcome {
    const PROXY: &str = "LinkLocalService tf/metadata-proxy";
    let sandbox = world(&[ReportApi::OpenReports]).await?;
    // What JSON has as it is, and YAML, as which the API server reads an apply, not at all. It is written out where
    // the policy repeats it.
    let selector = json!({"rack": "x\u{9b}31m\u{2028}y"});
    let odd = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
        "metadata": {"name": "odd", "namespace": "tf"},
        "spec": {"commonConfiguration": {"nodeSelector": selector}, "serviceConfiguration": {}}});
    send(&sandbox, &["create"], &odd).await?.success();
    let product = install(&sandbox, 1).await?;
    let said = another_audit(&sandbox).await?;
    assert_eq!(said["policyReports"]["failed"], 0, "{said:#}");
    let found = reports(&sandbox, "reports").await?;
    let results = found["Zookeeper tf/odd"]["results"].to_string();
    assert!(results.contains(r"x\\u{9b}31m\\u{2028}y"), "{results}");
    assert!(!results.contains(['\u{9b}', '\u{2028}']), "{results}");

    let name = found[PROXY]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let empty = async || {
        let patch = ["patch", "reports.openreports.io", &name, "-n", "tf", "--type=merge", "-p"];
        let said = kubectl(&sandbox, &[&patch[..], &[r#"{"results":[]}"#]].concat()).await?;
        said.success();
        Ok::<(), Failed>(())
    };
    let is_right = async || {
        let found = reports(&sandbox, "reports").await.unwrap_or_default();
        found.get(PROXY).is_some_and(|report| rules(report) == ["OSDN3012"])
    };
    empty().await?;
    eventually("the report says again what is so", is_right).await;
    // The process that wrote it is gone, and with it what it knew.
    product.kill_replica(0);
    empty().await?;
    product.start_replica(0)?;
    eventually("the next process puts it right as well", is_right).await;
    let before = reports(&sandbox, "reports").await?;
    another_audit(&sandbox).await?;
    let after = reports(&sandbox, "reports").await?;
    assert_eq!(version(&before[PROXY]), version(&after[PROXY]), "what is right is left alone");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_are_written_in_one_api_the_newer_one_where_there_are_two() -> Outcome {
    let sandbox = world(&[ReportApi::PolicyReports]).await?;
    let _product = install(&sandbox, 1).await?;
    let number = async |kind: &str| reports(&sandbox, kind).await.map(|found| found.len());
    eventually("there is a report", async || number("policyreports").await.is_ok_and(|n| n == 1))
        .await;

    // A policy about a kind without a namespace has reports without one, within a second or two of when
    // it is put in force.
    install_crds(&sandbox.client()?, &[gizmos()?]).await?;
    let gizmo = json!({"apiVersion": "example.io/v1", "kind": "Gizmo", "metadata": {"name": "g"}});
    send(&sandbox, &["create"], &gizmo).await?.success();
    for grant in [
        &["clusterrole", "gizmos", "--verb=list", "--resource=gizmos.example.io"][..],
        &["clusterrolebinding", "gizmos", "--clusterrole=gizmos", &format!("--user={USER}")],
    ] {
        kubectl(&sandbox, &[&["create"], grant].concat()).await?.success();
    }
    let module = modules::gizmos()?;
    let data = base64::engine::general_purpose::STANDARD.encode(&module);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"policy.wasm": data},
        "metadata": {"name": "refusing", "namespace": "tf"}});
    send(&sandbox, &["create"], &map).await?.success();
    let place = json!({"namespace": "tf", "name": "refusing", "key": "policy.wasm"});
    let policy = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
        "metadata": {"name": "refusing"}, "spec": {"mode": "audit",
            "module": {"configMap": place, "digest": modules::digest(&module)}}});
    send(&sandbox, &["create"], &policy).await?.success();
    const GIZMO: &str = "Gizmo /g";
    let has = async |kind: &str, about: &str| {
        reports(&sandbox, kind).await.is_ok_and(|found| found.contains_key(about))
    };
    eventually("there is one", async || has("clusterpolicyreports", GIZMO).await).await;
    let report = &reports(&sandbox, "clusterpolicyreports").await?[GIZMO];
    assert_eq!(report["results"][0]["message"], modules::MESSAGE, "{report:#}");
    assert_eq!(report["summary"]["fail"], 1, "{report:#}");

    ReportApi::OpenReports.install(&sandbox.client()?).await?;
    let moved = async || {
        has("clusterreports", GIZMO).await
            && number("reports").await.is_ok_and(|n| n == 1)
            && number("policyreports").await.is_ok_and(|n| n == 0)
            && number("clusterpolicyreports").await.is_ok_and(|n| n == 0)
    };
    eventually("the reports are in the other API alone", moved).await;
    kubectl(&sandbox, &["delete", "admissionpolicy", "refusing"]).await?.success();
    let forgotten = async || number("clusterreports").await.is_ok_and(|n| n == 0);
    eventually("what the policy said is forgotten", forgotten).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_right_to_write_reports_one_call_fails_and_the_summary_says_so() -> Outcome {
    let sandbox = world(&[ReportApi::OpenReports]).await?;
    for number in 1..=20 {
        let address = format!("127.0.0.{number}");
        send(&sandbox, &["create"], &service(&format!("bad-{number}"), &address)).await?.success();
    }
    let installation = Installation::built()?.without_policies();
    let installation = installation.argument("--audit-delay=1").argument("--audit-interval=3");
    let _product = installation.install(&sandbox).await?;
    let role = read(&sandbox, &["clusterrole", NAME]).await?;
    let rules = role["rules"].as_array().cloned().unwrap_or_default();
    let kept: Vec<Value> = rules
        .into_iter()
        .map(|mut rule| {
            let ours = rule["apiGroups"].to_string().contains("openreports.io");
            if ours {
                rule["verbs"] = json!(["list"]);
            }
            rule
        })
        .collect();
    let patch = json!([{"op": "replace", "path": "/rules", "value": kept}]).to_string();
    let change = ["patch", "clusterrole", NAME, "--type=json", "-p", &patch];
    kubectl(&sandbox, &change).await?.success();
    let policy = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
        "metadata": {"name": "links"}, "spec": {"module": {"builtIn": "duplicate-link-local"}}});
    send(&sandbox, &["create"], &policy).await?.success();
    let failed = async || {
        let said = summary(&sandbox).await.unwrap_or_default();
        said["policyReports"]["failed"] == 1
    };
    eventually("the summary says that reports cannot be written", failed).await;
    let said = summary(&sandbox).await?;
    let why = said["policyReports"]["failure"].as_str().unwrap_or_default();
    assert!(why.contains("missing RBAC rule") && why.contains("openreports.io"), "{why}");
    assert!(why.ends_with("; 20 more were not tried"), "{why}");
    assert!(said["policies"]["links"]["denials"].as_i64() > Some(10), "{said:#}");
    Ok(())
}

/// Takes the right to read objects of our group from the webhook, but its own.
async fn forbid_lists(sandbox: &Sandbox) -> Outcome {
    let mut role = read(sandbox, &["clusterrole", NAME]).await?;
    let rules = role["rules"].as_array_mut().into_iter().flatten();
    let all_of_ours = rules.filter(|rule| {
        rule["apiGroups"].to_string().contains("opensdn.io") && rule["resources"] == json!(["*"])
    });
    let mut changed = 0;
    for rule in all_of_ours {
        rule["resources"] = json!(["admissionpolicies", "uniqueclaims", "managers", "configs"]);
        changed += 1;
    }
    assert_eq!(changed, 1, "{role:#}");
    let patch = json!([{"op": "replace", "path": "/rules", "value": role["rules"]}]).to_string();
    let change = ["patch", "clusterrole", NAME, "--type=json", "-p", &patch];
    kubectl(sandbox, &change).await?.success();
    Ok(())
}

/// The samples of the audit that a replica exports.
async fn samples(product: &Product, replica: usize) -> Result<Vec<String>, Failed> {
    let text = admin_port::get(product.backends()[replica].admin, "/metrics").await?;
    let of_audit = text.lines().filter(|line| line.starts_with("opensdn_webhook_audit_"));
    Ok(of_audit.map(str::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_found_of_a_kind_stays_while_it_cannot_be_read() -> Outcome {
    let sandbox = world(&[ReportApi::OpenReports]).await?;
    let _product = install(&sandbox, 1).await?;
    let denials = |said: &Value| said["policies"]["duplicate-link-local"]["denials"].clone();
    let said = another_audit(&sandbox).await?;
    assert_eq!(denials(&said), 1, "{said:#}");
    forbid_lists(&sandbox).await?;
    let unread = async || {
        let said = summary(&sandbox).await.unwrap_or_default();
        let not_checked = said["notChecked"].as_array().cloned().unwrap_or_default();
        not_checked.iter().any(|one| one["what"] == "opensdn.io/LinkLocalService")
    };
    eventually("the summary says that it cannot be read", unread).await;
    let said = another_audit(&sandbox).await?;
    assert_eq!(denials(&said), 1, "{said:#}");
    assert_eq!(said["objects"]["opensdn.io/LinkLocalService"], 2, "{said:#}");
    let log = std::fs::read_to_string(sandbox.data_folder().join("logs/webhook-0.log"))?;
    // Where the rights go while it reads, another kind may be the first.
    let of_it = ["failed to audit a kind", "LinkLocalService"];
    let line = log.lines().find(|line| of_it.iter().all(|part| line.contains(part)));
    let line = line.ok_or("no line of the kind")?;
    for part in ["WARN", "list linklocalservices", "missing RBAC rule"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    // Nor does the plugin say that nothing was found.
    let told = audit(&sandbox, None, &["-o", "json"])?;
    assert_eq!((told.code, codes(&told.json()?).len()), (Some(1), 1), "{}", told.err);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_replicas_only_the_one_that_leads_exports_what_the_audit_found() -> Outcome {
    let sandbox = world(&[]).await?;
    let product = install(&sandbox, 2).await?;
    let exports = async |replica: usize| samples(&product, replica).await.unwrap_or_default();
    let audited = async || exports(0).await.len() > 4 || exports(1).await.len() > 4;
    eventually("one replica has audited", audited).await;
    let first = usize::from(exports(0).await.is_empty());
    let other = 1 - first;
    assert_eq!(exports(other).await, Vec::<String>::new(), "a standby");
    let process = product.process_id(first).ok_or("it does not run")?;
    signal::send(Signal::STOP, process)?;
    eventually("the other has audited", async || exports(other).await.len() > 4).await;
    signal::send(Signal::CONT, process)?;
    let forgotten = async || samples(&product, first).await.is_ok_and(|all| all.is_empty());
    eventually("the first has noticed, and exports nothing", forgotten).await;
    assert!(exports(other).await.len() > 4, "and the other does");
    Ok(())
}

/// What the plugin answers, as JSON where it is asked for that, and its exit code.
struct Told {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Told {
    fn json(&self) -> Result<Value, Failed> {
        Ok(serde_json::from_str(&self.out)?)
    }
}

fn audit(sandbox: &Sandbox, user: Option<&User>, flags: &[&str]) -> Result<Told, Failed> {
    let kubeconfig = match user {
        Some(user) => sandbox.kubeconfig_for(user)?,
        None => sandbox.kubeconfig(),
    };
    let output = std::process::Command::new(program("kubectl-opensdn")?)
        .env_clear()
        .env("HOME", sandbox.data_folder())
        .env("KUBECONFIG", kubeconfig)
        .arg("audit")
        .args(flags)
        .output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Told { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) })
}

fn codes(answer: &Value) -> Vec<(String, String)> {
    let findings = answer["findings"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    findings.iter().map(|one| (text(&one["code"]), text(&one["object"]))).collect()
}

/// Without a webhook there is nothing to be shown, but a policy can be tried, which writes nothing.
async fn try_a_policy(sandbox: &Sandbox, would: &[(String, String)]) -> Outcome {
    let policy = sandbox.data_folder().join("links.yaml");
    let text = "{apiVersion: opensdn.io/v1alpha1, kind: AdmissionPolicy, metadata: {name: links}, \
        spec: {mode: audit, module: {builtIn: duplicate-link-local}}}";
    std::fs::write(&policy, text)?;
    let policy = policy.display().to_string();
    let what_if = ["--what-if", &policy, "-o", "json"];
    let told = audit(sandbox, None, &what_if)?;
    assert_eq!(told.code, Some(1), "{}", told.err);
    let answer = told.json()?;
    assert_eq!(codes(&answer), would, "{answer:#}");
    assert_eq!((&answer["objects"], &answer["policies"][0]["denials"]), (&json!(4), &json!(3)));
    let message = answer["findings"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("LinkLocalService tf/good, which is older"), "{message}");
    let stored = read(sandbox, &["admissionpolicies"]).await?;
    assert_eq!(stored["items"], json!([]), "it is tried, not applied");
    let told = audit(sandbox, None, &[&what_if[..], &["-n", "other"]].concat())?;
    assert_eq!(codes(&told.json()?), would[1..2]);

    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_plugin_shows_what_the_audit_found_and_what_a_policy_would_refuse() -> Outcome {
    let sandbox = world(&[]).await?;
    // Two with one address, of which the older has it; one in another namespace.
    wait_for_next_second().await;
    send(&sandbox, &["create"], &service("younger", "169.254.3.2")).await?.success();
    kubectl(&sandbox, &["create", "namespace", "other"]).await?.success();
    let mut elsewhere = service("metadata-elsewhere", "169.254.3.9");
    elsewhere["metadata"]["namespace"] = json!("other");
    send(&sandbox, &["create"], &elsewhere).await?.success();

    let would = [
        ("OSDN3009", "LinkLocalService tf/younger"),
        ("OSDN3012", "LinkLocalService other/metadata-elsewhere"),
        ("OSDN3012", "LinkLocalService tf/metadata-proxy"),
    ];
    let would = would.map(|(code, object)| (code.to_owned(), object.to_owned()));
    let told = audit(&sandbox, None, &[])?;
    assert_eq!(told.code, Some(3), "{}", told.out);
    assert!(told.err.contains("there is no report of an audit"), "{}", told.err);
    try_a_policy(&sandbox, &would).await?;

    // What the webhook's audit found: of its summary, then of the reports.
    let _product = install(&sandbox, 1).await?;
    // What two objects claim is known a little later than the rest.
    let found_all = async || {
        let told = audit(&sandbox, None, &["-o", "json"]).and_then(|told| told.json());
        told.is_ok_and(|answer| codes(&answer) == would)
    };
    eventually("the audit has found all that the policy would refuse", found_all).await;
    let told = audit(&sandbox, None, &["-o", "json"])?;
    let answer = told.json()?;
    assert_eq!((told.code, &answer["source"]), (Some(1), &json!("summary")), "{answer:#}");
    let told = audit(&sandbox, None, &["-A"])?;
    for part in ["deny     OSDN3012  LinkLocalService tf/metadata-proxy", "duplicate-link-local"] {
        assert!(told.out.contains(part), "{part}: {}", told.out);
    }
    assert!(told.err.contains("objects in the audit that ended"), "{}", told.err);
    ReportApi::OpenReports.install(&sandbox.client()?).await?;
    let reported = async || reports(&sandbox, "reports").await.is_ok_and(|all| all.len() == 3);
    eventually("all have reports", reported).await;
    another_audit(&sandbox).await?;
    let answer = audit(&sandbox, None, &["-o", "json"])?.json()?;
    assert_eq!(answer["source"], json!({"reports": "openreports.io/v1alpha1"}), "{answer:#}");
    assert_eq!(codes(&answer), would, "{answer:#}");
    assert!(answer["findings"][0]["since"].as_i64() > Some(1_700_000_000), "{answer:#}");

    // A tenant sees his namespace, and no more.
    for grant in [
        &["role", "reports", "--verb=get,list", "--resource=reports.openreports.io"][..],
        &["rolebinding", "reports", "--role=reports", "--user=tenant"],
    ] {
        kubectl(&sandbox, &[&["create", "-n", "tf"], grant].concat()).await?.success();
    }
    let tenant = User::new("tenant");
    let told = audit(&sandbox, Some(&tenant), &["-n", "tf", "-o", "json"])?;
    let of_tenant = [would[0].clone(), would[2].clone()];
    assert_eq!(codes(&told.json()?), of_tenant, "{}", told.err);
    let told = audit(&sandbox, Some(&tenant), &[])?;
    assert_eq!(told.code, Some(3), "{}", told.out);
    assert!(told.err.contains("tenant"), "{}", told.err);
    Ok(())
}
