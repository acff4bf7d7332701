//! What the operator costs: from a Manager to its objects and to Ready on simulated nodes, of two services and of all kinds with three
//! members each, a pass with nothing to do, how soon a change is written, and its memory with 1, 100 and 1,000 Managers (`OPERATOR_MANAGERS` says others).
//! Deliberately not here: how long real pods take.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use opensdn_crds::component::COMPONENTS;
use opensdn_testing::Failed;
use opensdn_testing::eventually::eventually_within;
use opensdn_testing::fault_proxy::FaultProxy;
use opensdn_testing::installer::install_crds;
use opensdn_testing::kubectl::kubectl;
use opensdn_testing::manager::whole;
use opensdn_testing::measure::{Row, Sample, report};
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

type Outcome<T> = Result<T, Failed>;

/// Changes of which the median counts.
const CHANGES: usize = 50;
/// Longer than between two writes.
const QUIET: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(1800);
/// Creates at once.
const CONCURRENT: usize = 8;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let mut rows = one_manager().await?;
    for tag in ["R24.1", "R25.1"] {
        rows.extend(whole_manager(tag).await?);
    }
    let given = std::env::var("OPERATOR_MANAGERS").unwrap_or_else(|_| "1,100,1000".to_owned());
    for number in given.split(',').map(str::parse) {
        rows.extend(many_managers(number?).await?);
    }
    report("operator", &rows)?;
    Ok(())
}

fn managers(sandbox: &Sandbox, namespace: &str) -> Outcome<Api<DynamicObject>> {
    let kind = GroupVersionKind::gvk("tf.tungsten.io", "v1alpha1", "Manager");
    let resource = ApiResource::from_gvk_with_plural(&kind, "managers");
    Ok(Api::namespaced_with(sandbox.client()?, namespace, &resource))
}

/// With Redis, which is run, and a web UI, which is only made.
fn manager(name: &str) -> Outcome<DynamicObject> {
    let service = |name: &str, containers: &[&str]| {
        let image =
            |name: &&str| json!({"name": name, "image": format!("registry.example.com/{name}:1")});
        let containers: Vec<Value> = containers.iter().map(image).collect();
        json!({"metadata": {"name": name}, "spec": {"serviceConfiguration": {"containers": containers}}})
    };
    Ok(serde_json::from_value(json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": name},
        "spec": {"services": {"redis": [service("redis1", &["redis", "stunnel"])],
            "webui": service("webui1", &["webuiweb", "webuijob"])}}}))?)
}

/// Three nodes of the control plane, and an operator that leads, of which the proxy counts what it asks.
async fn behind_a_proxy() -> Outcome<(Sandbox, FaultProxy, Operator)> {
    let sandbox = Sandbox::builder().simulated_nodes(3).with_crds().await?;
    let label = "node-role.kubernetes.io/control-plane=";
    kubectl(&sandbox, &["label", "nodes", "--all", label]).await?.success();
    kubectl(&sandbox, &["create", "namespace", "one"]).await?.success();
    let proxy = FaultProxy::start(sandbox.client()?, []).await?;
    let kubeconfig = proxy.kubeconfig(sandbox.data_folder())?;
    let operator = Operator::start_with(&sandbox, &kubeconfig, "one")?;
    let leads = async || operator.metric(0, "opensdn_leader").await > 0.0;
    eventually_within(LONGEST, "it leads", leads).await;
    Ok((sandbox, proxy, operator))
}

async fn one_manager() -> Outcome<Vec<Row>> {
    let (sandbox, proxy, operator) = behind_a_proxy().await?;
    let api = managers(&sandbox, "one")?;
    let begun = Instant::now();
    api.create(&PostParams::default(), &manager("it")?).await?;
    let ready = async || operator.metric(0, "opensdn_service_ready").await > 0.0;
    eventually_within(LONGEST, "Redis is ready", ready).await;
    let until_ready = begun.elapsed();
    proxy.quiet_for(QUIET).await;
    let writes = proxy.writes();
    let is_object = |path: &str| !path.ends_with("/status") && !path.contains("/events");
    let objects = writes.iter().filter(|write| is_object(&write.path)).count();
    let spent = |own: f64| own * 1000.0;
    let passes = operator.metric(0, "opensdn_reconcile_duration_seconds_sum").await;
    let mut rows = vec![
        Row::new(
            "from a Manager to Redis Ready on three simulated nodes",
            until_ready.as_secs_f64(),
            "s",
        ),
        Row::new("of that in passes of the operator", spent(passes), "ms").aim("2,000"),
        Row::new("writes for it: objects", objects_as_number(objects), ""),
        Row::new(
            "writes for it: statuses and Events",
            objects_as_number(writes.len() - objects),
            "",
        ),
    ];

    let before = proxy.writes().len();
    kubectl(&sandbox, &["label", "-n", "one", "managers.tf.tungsten.io", "it", "look=again"])
        .await?
        .success();
    // Nothing reports a call that is not made.
    sleep(QUIET).await;
    proxy.quiet_for(QUIET).await;
    rows.push(
        Row::new(
            "writes of a pass with nothing to do",
            objects_as_number(proxy.writes().len() - before),
            "",
        )
        .aim("0"),
    );
    rows.push(change(&api, &proxy).await?);
    Ok(rows)
}

