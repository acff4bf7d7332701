//! The webhook as a process: reviews per second and their latencies through TLS, memory, start-up;
//! and first what the machine itself costs. The API server is real, the load is wrk's and goes
//! straight to the webhook's port; where there is `taskset`, each of both has a core of its own.
//! Every review is a dry run, so that no claim is stored. Deliberately not here: what one evaluation
//! costs (`evaluate`), nor a write through the API server (`create`).

mod guests;
mod surroundings;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opensdn_deploy::names::NAMESPACE;
use opensdn_policies::ALL;
use opensdn_policy_host::Digest;
use opensdn_testing::Failed;
use opensdn_testing::{
    balancer::Backend,
    measure::{Row, Sample, report},
    oha::OpenLoad,
    product::{Installation, Product},
    programs,
    sandbox::Sandbox,
    wrk::{Answers, Load},
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

type Outcome<T> = Result<T, Failed>;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples");
/// How many bytes a review has where its object leaves room.
const REVIEW: usize = 5 << 10;
/// How long each load lasts.
const SECONDS: u32 = 5;
/// What share of full load is part load, in percent.
const PART_LOADS: [u32; 2] = [40, 60];
/// How long the webhook may take to be ready.
const READY: Duration = Duration::from_secs(60);
/// Policies that all judge a new Vrouter.
const SIX: [&str; 6] = [
    "misleading-field",
    "missing-reference",
    "plaintext",
    "unsafe-parameter",
    "unversioned-image",
    "wrong-container",
];
/// How many AdmissionPolicies "20 policies" are.
const POLICIES: usize = 20;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let bench = Bench::start().await?;
    let mut rows = Vec::new();
    let vrouter = review("vrouter.yaml", "vrouters")?;
    let manager = review("manager.yaml", "managers")?;

    rows.extend(stalls()?);
    bench.restart(Cores::One)?;
    rows.extend(bench.load("no policy", "Vrouter", &vrouter, None)?);
    bench.enforce_guest("unprivileged-pods").await?;
    let pod = envelope("", "v1", "pods", &guests::pod()).to_string();
    rows.extend(bench.load("privileged containers", "Pod", &pod, None)?);
    bench.kubectl(&["delete", "admissionpolicy", "unprivileged-pods"], "").await?;

    bench.enforce(&["unsafe-parameter"]).await?;
    rows.extend(bench.load("one policy", "Vrouter", &vrouter, Some("22,000"))?);

    bench.enforce(&SIX).await?;
    rows.extend(bench.load("six policies", "Vrouter", &vrouter, Some("6,000"))?);

    let all: Vec<&str> = ALL.iter().map(|policy| policy.name).collect();
    bench.enforce(&all).await?;
    rows.extend(bench.load("all built-in policies", "Manager", &manager, None)?);

    let names: Vec<&str> = all.iter().copied().cycle().take(POLICIES).collect();
    bench.enforce(&names).await?;
    rows.extend(bench.start_up()?);
    bench.restart(Cores::All)?;
    rows.extend(bench.memory("idle, warm start")?);
    bench.send(&vrouter, 64, SECONDS)?;
    bench.send(&manager, 64, SECONDS)?;
    rows.extend(bench.memory("after load")?);
    report("webhook", &rows)?;
    Ok(())
}

/// Where the webhook may run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cores {
    One,
    All,
}

/// The product in a sandbox.
struct Bench {
    // Dropped in this order: the webhook before its API server.
    product: Product,
    sandbox: Sandbox,
    folder: TempDir,
    /// Where reviews go, with its token.
    path: String,
    pinned: bool,
}

