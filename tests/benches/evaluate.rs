//! What one evaluation costs: a fresh instance each time, against the same rule compiled natively;
//! and what each built-in policy costs, its lookups answered from documents.

mod guests;

use std::{fs, sync::Arc, time::Duration};

use opensdn_policies::ALL;
use opensdn_policy_host::{
    Binding, Cache, Context, Engine, Limits, Mode, Operation, Policy, PolicySet, Ratcheting,
    Request, Scope, Step,
    lookup::{Documents, NoLookup},
    scan::{self, Document},
};
use opensdn_policy_sdk::bindings::{Guest as _, opensdn::policy::types as wire};
use opensdn_testing::Failed;
use opensdn_testing::measure::{Row, Sample, report};
use serde_json::{Value, json};
use tokio::{runtime::Runtime, time::Instant};

const RUNS: usize = 20_000;
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples");

fn main() -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let engine = Engine::start(16)?;
    let bytes = guests::build("ten-fields")?;
    let policy = runtime.block_on(Policy::load(&engine, &bytes, None, None))?;
    let mut rows = Vec::new();
    for (label, size) in [("4 KiB", 4 << 10), ("64 KiB", 64 << 10)] {
        let object = object(size).to_string();
        let set = PolicySet::new(vec![bind(&policy)], Vec::new());
        rows.extend(host(&runtime, &set, label, ("Vrouter", &object), "25 µs")?);
        rows.extend(native(&set, label, &object)?);
    }
    rows.extend(pods(&runtime, &engine)?);
    let samples = Samples::read()?;
    let policies = load_all(&runtime, &engine)?;
    rows.extend(built_in(&runtime, &policies, &samples)?);
    rows.extend(all_built_in(&runtime, &policies, &samples)?);
    report("evaluate", &rows)?;
    Ok(())
}

/// A Vrouter whose JSON text has about this many bytes.
fn object(size: usize) -> Value {
    let containers: Vec<Value> = ["provisioner", "nodemanager", "vrouteragent", "vroutercni"]
        .map(|name| json!({"name": name, "image": format!("tungstenfabric/contrail-{name}:R21.4")}))
        .into();
    let mut environment = serde_json::Map::new();
    while environment.len() * 44 + 900 < size {
        let key = format!("VARIABLE_{:05}", environment.len());
        environment.insert(key, json!("a value of some length"));
    }
    json!({
        "apiVersion": "tf.tungsten.io/v1alpha1",
        "kind": "Vrouter",
        "metadata": {"name": "vrouter1", "namespace": "tf", "labels": {"tf_cluster": "cluster1"}},
        "spec": {
            "commonConfiguration": {"logLevel": "info", "distribution": "ubuntu"},
            "serviceConfiguration": {
                "envVariablesConfig": environment,
                "controlInstance": "control1", "physicalInterface": "eth0",
                "dataSubnet": "10.0.0.0/24", "cniMTU": 1450, "hugePages2M": 128,
                "sslEnable": true, "containers": containers,
            },
        },
    })
}

/// The rule about Pods that engines of policies are compared by.
fn pods(runtime: &Runtime, engine: &Engine) -> Result<Vec<Row>, Failed> {
    let bytes = guests::build("unprivileged-pods")?;
    let policy = runtime.block_on(Policy::load(engine, &bytes, None, None))?;
    let set = PolicySet::new(vec![bind(&policy)], Vec::new());
    let pod = guests::pod().to_string();
    host(runtime, &set, "privileged containers, a Pod of two", ("Pod", &pod), "15 µs")
}

