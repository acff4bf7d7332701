//! `validate` where a transcript does not do: other users, generated input, and the definitions by
//! which other programs call it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-opensdn");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");

fn program() -> Command {
    let mut command = Command::new(PROGRAM);
    command.env("XDG_CACHE_HOME", CACHE).env("HOME", "/nonexistent").env_remove("KUBECONFIG");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("it was killed: {}", text(&output.stderr)))
}

fn text_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

fn link_local(name: &str, ip: &str) -> String {
    format!(
        "apiVersion: opensdn.io/v1alpha1\nkind: LinkLocalService\nmetadata: {{name: {name}, \
         namespace: tf}}\nspec:\n  ip: {ip}\n  port: 9100\n  fabric: {{addresses: [10.0.0.5], port: \
         9100}}\n"
    )
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(root.path().join(name), text).unwrap();
    }
    root
}

#[test]
fn json_fits_its_published_schema_and_so_does_a_failure() {
    let root = folder(&[("a.yaml", &link_local("a", "127.0.0.1")), ("b.yaml", "a: [")]);
    let answers = [
        ("ValidationReport", program().args(["validate", "-o", "json"]).arg(root.path()).output()),
        ("Error", program().args(["validate", "-o", "json", "--as-of", "7", "."]).output()),
    ];
    for (kind, answer) in answers {
        let schema = program().args(["explain", "--schema", kind]).output().unwrap();
        let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
        let answer: Value = serde_json::from_slice(&answer.unwrap().stdout).unwrap();
        assert_eq!(answer["kind"], kind);
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&answer).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{answer:#}");
    }
}