impl Bench {
    async fn start() -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let pinned = Command::new("taskset").args(["-c", "1", "true"]).output();
        let pinned = pinned.is_ok_and(|output| output.status.success());
        write_program(&program(&folder), None)?;
        let sandbox = Sandbox::builder().only_api_server().start().await?;
        let product = Installation::of(program(&folder))
            .cache_folder(cache(&folder))
            .without_policies()
            .install(&sandbox)
            .await?;
        let path = product.validate_path(&sandbox).await?;
        let bench = Self { product, sandbox, folder, path, pinned };
        surroundings::create(&bench.sandbox).await?;
        Ok(bench)
    }

    async fn kubectl(&self, arguments: &[&str], input: &str) -> Outcome<()> {
        let output = self.sandbox.kubectl_with_input(arguments, input).await?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }

    /// Puts these built-in policies in force, one AdmissionPolicy each, beside those before.
    async fn enforce(&self, modules: &[&str]) -> Outcome<()> {
        let policies = modules.iter().enumerate().map(|(number, module)| {
            let policy = json!({
                "apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
                "metadata": {"name": format!("{module}-{}", number / ALL.len())},
                "spec": {"module": {"builtIn": module}},
            });
            format!("{policy}\n---\n")
        });
        self.kubectl(&["apply", "-f", "-"], &policies.collect::<String>()).await?;
        let ready = ["wait", "--for=condition=Ready", "admissionpolicies", "--all"];
        self.kubectl(&[&ready[..], &["--timeout=120s"]].concat(), "").await
    }

    /// Puts a policy of `tests/guests` in force.
    async fn enforce_guest(&self, name: &str) -> Outcome<()> {
        let module = guests::build(name)?;
        let place = json!({"namespace": NAMESPACE, "name": name, "key": "policy.wasm"});
        let stored = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "binaryData": {"policy.wasm": STANDARD.encode(&module)},
        });
        let policy = json!({
            "apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy", "metadata": {"name": name},
            "spec": {"module": {"configMap": place, "digest": Digest::of(&module).to_string()}},
        });
        for object in [stored, policy] {
            self.kubectl(&["create", "-f", "-"], &object.to_string()).await?;
        }
        let ready = ["wait", "--for=condition=Ready", "--timeout=120s", "admissionpolicy", name];
        self.kubectl(&ready, "").await
    }

    fn backend(&self) -> Outcome<Backend> {
        Ok(*self.product.backends().first().ok_or("a replica")?)
    }

    /// Restarts the webhook; returns how long it took from its start to be ready.
    fn restart(&self, cores: Cores) -> Outcome<Duration> {
        self.product.kill_replica(0);
        let core = (self.pinned && cores == Cores::One).then_some(0);
        write_program(&program(&self.folder), core)?;
        let admin = self.backend()?.admin;
        let started = Instant::now();
        self.product.start_replica(0)?;
        while !is_ready(admin) {
            if started.elapsed() > READY || self.product.process_id(0).is_none() {
                let log = self.sandbox.data_folder().join("logs/webhook-0.log");
                return Err(format!("not ready; it said {}", fs::read_to_string(log)?).into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(started.elapsed())
    }

    fn url(&self) -> Outcome<String> {
        Ok(format!("https://{}{}?timeout=10s", self.backend()?.serve, self.path))
    }

    /// At full load: each connection sends its next review when it has the answer to the last.
    fn send(&self, body: &str, connections: u32, seconds: u32) -> Outcome<Answers> {
        let core = self.pinned.then_some(1);
        Ok(Load { url: &self.url()?, body, connections, seconds, core }.run()?)
    }

    /// So many reviews each second, from independent callers.
    fn send_open(&self, body: &str, per_second: u32) -> Outcome<Answers> {
        let core = self.pinned.then_some(1);
        let (url, seconds) = (self.url()?, SECONDS);
        Ok(OpenLoad { url: &url, body, per_second, seconds, core }.run()?)
    }

    /// The rows of one set of policies and one review.
    fn load(&self, policies: &str, kind: &str, body: &str, aim: Option<&str>) -> Outcome<Vec<Row>> {
        let cores = if self.pinned { "on one core" } else { "not pinned" };
        let what = format!("{policies}, {kind} review of {} bytes, {cores}", body.len());
        let mut rows = Vec::new();
        let mut most = 0.0_f64;
        self.send(body, 8, 1)?;
        for connections in [1, 8, 64] {
            let answers = self.send(body, connections, SECONDS)?;
            let name = format!("{what}, {connections} connections, closed loop");
            let reviews = Row::new(format!("{name}: reviews"), answers.per_second, "1/s");
            rows.push(match aim {
                Some(aim) if connections > 1 => reviews.aim(aim),
                _ => reviews,
            });
            rows.push(Row::new(format!("{name}: p50"), answers.p50, "µs"));
            rows.push(Row::new(format!("{name}: p99"), answers.p99, "µs"));
            most = most.max(answers.per_second);
        }
        for share in PART_LOADS {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "thousands")]
            let per_second = (most * f64::from(share) / 100.0).round() as u32;
            let answers = self.send_open(body, per_second)?;
            let name = format!("{what}, {per_second} a second ({share} %), open loop");
            rows.push(Row::new(format!("{name}: reviews"), answers.per_second, "1/s"));
            rows.push(Row::new(format!("{name}: p50"), answers.p50, "µs"));
            rows.push(Row::new(format!("{name}: p99"), answers.p99, "µs").aim("2,000"));
        }
        Ok(rows)
    }

    fn start_up(&self) -> Outcome<Vec<Row>> {
        let cold = (0..3).map(|_| {
            fs::remove_dir_all(cache(&self.folder))?;
            self.restart(Cores::All)
        });
        let cold = Sample::new(cold.collect::<Outcome<_>>()?);
        let warm = (0..15).map(|_| self.restart(Cores::All)).collect::<Outcome<_>>()?;
        let warm = Sample::new(warm);
        let row = |what: &str, microseconds: f64| {
            let modules = ALL.len();
            let name = format!("{POLICIES} policies of {modules} modules, start to /ready, {what}");
            Row::new(name, microseconds / 1_000.0, "ms")
        };
        Ok(vec![
            row("nothing compiled, p50 of 3", cold.percentile(0.5)),
            row("compiled before, p50 of 15", warm.percentile(0.5)).aim("150"),
            row("compiled before, longest of 15", warm.percentile(1.0)),
        ])
    }

    fn memory(&self, when: &str) -> Outcome<Vec<Row>> {
        let id = self.product.process_id(0).ok_or("the webhook runs")?;
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let row = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field));
            let kib = line.and_then(|line| line.split_whitespace().nth(1));
            let kib: f64 = kib.ok_or_else(|| format!("no {field} in {status}"))?.parse()?;
            let name = format!("{POLICIES} policies, memory {when}: {field}");
            Outcome::Ok(Row::new(name, kib / 1_024.0, "MiB").aim("40"))
        };
        Ok(vec![row("VmRSS")?, row("RssAnon")?, row("VmHWM")?])
    }
}

