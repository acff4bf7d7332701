//! What the template of each language costs in the host: the same small policy (no owner, no
//! object) on the same object, in a fresh instance each time. The modules are those that
//! `make test-languages` leaves in the cache; one that is not there is made as an author would,
//! with `policy new` and the template's own command. A language whose tools are missing is left
//! out, and the table says so.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use opensdn_policy_host::{
    Binding, Cache, Context, Engine, Limits, Mode, Operation, Policy, PolicySet, Ratcheting,
    Request, Scope, lookup::NoLookup, scan,
};
use opensdn_testing::Failed;
use opensdn_testing::measure::{Row, Sample, report};
use opensdn_testing::programs::program;
use tokio::{runtime::Runtime, time::Instant};

/// `LANGUAGE_RUNS=20 cargo bench --bench languages` is quick.
const RUNS: usize = 2_000;
/// What a policy is built with; without it the language is left out.
const LANGUAGES: [(&str, &[&str]); 4] = [
    ("rust", &["cargo"]),
    ("c", &["clang", "wasm-ld", "make"]),
    ("javascript", &["node", "npm", "make"]),
    ("python", &["python3", "make"]),
];
const OBJECT: &str = r#"{"apiVersion": "example.com/v1", "kind": "Database",
    "metadata": {"name": "example", "labels": {"app": "example", "owner": "network"}}}"#;

fn main() -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let engine = Engine::start(16)?;
    let runs = std::env::var("LANGUAGE_RUNS").ok().and_then(|runs| runs.parse().ok());
    let mut rows = Vec::new();
    for (language, tools) in LANGUAGES {
        match module(language, tools) {
            Ok(bytes) => {
                rows.extend(measure(&runtime, &engine, language, &bytes, runs.unwrap_or(RUNS))?);
            }
            Err(why) => rows.push(Row::new(format!("{language}: left out: {why}"), f64::NAN, "")),
        }
    }
    report("languages", &rows)?;
    Ok(())
}

/// Where `gate/test-languages.sh` has its projects.
fn projects() -> Option<PathBuf> {
    Some(opensdn_user_folders::cache()?.join("languages"))
}

/// The module of the language's template; `Err` says why there is none.
fn module(language: &str, tools: &[&str]) -> Result<Vec<u8>, String> {
    let project = projects().ok_or("there is no home to build it in")?.join(language);
    let built = project.join("build/no-owner.wasm");
    if let Ok(bytes) = fs::read(&built) {
        return Ok(bytes);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing = |tool: &&&str| !std::env::split_paths(&path).any(|one| one.join(tool).is_file());
    if let Some(tool) = tools.iter().find(missing) {
        return Err(format!("there is no {tool}"));
    }
    if !project.exists() {
        let place = project.display().to_string();
        let kinds = ["--kinds", "Manager,example.com/v1/Database"];
        let new = ["new", "no-owner", "--lang", language, "--dir", &place];
        policy(Path::new("."), &[&new[..], &kinds[..]].concat())?;
    }
    policy(&project, &["build"])?;
    fs::read(&built).map_err(|error| format!("{}: {error}", built.display()))
}

fn policy(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program("kubectl-opensdn").map_err(|error| error.to_string())?);
    // What the projects build is theirs.
    command.env_remove("CARGO_BUILD_BUILD_DIR").env_remove("CARGO_TARGET_DIR");
    let output = command
        .arg("policy")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    if output.status.success() { Ok(()) } else { Err(last.trim().to_owned()) }
}

fn measure(
    runtime: &Runtime,
    engine: &Engine,
    language: &str,
    bytes: &[u8],
    runs: usize,
) -> Result<Vec<Row>, Failed> {
    let cache = Cache::of_user()?;
    let policy = runtime.block_on(Policy::load(engine, bytes, None, cache.as_ref()))?;
    let binding = Binding {
        name: "no-owner".to_owned(),
        policy,
        settings: "{}".to_owned(),
        mode: Mode::Enforce,
        failure_mode: None,
        ratcheting: Ratcheting::Enabled,
        scope: Scope::default(),
        // It is measured how long it takes, not whether that is too long.
        limits: Limits { time: Duration::from_secs(5), ..Limits::default() },
    };
    let set = PolicySet::new(vec![binding], Vec::new());
    let mut paths = scan::Paths::new();
    let mount = paths.mount("", set.paths());
    let found = scan::scan(OBJECT.as_bytes(), &paths)?;
    let request = Request {
        operation: Operation::Create,
        group: "example.com",
        version: "v1",
        kind: "Database",
        subresource: "",
        name: "example",
        namespace: "default",
        namespace_labels: None,
        user: "jane",
        groups: &[],
        dry_run: false,
        object: found.document(&mount),
        old_object: None,
    };
    let evaluate = || async {
        let deadline = Instant::now() + Duration::from_secs(10);
        set.evaluate(
            &request,
            &Context { lookup: Arc::new(NoLookup), deadline, is_background: false },
        )
        .await
    };
    let verdict = runtime.block_on(evaluate());
    if let Some(failure) = verdict.failures.first() {
        let why = format!("{language}: left out: {}", failure.reason);
        return Ok(vec![Row::new(why, f64::NAN, "")]);
    }
    assert_eq!((verdict.evaluations.len(), verdict.findings.len()), (1, 0), "{verdict:?}");
    let sample = Sample::of(runs, || {
        std::hint::black_box(runtime.block_on(evaluate()));
    });
    #[allow(clippy::cast_precision_loss, reason = "a number for people")]
    let kib = bytes.len() as f64 / 1_024.0;
    let row = |what: &str, number: f64, unit| Row::new(format!("{language}: {what}"), number, unit);
    Ok(vec![
        row("size of the module", kib, "KiB"),
        row("evaluate, fresh instance p50", sample.percentile(0.5), "µs"),
        row("evaluate, fresh instance p99", sample.percentile(0.99), "µs"),
    ])
}