#[test]
fn a_file_without_the_right_to_read_it_ends_with_2_and_hides_nothing() {
    let root = folder(&[("a.yaml", &link_local("a", "127.0.0.1")), ("b.yaml", "a: b")]);
    let secret = root.path().join("b.yaml");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = program();
    command.args(["validate", "-o", "github", "."]).current_dir(root.path());
    // Root may read everything, so another user tries.
    if fs::read(&secret).is_ok() {
        command.uid(65534).gid(65534);
        let Ok(probe) = Command::new(PROGRAM).arg("--version").uid(65534).output() else {
            // Other users cannot reach the program here.
            return;
        };
        assert!(probe.status.success());
    }
    let output = command.output().unwrap();
    assert_eq!(code(&output), 2, "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("title=unreadable-file") && said.contains("OSDN1604"), "{said}");
    assert!(said.contains("Permission denied"), "{said}");
}

#[test]
fn no_cut_of_a_manifest_makes_it_panic() {
    let whole = fs::read(Path::new(ROOT).join("deploy/samples/manager.yaml")).unwrap();
    let root = tempfile::tempdir().unwrap();
    let step = whole.len() / 40 + 1;
    for length in (0..whole.len()).step_by(step) {
        let name = root.path().join(format!("{length:06}.yaml"));
        fs::write(name, whole.get(..length).unwrap()).unwrap();
    }
    let output = program().args(["validate", "-o", "json"]).arg(root.path()).output().unwrap();
    assert!([0, 1].contains(&code(&output)), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("panicked"));
}

#[test]
fn a_kustomization_that_changes_something_needs_kubectl_and_says_so() {
    let text = "namePrefix: x-\nresources: [a.yaml]\n";
    let root = folder(&[("a.yaml", &link_local("a", "169.254.0.9")), ("kustomization.yaml", text)]);
    let output = program().arg("validate").arg(root.path()).env("PATH", "").output().unwrap();
    assert_eq!(code(&output), 2);
    let said = text_of(&output);
    assert!(said.contains("(namePrefix), which needs kubectl"), "{said}");
    // One that answers what kubectl would.
    let bin = folder(&[("kubectl", "#!/bin/sh\n[ \"$1\" = kustomize ] && cat \"$2/a.yaml\"\n")]);
    fs::set_permissions(bin.path().join("kubectl"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(root.path().join("a.yaml"), link_local("a", "127.0.0.1")).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    let mut command = program();
    command.args(["validate", "-o", "json"]).arg(root.path()).env("PATH", path);
    let report: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let place = &report["findings"][0]["place"];
    assert_eq!((&place["origin"], &place["line"]), (&"kustomize".into(), &5.into()));
    assert!(place["file"].as_str().unwrap().starts_with("kustomize output of "));
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let root = folder(&[("a.yaml", &link_local("a", "127.0.0.1"))]);
    let script = format!("{PROGRAM} validate . | true; exit ${{PIPESTATUS[0]}}");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(root.path()).env("XDG_CACHE_HOME", CACHE);
    let output = command.output().unwrap();
    assert_eq!(code(&output), 1, "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("panicked"));
}

/// The folder of the program, first on the PATH.
fn path() -> String {
    let folder = PathBuf::from(PROGRAM).parent().unwrap().display().to_string();
    format!("{folder}:{}", std::env::var("PATH").unwrap_or_default())
}

#[test]
fn the_hooks_of_pre_commit_run_as_they_are_defined() {
    let hooks = fs::read_to_string(Path::new(ROOT).join(".pre-commit-hooks.yaml")).unwrap();
    let hooks: Vec<Value> = serde_saphyr::from_str(&hooks).unwrap();
    assert_eq!(hooks.len(), 2);
    for hook in &hooks {
        for field in ["id", "name", "entry", "language"] {
            assert!(hook[field].is_string(), "{hook}");
        }
        let mut line = hook["entry"].as_str().unwrap().to_owned();
        for argument in hook["args"].as_array().into_iter().flatten() {
            line.push_str(&format!(" {}", argument.as_str().unwrap()));
        }
        if hook["pass_filenames"] != false {
            line.push_str(" a.yaml b.yaml");
        }
        for (second, expected) in [("169.254.0.10", 0), ("169.254.0.9", 1)] {
            let (a, b) = (link_local("a", "169.254.0.9"), link_local("b", second));
            let root = folder(&[("a.yaml", &a), ("b.yaml", &b)]);
            let mut command = Command::new("bash");
            command.args(["-c", &line]).current_dir(root.path());
            let output = command.env("PATH", path()).env("XDG_CACHE_HOME", CACHE).output().unwrap();
            assert_eq!(code(&output), expected, "{line}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn the_step_of_the_github_action_runs_as_it_is_defined() {
    let action = fs::read_to_string(Path::new(ROOT).join("action.yml")).unwrap();
    let action: Value = serde_saphyr::from_str(&action).unwrap();
    let step = &action["runs"]["steps"][0];
    assert_eq!(action["runs"]["using"], "composite");
    let root = folder(&[
        ("a b.yaml", &link_local("a", "127.0.0.1")),
        ("c.yaml", &link_local("c", "169.254.0.9")),
    ]);
    let run = |paths: &str, sarif: &str| {
        let mut command = Command::new("bash");
        // As GitHub runs it.
        command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c"]);
        command.arg(step["run"].as_str().unwrap()).current_dir(root.path());
        for (name, value) in step["env"].as_object().unwrap() {
            let input = value.as_str().unwrap().trim_start_matches("${{ inputs.");
            let default = &action["inputs"][input.trim_end_matches(" }}")]["default"];
            command.env(name, default.as_str().unwrap_or_default());
        }
        command.env("PATHS", paths).env("SARIF_FILE", sarif);
        command.env("PATH", path()).env("XDG_CACHE_HOME", CACHE).output().unwrap()
    };
    let found = run(".", "found.sarif");
    assert_eq!(code(&found), 1, "{}", text(&found.stderr));
    assert!(
        text(&found.stdout).starts_with("::error file=a b.yaml,line="),
        "{}",
        text(&found.stdout)
    );
    let sarif = fs::read(root.path().join("found.sarif")).unwrap();
    let sarif: Value = serde_json::from_slice(&sarif).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "OSDN1604");
    let clean = run("c.yaml\n*.json", "");
    assert_eq!(code(&clean), 2, "a glob that matches nothing is told");
    assert_eq!(code(&run("c.yaml", "")), 0);
    // A name is never a command.
    assert_eq!(code(&run("$(touch hacked)", "")), 2);
    assert!(!root.path().join("hacked").exists());
}

#[test]
fn a_fix_keeps_line_ends_and_leaves_links_and_what_kustomize_builds() {
    let misspelt = link_local("a", "169.254.0.9").replace("fabric", "fabrc");
    let windows = format!("\u{feff}{}", misspelt.replace('\n', "\r\n"));
    let root = folder(&[("a.yaml", &windows)]);
    let link = root.path().join("b.yaml");
    std::os::unix::fs::symlink("a.yaml", &link).unwrap();
    let output = program().args(["validate", "--fix"]).arg(&link).output().unwrap();
    assert_eq!(code(&output), 0, "{}", text_of(&output));
    let fixed = fs::read_to_string(root.path().join("a.yaml")).unwrap();
    assert_eq!(fixed, windows.replace("fabrc", "fabric"));
    assert!(link.is_symlink());

    let built = "commonLabels: {a: b}\nresources: [a.yaml]\n";
    let root = folder(&[("a.yaml", &misspelt), ("kustomization.yaml", built)]);
    let bin = folder(&[("kubectl", "#!/bin/sh\n[ \"$1\" = kustomize ] && cat \"$2/a.yaml\"\n")]);
    fs::set_permissions(bin.path().join("kubectl"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    let mut command = program();
    let output =
        command.args(["validate", "--fix"]).arg(root.path()).env("PATH", path).output().unwrap();
    assert_eq!(code(&output), 1, "{}", text_of(&output));
    assert_eq!(fs::read_to_string(root.path().join("a.yaml")).unwrap(), misspelt);
}