fn host(
    runtime: &Runtime,
    set: &PolicySet,
    label: &str,
    (kind, text): (&str, &str),
    aim: &str,
) -> Result<Vec<Row>, Failed> {
    let mut paths = scan::Paths::new();
    let mount = paths.mount("", set.paths());
    let scans = Sample::of(RUNS, || {
        std::hint::black_box(scan::scan(text.as_bytes(), &paths).is_ok());
    });
    let found = scan::scan(text.as_bytes(), &paths)?;
    let document = found.document(&mount).ok_or("the object")?;
    let request = match kind {
        "Pod" => Request { group: "", version: "v1", ..request(kind, "web", document) },
        _ => request(kind, "vrouter1", document),
    };
    let evaluate = || async {
        let deadline = Instant::now() + Duration::from_secs(1);
        set.evaluate(
            &request,
            &Context { lookup: Arc::new(NoLookup), deadline, is_background: false },
        )
        .await
    };
    let verdict = runtime.block_on(evaluate());
    assert!(verdict.failures.is_empty() && verdict.findings.is_empty(), "{verdict:?}");
    assert_eq!(verdict.evaluations.len(), 1, "the policy is not asked: {verdict:?}");
    let evaluations = Sample::of(RUNS, || {
        std::hint::black_box(runtime.block_on(evaluate()));
    });
    let row = |what: &str, sample: &Sample, share| {
        Row::new(format!("{what}, {label}"), sample.percentile(share), "µs")
    };
    Ok(vec![
        row("scan p50", &scans, 0.5),
        row("evaluate, fresh instance p50", &evaluations, 0.5).aim(aim),
        row("evaluate, fresh instance p99", &evaluations, 0.99),
    ])
}

/// The same rule without WebAssembly: the parts as text, the guest's own code.
fn native(set: &PolicySet, label: &str, text: &str) -> Result<Vec<Row>, Failed> {
    let object: Value = serde_json::from_str(text)?;
    let interest = set.bindings().next().and_then(|one| one.policy.metadata().interests.first());
    let reads = interest.map(|interest| interest.reads.clone()).unwrap_or_default();
    let part = |pointer: &String| object.pointer(pointer).map(Value::to_string);
    let parts: Vec<Option<String>> = reads.iter().map(part).collect();
    let sample = Sample::of(RUNS, || {
        let request = wire::Request {
            operation: wire::Operation::Create,
            interest: 0,
            group: "tf.tungsten.io".to_owned(),
            version: "v1alpha1".to_owned(),
            kind: "Vrouter".to_owned(),
            subresource: String::new(),
            name: "vrouter1".to_owned(),
            namespace: "tf".to_owned(),
            user: "jane".to_owned(),
            groups: Vec::new(),
            dry_run: false,
            object: parts.clone(),
            old_object: Vec::new(),
        };
        std::hint::black_box(
            ten_fields::ExportedPolicy::validate(request, "{}".to_owned()).is_ok(),
        );
    });
    Ok(vec![Row::new(format!("the same natively p50, {label}"), sample.percentile(0.5), "µs")])
}

/// The sample Manager, which is of concern to all built-in policies, and what their lookups find.
struct Samples {
    manager: String,
    lookup: Arc<Documents>,
}

impl Samples {
    fn read() -> Result<Self, Failed> {
        let sample = |name: &str| -> Result<Value, Failed> {
            Ok(serde_saphyr::from_str(&fs::read_to_string(format!("{SAMPLES}/{name}.yaml"))?)?)
        };
        let manager = sample("manager")?.to_string();
        let lookup = Arc::new(Documents::new(vec![sample("control")?, sample("vrouter")?]));
        Ok(Self { manager, lookup })
    }

    fn context(&self) -> Context {
        let deadline = Instant::now() + Duration::from_secs(1);
        Context { lookup: self.lookup.clone(), deadline, is_background: false }
    }
}

