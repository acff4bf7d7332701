//! What the audit costs where much is stored: 10,000 objects, each with a finding and so a report, first
//! and again; with the calls to the API server, by its audit log. Deliberately not here: reviews.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use opensdn_deploy::names::webhook::{AUDIT_REPORT, USER};
use opensdn_testing::Failed;
use opensdn_testing::eventually::eventually_within;
use opensdn_testing::installer::install_crds;
use opensdn_testing::kubectl::kubectl;
use opensdn_testing::measure::{Row, report};
use opensdn_testing::product::{Installation, Product};
use opensdn_testing::report_apis::ReportApi;
use opensdn_testing::sandbox::Sandbox;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Failed>;

const OBJECTS: usize = 10_000;
/// Creates at once.
const CONCURRENT: usize = 16;
const LONGEST: std::time::Duration = std::time::Duration::from_secs(900);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    let client = sandbox.client()?;
    install_crds(&client, &opensdn_crds::all()).await?;
    ReportApi::OpenReports.install(&client).await?;
    kubectl(&sandbox, &["create", "namespace", "tf"]).await?.success();
    store(&sandbox).await?;
    let installation = Installation::built()?.argument("--audit-interval=1");
    let product = installation.argument("--audit-delay=20").install(&sandbox).await?;

    let idle = memory(&product)?;
    let before = Timestamp::now();
    let first = audit(&sandbox, before).await?;
    let mut rows = rows("first", &sandbox, &first)?;
    let again = audit(&sandbox, Timestamp::now()).await?;
    rows.extend(self::rows("again", &sandbox, &again)?);
    rows.push(Row::new("resident memory before", idle, "MiB"));
    rows.push(Row::new("resident memory after", memory(&product)?, "MiB"));
    report("audit", &rows)?;
    Ok(())
}

/// Objects with one warning each.
async fn store(sandbox: &Sandbox) -> Outcome<()> {
    let kind = GroupVersionKind::gvk("tf.tungsten.io", "v1alpha1", "Zookeeper");
    let resource = ApiResource::from_gvk_with_plural(&kind, "zookeepers");
    let api: Api<DynamicObject> = Api::namespaced_with(sandbox.client()?, "tf", &resource);
    let containers =
        json!([{"name": "zookeeper", "image": "registry.example.com/zookeeper:latest"}]);
    let object = |number: usize| {
        serde_json::from_value::<DynamicObject>(json!({
            "apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
            "metadata": {"name": format!("z{number}"), "namespace": "tf"},
            "spec": {"serviceConfiguration": {"containers": containers}},
        }))
    };
    stream::iter(0..OBJECTS)
        .map(|number| {
            let api = &api;
            async move {
                api.create(&PostParams::default(), &object(number)?).await?;
                Ok::<(), Failed>(())
            }
        })
        .buffer_unordered(CONCURRENT)
        .try_collect()
        .await
}

/// The summary of an audit of everything that began after this.
async fn audit(sandbox: &Sandbox, after: Timestamp) -> Outcome<Value> {
    let ended = async || summary(sandbox).await.is_ok_and(|one| time(&one, "began") > Some(after));
    eventually_within(LONGEST, "the audit has ended", ended).await;
    summary(sandbox).await
}

async fn summary(sandbox: &Sandbox) -> Outcome<Value> {
    let maps: Api<ConfigMap> = Api::namespaced(sandbox.client()?, "opensdn-system");
    let data = maps.get(AUDIT_REPORT).await?.data.unwrap_or_default();
    Ok(serde_json::from_str(data.get("report.json").ok_or("no report")?)?)
}

fn time(summary: &Value, field: &str) -> Option<Timestamp> {
    summary.get(field)?.as_str()?.parse().ok()
}

fn rows(which: &str, sandbox: &Sandbox, summary: &Value) -> Outcome<Vec<Row>> {
    let began = time(summary, "began").ok_or("began")?;
    let ended = time(summary, "ended").ok_or("ended")?;
    let number = |pointer: &str| summary.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
    let objects = number("/objects/tf.tungsten.io~1Zookeeper");
    let mut rows = vec![
        Row::new(format!("{which} audit of {objects} objects"), seconds(began, ended), "s"),
        Row::new(format!("{which} audit: reports written"), number("/policyReports/written"), ""),
    ];
    for (call, count) in calls(sandbox, began, ended)? {
        rows.push(Row::new(format!("{which} audit: {call}"), count, "calls"));
    }
    Ok(rows)
}

#[allow(clippy::cast_precision_loss, reason = "seconds")]
fn seconds(began: Timestamp, ended: Timestamp) -> f64 {
    (ended.as_millisecond() - began.as_millisecond()) as f64 / 1e3
}

/// What the webhook asked of the audited kind and of reports meanwhile, by the audit log.
fn calls(sandbox: &Sandbox, began: Timestamp, ended: Timestamp) -> Outcome<BTreeMap<String, f64>> {
    let mut calls = BTreeMap::new();
    for event in sandbox.requests_of(USER)? {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let at = text("/requestReceivedTimestamp").parse::<Timestamp>();
        let resource = text("/objectRef/resource");
        if text("/verb") != "watch"
            && ["zookeepers", "reports", "clusterreports"].contains(&resource)
            && at.is_ok_and(|at| at >= began && at <= ended)
        {
            *calls.entry(format!("{} {resource}", text("/verb"))).or_default() += 1.0;
        }
    }
    Ok(calls)
}

/// Resident memory of the webhook's process, in MiB.
fn memory(product: &Product) -> Outcome<f64> {
    let process = product.process_id(0).ok_or("a process")?;
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("VmRSS")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1024.0)
}
