//! The author's way in Rust: `policy new`, `build`, `test`, outside of this repository. The other
//! languages need tools of their own and are in `make test-languages`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Where the projects are. It is fixed, so that the next run finds the dependencies compiled.
fn scratch() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("author")
}

/// `kubectl opensdn policy …` with Rust's tools within reach.
fn policy(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-opensdn"));
    command.arg("policy").args(arguments).current_dir(folder).env_clear();
    for name in ["PATH", "HOME", "CARGO", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command
        .env("CARGO_TARGET_DIR", scratch().join("target"))
        .env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = policy(folder, arguments);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// The document that the command answers, and its exit code.
#[track_caller]
fn document(folder: &Path, arguments: &[&str]) -> (Value, Option<i32>) {
    let output = policy(folder, &[arguments, &["-o", "json"]].concat());
    let document = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    (document, output.status.code())
}

#[test]
fn a_new_policy_in_rust_builds_and_passes_its_cases() {
    // What it compiles takes minutes, and others beside it have deadlines.
    rustix::process::nice(10).unwrap();
    let scratch = scratch();
    let project = scratch.join("no-owner");
    if project.exists() {
        fs::remove_dir_all(&project).unwrap();
    }
    fs::create_dir_all(&scratch).unwrap();

    let kinds = ["new", "no-owner", "--kinds", "Vrouter,example.com/v1/Database"];
    let (made, code) = document(&scratch, &kinds);
    assert_eq!((made["kind"].as_str(), code), (Some("PolicyProject"), Some(0)), "{made}");
    let (again, code) = document(&scratch, &kinds);
    assert_eq!((again["code"].as_str(), code), (Some("exists"), Some(5)), "{again}");

    let (built, code) = document(&project, &["build"]);
    assert_eq!((built["kind"].as_str(), code), (Some("PolicyBuild"), Some(0)), "{built}");
    assert_eq!((&built["name"], &built["reproducible"]), (&"no-owner".into(), &true.into()));
    let bytes = fs::read(project.join("build/no-owner.wasm")).unwrap();
    assert_eq!(built["size"], bytes.len());
    assert_eq!(built["digest"], opensdn_policy_host::Digest::of(&bytes).to_string());
    assert!(succeeds(&project, &["build"]).contains(built["digest"].as_str().unwrap()));

    let report = succeeds(&project, &["test"]);
    assert!(report.contains("6 passed; coverage: 1 of 1 message reached"), "{report}");

    let source = project.join("src/lib.rs");
    let whole = fs::read_to_string(&source).unwrap();
    assert!(whole.lines().count() < 90, "one rule about one kind fits on a screen");
    fs::write(&source, whole.replace("Ok(())", "Ok(5)")).unwrap();
    let (refused, code) = document(&project, &["build"]);
    assert_eq!((refused["code"].as_str(), code), (Some("does-not-compile"), Some(1)), "{refused}");
    assert!(project.join("build/no-owner.wasm").exists(), "what was built before stays");
    fs::write(&source, whole.replace("name: \"no-owner\"", "name: \"other\"")).unwrap();
    let (refused, code) = document(&project, &["build"]);
    assert_eq!((refused["code"].as_str(), code), (Some("other-name"), Some(1)), "{refused}");
}

/// What the runners of GitHub have, or what a step before installs.
const PROGRAMS: [&str; 4] = ["curl", "tar", "apt-get", "rustup"];

#[track_caller]
fn check_workflow(project: &Path, language: &str) {
    let file = project.join(".github/workflows/policy.yaml");
    let workflow: Value = serde_saphyr::from_str(&fs::read_to_string(&file).unwrap())
        .unwrap_or_else(|error| panic!("{language}: {error}"));
    assert!(workflow["on"].is_array() && workflow["permissions"]["contents"] == "read");
    let steps = workflow.pointer("/jobs/policy/steps").and_then(Value::as_array).unwrap();
    let mut ours = Vec::new();
    for step in steps {
        let of = |key: &str| step.get(key).and_then(Value::as_str);
        let Some(run) = of("run") else {
            let action = of("uses").unwrap_or_else(|| panic!("{language}: neither: {step}"));
            let (name, version) = action.split_once('@').unwrap();
            assert!(name.starts_with("actions/") && version.starts_with('v'), "{action}");
            continue;
        };
        for command in run.split(['|', '&']).map(str::trim).filter(|one| !one.is_empty()) {
            let mut words = command.split_whitespace().skip_while(|word| *word == "sudo");
            match words.next() {
                Some("kubectl") => ours.push(words.skip(1).collect::<Vec<_>>()),
                Some(program) => assert!(PROGRAMS.contains(&program), "{language}: {command}"),
                None => panic!("{language}: an empty command in {run}"),
            }
        }
    }
    assert_eq!(ours, [["policy", "build"], ["policy", "test"]], "{language}");
    for words in ours {
        // The command is there, with these words.
        succeeds(project, &[&words[1..], &["--help"]].concat());
    }
    let artifact = steps.last().and_then(|step| step.pointer("/with/path")).unwrap();
    assert_eq!(artifact, "build/no-owner.wasm", "{language}");
}

#[test]
fn the_workflow_of_each_language_is_yaml_whose_commands_there_are() {
    let folder = tempfile::tempdir().unwrap();
    for language in ["rust", "javascript", "python", "c"] {
        let project = folder.path().join(language);
        let place = project.display().to_string();
        let kinds = ["--kinds", "example.com/v1/Database"];
        let new = ["new", "no-owner", "--lang", language, "--dir", &place];
        succeeds(folder.path(), &[&new[..], &kinds[..]].concat());
        check_workflow(&project, language);
    }
}