type Named = (&'static str, Policy);

fn load_all(runtime: &Runtime, engine: &Engine) -> Result<Vec<Named>, Failed> {
    let cache = Cache::of_user()?;
    let load = |built_in: &opensdn_policies::BuiltIn| {
        let policy = Policy::load(engine, built_in.bytes, None, cache.as_ref());
        Ok((built_in.name, runtime.block_on(policy)?))
    };
    ALL.iter().map(load).collect()
}

/// All built-in policies in one set, as in a webhook: each finds in the processor's caches what the
/// ones before it have left there.
fn all_built_in(
    runtime: &Runtime,
    policies: &[Named],
    samples: &Samples,
) -> Result<Vec<Row>, Failed> {
    let named = |(name, policy): &Named| Binding { name: (*name).to_owned(), ..bind(policy) };
    let bindings = policies.iter().map(named).collect();
    let set = PolicySet::new(bindings, Vec::new());
    let mut paths = scan::Paths::new();
    let mount = paths.mount("", set.paths());
    let found = scan::scan(samples.manager.as_bytes(), &paths)?;
    let document = found.document(&mount).ok_or("the object")?;
    let request = request("Manager", "cluster1", document);
    let verdict = runtime.block_on(set.evaluate(&request, &samples.context()));
    assert!(verdict.failures.is_empty(), "{verdict:?}");
    let sample = Sample::of(RUNS / 10, || {
        std::hint::black_box(runtime.block_on(set.evaluate(&request, &samples.context())));
    });
    let count = verdict.evaluations.len();
    let row = |what: &str, share| {
        let name = format!("the {count} that judge a new Manager, one after the other, {what}");
        Row::new(name, sample.percentile(share), "µs")
    };
    Ok(vec![row("p50", 0.5), row("p99", 0.99)])
}

/// Every built-in policy on its own.
fn built_in(runtime: &Runtime, policies: &[Named], samples: &Samples) -> Result<Vec<Row>, Failed> {
    let text = &samples.manager;
    let mut rows = Vec::new();
    for (policy_name, policy) in policies {
        let set = PolicySet::new(vec![bind(policy)], Vec::new());
        let mut paths = scan::Paths::new();
        let mount = paths.mount("", set.paths());
        let found = scan::scan(text.as_bytes(), &paths)?;
        let document = found.document(&mount).ok_or("the object")?;
        // An update that changes nothing: policies about changes judge it too.
        let (operation, old_object) = (Operation::Update, Some(document));
        let request = Request { operation, old_object, ..request("Manager", "cluster1", document) };
        let mutates = set.concerns(Step::Mutate, &request);
        let run = || async {
            let context = samples.context();
            if mutates {
                let mutation = set.mutate(&request, &context).await;
                (mutation.evaluations.len(), mutation.failures)
            } else {
                let verdict = set.evaluate(&request, &context).await;
                (verdict.evaluations.len(), verdict.failures)
            }
        };
        let (evaluations, failures) = runtime.block_on(run());
        assert!(evaluations == 1 && failures.is_empty(), "{policy_name}: {failures:?}");
        let sample = Sample::of(RUNS / 4, || {
            std::hint::black_box(runtime.block_on(run()));
        });
        let verb = if mutates { "mutates" } else { "judges" };
        let kib = text.len().div_ceil(1 << 10);
        let name = format!("{policy_name} {verb} a Manager of {kib} KiB, fresh instance");
        rows.push(Row::new(format!("{name} p50"), sample.percentile(0.5), "µs"));
        rows.push(Row::new(format!("{name} p99"), sample.percentile(0.99), "µs"));
    }
    Ok(rows)
}

fn request<'r>(kind: &'r str, name: &'r str, object: Document<'r>) -> Request<'r> {
    Request {
        operation: Operation::Create,
        group: "tf.tungsten.io",
        version: "v1alpha1",
        kind,
        subresource: "",
        name,
        namespace: "tf",
        namespace_labels: None,
        user: "jane",
        groups: &[],
        dry_run: false,
        object: Some(object),
        old_object: None,
    }
}

fn bind(policy: &Policy) -> Binding {
    Binding {
        name: "ten-fields".to_owned(),
        policy: policy.clone(),
        settings: "{}".to_owned(),
        mode: Mode::Enforce,
        failure_mode: None,
        ratcheting: Ratcheting::Enabled,
        scope: Scope::default(),
        limits: Limits::default(),
    }
}
