//! The configuration where a transcript does not do: what wins, which context counts, and files as
//! they are found.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-opensdn");
const WARNED: &str = "\
apiVersion: opensdn.io/v1alpha1
kind: LinkLocalService
metadata: {name: a, namespace: tf}
spec: {ip: 10.0.0.10, port: 80, fabric: {addresses: [10.0.0.10], port: 80}}
";

/// A home with a configuration, and a kubeconfig whose current context is `near`.
struct Home(tempfile::TempDir);

impl Home {
    fn with(config: &str) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(home.config().parent().unwrap()).unwrap();
        fs::write(home.config(), config).unwrap();
        fs::create_dir(home.0.path().join(".kube")).unwrap();
        let contexts = "[{name: near, context: {cluster: c}}, {name: far, context: {cluster: c}}]";
        let clusters = "[{name: c, cluster: {server: 'https://127.0.0.1:1'}}]";
        let kubeconfig =
            format!("{{current-context: near, contexts: {contexts}, clusters: {clusters}}}");
        fs::write(home.0.path().join(".kube/config"), kubeconfig).unwrap();
        home
    }

    fn config(&self) -> PathBuf {
        self.0.path().join(".config/kubectl-opensdn/config.yaml")
    }

    fn run(&self, line: &str, variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(PROGRAM);
        command.args(line.split_whitespace()).env_clear().env("HOME", self.0.path());
        command.env("PATH", "/usr/bin:/bin").envs(variables.iter().copied());
        command.env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
        command.current_dir(self.0.path()).output().unwrap()
    }

    /// The document on standard output.
    fn document(&self, line: &str, variables: &[(&str, &str)]) -> Value {
        let output = self.run(line, variables);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)))
    }

    fn in_force(&self, key: &str, line: &str, variables: &[(&str, &str)]) -> Value {
        let view = self.document(&format!("config view -o json {line}"), variables);
        let values = view["values"].as_array().unwrap();
        values.iter().find(|one| one["key"] == key).unwrap().clone()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn a_flag_wins_over_its_variable_and_that_over_the_file() {
    let home = Home::with("defaults: {color: always}");
    let escape = |line: &str, variables: &[(&str, &str)]| {
        home.run(&format!("explain OSDN4001 {line}"), variables).stdout.contains(&0x1b)
    };
    let variable = [("KUBECTL_OPENSDN_COLOR", "never")];
    assert!(escape("", &[]));
    assert!(!escape("", &variable));
    assert!(escape("--color always", &variable));
    let origin = |line: &str, variables: &[(&str, &str)]| {
        home.in_force("color", line, variables)["origin"]["from"].clone()
    };
    assert_eq!(origin("", &[]), "file");
    assert_eq!(origin("", &variable), "variable");
    assert_eq!(origin("--color auto", &variable), "flag");
}

#[test]
fn a_default_of_one_command_holds_for_it() {
    let home = Home::with("defaults: {validate.output: json, validate.fail-on: info}");
    fs::write(home.0.path().join("a.yaml"), WARNED).unwrap();
    let report = home.document("validate a.yaml", &[]);
    assert_eq!(report["kind"], "ValidationReport");
    assert!(home.run("version --client", &[]).stdout.starts_with(b"client"));
    let variable = [("KUBECTL_OPENSDN_VALIDATE_OUTPUT", "yaml")];
    assert!(home.run("validate a.yaml", &variable).stdout.starts_with(b"apiVersion:"));
    assert!(!home.run("validate a.yaml -o human", &variable).stdout.starts_with(b"apiVersion:"));
    assert_eq!(home.run("validate a.yaml", &[]).status.code(), Some(1), "{report}");
    let found = report["findings"].as_array().unwrap();
    assert!(found.iter().all(|one| one["severity"] != "error"), "{report}");
    assert_eq!(home.run("validate a.yaml --fail-on error", &[]).status.code(), Some(0));
}

#[test]
fn what_is_for_a_context_holds_where_its_cluster_is_asked() {
    let home = Home::with("contexts: {far: {color: always}}");
    let escape = |line: &str| {
        let output = home.run(line, &[]);
        said(&output).contains('\u{1b}')
    };
    assert!(escape("version --context far"));
    assert!(!escape("version"), "the current context is near");
    assert!(!escape("version --client"));
    assert!(!escape("explain OSDN9999"));
    let kubeconfig = home.0.path().join(".kube/config");
    let text = fs::read_to_string(&kubeconfig)
        .unwrap()
        .replace("current-context: near", "current-context: far");
    fs::write(&kubeconfig, text).unwrap();
    assert!(escape("version"));
    // A command that asks no server reads no kubeconfig.
    fs::write(&kubeconfig, "{ this is no kubeconfig").unwrap();
    assert_eq!(home.run("version --client", &[]).status.code(), Some(0));
    assert_eq!(home.run("explain OSDN4001", &[]).status.code(), Some(0));
}

#[test]
fn a_timeout_holds_where_a_cluster_is_asked_and_is_no_refusal_elsewhere() {
    let home = Home::with("defaults: {request-timeout: 1s}");
    for variables in [&[][..], &[("KUBECTL_OPENSDN_REQUEST_TIMEOUT", "2s")]] {
        for line in ["explain OSDN4001", "version --client", "config path"] {
            let output = home.run(line, variables);
            assert_eq!(output.status.code(), Some(0), "{line}: {}", said(&output));
        }
        assert_eq!(home.run("version", variables).status.code(), Some(3));
    }
    let soon = home.run("version", &[("KUBECTL_OPENSDN_REQUEST_TIMEOUT", "soon")]);
    assert_eq!(soon.status.code(), Some(2), "{}", said(&soon));
}

#[test]
fn the_file_of_xdg_is_found_and_made() {
    let home = Home::with("");
    let folder = home.0.path().join("xdg");
    let variables = [("XDG_CONFIG_HOME", folder.to_str().unwrap())];
    let output = home.run("config set color never", &variables);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let file = folder.join("kubectl-opensdn/config.yaml");
    assert_eq!(fs::read_to_string(&file).unwrap(), "defaults:\n  color: never\n");
    let path = home.run("config path", &variables);
    assert_eq!(path.stdout, format!("{}\n", file.display()).as_bytes());
    assert_eq!(home.in_force("color", "", &variables)["value"], "never");
    // A relative one is ignored, as the specification of XDG wants it.
    let relative = home.run("config path", &[("XDG_CONFIG_HOME", "xdg")]);
    assert_eq!(relative.stdout, format!("{}\n", home.config().display()).as_bytes());
}

#[test]
fn a_path_is_written_as_a_whole() {
    let home = Home::with("");
    assert_eq!(home.run("config set cache-dir kept", &[]).status.code(), Some(0));
    let folder = fs::canonicalize(home.0.path()).unwrap().join("kept");
    let value = home.in_force("cache-dir", "", &[])["value"].clone();
    assert_eq!(fs::canonicalize(home.0.path()).unwrap().join("kept"), folder);
    assert!(value.as_str().unwrap().ends_with("/kept") && value.as_str().unwrap().starts_with('/'));
}

#[test]
fn a_variable_that_wins_over_what_was_set_is_reported() {
    let home = Home::with("");
    let output = home.run("config set color never", &[("KUBECTL_OPENSDN_COLOR", "auto")]);
    assert!(said(&output).contains("KUBECTL_OPENSDN_COLOR is set, and wins"), "{}", said(&output));
}

#[test]
fn a_file_that_cannot_be_written_stays_and_is_reported() {
    let home = Home::with("defaults: {}\n");
    let folder = home.config().parent().unwrap().to_owned();
    let file = folder.join("taken");
    fs::write(&file, "").unwrap();
    let under = file.join("config.yaml");
    let line = format!("config set color never --config {}", under.display());
    let output = home.run(&line, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("cannot be written"), "{}", said(&output));
    fs::set_permissions(home.config(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(home.run("config set color never", &[]).status.code(), Some(0));
    let mode = fs::metadata(home.config()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn documents_of_the_configuration_fit_their_published_schemas() {
    let home = Home::with("defaults: {color: never}\ncontexts: {far: {color: auto}}");
    for (kind, line) in [
        ("ConfigView", "config view -o json"),
        ("ConfigPath", "config path -o json"),
        ("ConfigChange", "config set progress none --context far -o json"),
    ] {
        let schema = home.document(&format!("explain --schema {kind}"), &[]);
        let answer = home.document(line, &[]);
        assert_eq!(answer["kind"], kind);
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&answer).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{answer:#}");
    }
}

#[test]
fn keys_are_completed() {
    let home = Home::with("");
    let output = home.run("__complete config set validate.f", &[]);
    assert!(output.stdout.starts_with(b"validate.fail-on"), "{}", said(&output));
}