/// Of all kinds, highly available: three of each. Up to R24.1 keys are of RSA, which take nine tenths of the work.
async fn whole_manager(tag: &str) -> Outcome<Vec<Row>> {
    let (sandbox, proxy, operator) = behind_a_proxy().await?;
    let (requests, worked) =
        (proxy.requests().len(), operator.processor_time(0).unwrap_or_default());
    let api = managers(&sandbox, "one")?;
    let image = |name: &str| format!("registry.example.com/{name}:{tag}");
    let manager = serde_json::from_value(whole("one", "it", image))?;
    let begun = Instant::now();
    api.create(&PostParams::default(), &manager).await?;
    let services = COMPONENTS.len();
    let ready = async || operator.metric(0, "opensdn_service_ready").await;
    let all_ready = async || ready().await >= objects_as_number(services);
    eventually_within(LONGEST, "all services are ready", all_ready).await;
    let until_ready = begun.elapsed();
    proxy.quiet_for(QUIET).await;
    let worked = operator.processor_time(0).unwrap_or_default() - worked;
    let passes = operator.metric(0, "opensdn_reconcile_duration_seconds_sum").await;
    let writes = proxy.writes();
    let is_object = |path: &&str| !path.ends_with("/status") && !path.contains("/events");
    let of_objects: Vec<&str> = writes.iter().map(|one| &*one.path).filter(is_object).collect();
    let objects = objects_as_number(of_objects.iter().collect::<BTreeSet<_>>().len());
    let per_object = objects_as_number(of_objects.len()) / objects;
    let reads = proxy.requests().len() - requests - writes.len();
    Ok(vec![
        Row::new(
            format!("from a Manager of all kinds of {tag}, three of each, to Ready"),
            until_ready.as_secs_f64(),
            "s",
        ),
        Row::new("of that work of the operator's own, of a processor", worked, "s").aim("2"),
        Row::new("in passes, calls included", passes, "s"),
        Row::new("objects for it", objects, ""),
        Row::new("writes for each of them", per_object, "").aim("1.1"),
        Row::new(
            "writes for it: statuses and Events",
            objects_as_number(writes.len() - of_objects.len()),
            "",
        ),
        Row::new("other requests", objects_as_number(reads), ""),
    ])
}

#[allow(clippy::cast_precision_loss, reason = "there are few")]
fn objects_as_number(number: usize) -> f64 {
    number as f64
}

/// From a change of the Manager to the first write of the operator.
async fn change(api: &Api<DynamicObject>, proxy: &FaultProxy) -> Outcome<Row> {
    let mut times = Vec::new();
    for number in 0..CHANGES {
        let level = if number % 2 == 0 { "debug" } else { "info" };
        let patch = json!({"spec": {"commonConfiguration": {"logLevel": level}}});
        let before = proxy.writes().len();
        api.patch("it", &PatchParams::default(), &Patch::Merge(patch)).await?;
        let begun = Instant::now();
        while proxy.writes().len() == before {
            sleep(Duration::from_micros(500)).await;
        }
        times.push(begun.elapsed());
        proxy.quiet_for(Duration::from_millis(200)).await;
    }
    let p50 = Sample::new(times).percentile(0.5);
    Ok(Row::new("from a change of the Manager to the first write, p50", p50 / 1000.0, "ms")
        .aim("50"))
}

async fn many_managers(number: usize) -> Outcome<Vec<Row>> {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    let client = sandbox.client()?;
    install_crds(&client, &opensdn_crds::all()).await?;
    let all: Vec<String> = (0..number).map(|number| format!("n-{number}")).collect();
    let create = |namespace: String| {
        let sandbox = &sandbox;
        async move {
            kubectl(sandbox, &["create", "namespace", &namespace]).await?.success();
            managers(sandbox, &namespace)?.create(&PostParams::default(), &manager("it")?).await?;
            Ok::<(), Failed>(())
        }
    };
    stream::iter(all.into_iter().map(create))
        .buffer_unordered(CONCURRENT)
        .try_collect::<()>()
        .await?;
    kubectl(&sandbox, &["create", "namespace", "own"]).await?.success();
    let operator = Operator::start_everywhere(&sandbox, &sandbox.kubeconfig(), "own")?;
    let begun = Instant::now();
    // No node is there: no pod either, and nothing is ready.
    let known = async || {
        let text = operator.metrics(0).await;
        text.lines().filter(|line| line.starts_with("opensdn_service_ready{")).count() >= 2 * number
    };
    eventually_within(LONGEST, "all are looked at", known).await;
    let mut passes = 0.0;
    loop {
        // Nor of a pass that does not come.
        sleep(QUIET).await;
        let now = operator.metric(0, "opensdn_reconcile_total").await;
        if now <= passes {
            break;
        }
        passes = now;
    }
    let took = begun.elapsed().saturating_sub(QUIET);
    let memory = operator.memory(0).ok_or("it does not run")?;
    Ok(vec![
        Row::new(format!("{number} Managers: until all is written"), took.as_secs_f64(), "s"),
        Row::new(format!("{number} Managers: resident memory"), memory, "MiB"),
    ])
}