/// What a program that never waits loses on this machine to others, the hypervisor among them. No
/// latency can be had without it: a p99 of 2 ms means little where 1 % of the time is lost in longer
/// pieces.
fn stalls() -> Outcome<[Row; 3]> {
    const SHORTEST: Duration = Duration::from_micros(200);
    const LONG: Duration = Duration::from_millis(1);
    let look = || {
        let (begun, mut before) = (Instant::now(), Instant::now());
        let mut lost = Vec::new();
        while begun.elapsed() < Duration::from_secs(u64::from(SECONDS)) {
            let now = Instant::now();
            lost.extend(Some(now - before).filter(|gap| *gap > SHORTEST));
            before = now;
        }
        lost
    };
    // One for each core, as wrk and the webhook are.
    let cores = [std::thread::spawn(look), std::thread::spawn(look)];
    let mut lost = Vec::new();
    for core in cores {
        lost.extend(core.join().map_err(|_| "a thread that looks at the clock panicked")?);
    }
    let share: Duration = lost.iter().sum();
    let share = share.as_secs_f64() / f64::from(2 * SECONDS) * 100.0;
    #[allow(clippy::cast_precision_loss, reason = "a few")]
    let long = lost.iter().filter(|gap| **gap > LONG).count() as f64;
    let longest = lost.into_iter().max().unwrap_or_default().as_secs_f64() * 1_000.0;
    let name = |what: &str| format!("two threads that only look at the clock: {what}");
    Ok([
        Row::new(name("time they get no core, in pieces over 0.2 ms"), share, "%"),
        Row::new(name(&format!("pieces over 1 ms in {SECONDS} s")), long, ""),
        Row::new(name("the longest piece"), longest, "ms"),
    ])
}

fn program(folder: &TempDir) -> PathBuf {
    folder.path().join("webhook")
}

fn cache(folder: &TempDir) -> PathBuf {
    folder.path().join("compiled")
}

/// A program that becomes the webhook, on one core or on all. A core that is given before the
/// start is known to the runtime, which makes one thread for it, as in a container of one CPU.
fn write_program(file: &Path, core: Option<u32>) -> Outcome<()> {
    let pin = core.map(|core| format!("taskset -c {core} ")).unwrap_or_default();
    let webhook = programs::program("opensdn-webhook")?;
    fs::write(file, format!("#!/bin/sh\nexec {pin}'{}' \"$@\"\n", webhook.display()))?;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Asked every millisecond, so without the runtime's detours. An error is one more "not yet".
fn is_ready(admin: std::net::SocketAddr) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect_timeout(&admin, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /ready HTTP/1.0\r\nHost: replica\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        std::io::Result::Ok(answer.get(9..12) == Some(b"200"))
    };
    ask().unwrap_or(false)
}

/// A review of the sample, as large as the API server's are: the object has the managed fields
/// that server-side apply leaves in it.
fn review(sample: &str, plural: &str) -> Outcome<String> {
    let text = fs::read_to_string(format!("{SAMPLES}/{sample}"))?;
    let mut object: Value = serde_saphyr::from_str(&text)?;
    let mut fields = Map::new();
    loop {
        let managed = json!([{
            "manager": "kubectl", "operation": "Apply", "apiVersion": "tf.tungsten.io/v1alpha1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": fields.clone()},
        }]);
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("managedFields".to_owned(), managed);
        }
        let body = envelope("tf.tungsten.io", "v1alpha1", plural, &object).to_string();
        if body.len() >= REVIEW {
            return Ok(body);
        }
        fields.insert(format!("f:someFieldOfTheObject{:04}", fields.len()), json!({}));
    }
}

fn envelope(group: &str, version: &str, plural: &str, object: &Value) -> Value {
    let text = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    let kind = json!({"group": group, "version": version, "kind": text("/kind")});
    let resource = json!({"group": group, "version": version, "resource": plural});
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "5a9a3a4c-6e0c-4d3e-9b55-0f7c8e0f3b11",
            "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": text("/metadata/name"), "namespace": "tf", "operation": "CREATE",
            "userInfo": {
                "username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"],
            },
            "object": object, "oldObject": null, "dryRun": true,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    })
}
