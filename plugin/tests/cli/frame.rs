//! Streams, exit codes, colours, and what is on PATH.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::program::{opensdn, output};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The one document on stdout.
#[track_caller]
fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stdout)))
}

#[test]
fn a_refusal_is_a_document_too_where_one_was_asked_for() {
    for arguments in [
        &["explain", "OSDN9999", "-o", "json"][..],
        &["explain", "--no-such-flag", "-ojson"],
        &["no-such-command", "--output=json"],
        &["explain", "--context", "x", "-o", "json"],
    ] {
        let output = output(arguments);
        let document = document(&output);
        assert_eq!(document["kind"], "Error", "{arguments:?}");
        assert_eq!(document["apiVersion"], "cli.opensdn.io/v1");
        assert!(document["message"].is_string() && document["hint"].is_string());
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).starts_with("error: "));
    }
}

#[test]
fn the_exit_code_does_not_depend_on_the_format() {
    for (arguments, code) in [
        (&["version", "--client"][..], 0),
        (&["explain", "OSDN9999"], 2),
        (&["version"], 3),
        (&["version", "--server", "https://127.0.0.1:1"], 3),
    ] {
        for format in ["human", "json", "yaml"] {
            let output = output(&[arguments, &["-o", format]].concat());
            assert_eq!(output.status.code(), Some(code), "{arguments:?} -o {format}");
        }
    }
}

#[test]
fn without_a_cluster_version_still_says_its_own_and_why() {
    let output = output(&["version", "-o", "json", "--server", "https://127.0.0.1:1"]);
    let document = document(&output);
    assert_eq!(document["client"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["problem"]["code"], "unreachable-cluster");
    let message = document["problem"]["message"].as_str().unwrap();
    assert!(message.contains("https://127.0.0.1:1"), "{message}");
}

#[test]
fn the_kubeconfigs_of_the_variable_are_read_and_missing_ones_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let cluster = "{name: c, cluster: {server: 'https://127.0.0.1:1'}}";
    let context = "{name: x, context: {cluster: c}}";
    let config = format!("{{clusters: [{cluster}], contexts: [{context}], current-context: x}}");
    std::fs::write(&file, config).unwrap();
    let list = std::env::join_paths([folder.path().join("missing"), file]).unwrap();
    let output = opensdn(&["version", "-o", "json"]).env("KUBECONFIG", list).output().unwrap();
    assert_eq!(document(&output)["problem"]["code"], "unreachable-cluster");
}

#[test]
fn no_escape_goes_into_a_pipe() {
    for arguments in [&["explain", "OSDN4001"][..], &["--help"], &["explain", "OSDN9999"]] {
        let output = output(arguments);
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b));
    }
}

#[test]
fn colours_can_be_forced_and_forbidden() {
    let colored = |set: &[(&str, &str)], more: &[&str]| {
        let arguments = [&["explain", "OSDN4001"], more].concat();
        let output = opensdn(&arguments).envs(set.iter().copied()).output().unwrap();
        output.stdout.contains(&0x1b)
    };
    assert!(colored(&[("CLICOLOR_FORCE", "1")], &[]));
    assert!(!colored(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], &[]));
    assert!(colored(&[("NO_COLOR", "1")], &["--color", "always"]));
    assert!(!colored(&[("CLICOLOR_FORCE", "1")], &["--color=never"]));
    assert!(!colored(&[("TERM", "dumb")], &[]));
}

#[test]
fn a_reader_that_has_gone_ends_nothing_in_noise() {
    for arguments in [&["explain"][..], &["explain", "-o", "json"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = opensdn(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn a_full_disk_is_reported() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = opensdn(&["explain"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the answer cannot be written"));
}

#[test]
fn quiet_leaves_only_why_something_failed() {
    let output = output(&["explain", "OSDN9999", "-q"]);
    assert!(text(&output.stderr).starts_with("error: there is no code OSDN9999"));
    let output = opensdn(&["version", "-q"]).output().unwrap();
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn verbose_says_what_is_asked_and_very_verbose_each_request_without_the_token() {
    let arguments = ["version", "--server", "https://127.0.0.1:1", "--token", "very-secret"];
    let said = |flag: &str| text(&output(&[&arguments[..], &[flag]].concat()).stderr);
    assert!(said("-v").contains("asking https://127.0.0.1:1\n"));
    let requests = said("-vv");
    assert!(requests.contains("http.url=https://127.0.0.1:1/version"), "{requests}");
    assert!(!requests.contains("very-secret"), "{requests}");
}

#[test]
fn every_answer_fits_its_published_schema() {
    for (kind, arguments) in [
        ("Error", &["explain", "OSDN9999", "-o", "json"][..]),
        ("Explanations", &["explain", "-o", "json"]),
        ("Explanations", &["explain", "manager.spec", "OSDN4001", "--recursive", "-o", "json"]),
        ("ImageList", &["images", "list", "-o", "json"]),
        (
            "ImageTransfer",
            &["images", "mirror", "--image=a/b", "--to=r.example", "--dry-run", "-o", "json"],
        ),
        ("Installation", &["install", "--dry-run=client", "-o", "json"]),
        ("Versions", &["version", "-o", "json"]),
    ] {
        let schema = document(&output(&["explain", "--schema", kind]));
        let answer = document(&output(arguments));
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&answer).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{kind}: {errors:?}");
    }
}

/// A file of values says as little as it likes, and what is printed of them is such a file.
#[test]
fn the_schema_of_values_takes_what_install_takes() {
    let schema = document(&output(&["explain", "--schema", "Values"]));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let printed = text(&output(&["render", "--effective-values"]).stdout);
    for file in [printed.as_str(), "webhook: {replicas: 5, logLevel: debug}", "profile: ha"] {
        let values: Value = serde_saphyr::from_str(file).unwrap();
        assert!(validator.is_valid(&values), "{file}");
    }
    for wrong in ["webhook: {replica: 5}", "profile: huge", "kind: Other"] {
        let values: Value = serde_saphyr::from_str(wrong).unwrap();
        assert!(!validator.is_valid(&values), "{wrong}");
    }
}

/// A folder with an executable file of that name.
fn with_program(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let mut file = File::create(&path).unwrap();
    writeln!(file, "#!/bin/sh").unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn a_program_that_shadows_a_command_is_listed() {
    let folder = with_program("kubectl-opensdn-version");
    let output = opensdn(&["version", "--client", "-o", "json"])
        .env("PATH", folder.path())
        .output()
        .unwrap();
    let document = document(&output);
    assert_eq!(document["shadows"][0]["command"], "opensdn version");
    assert!(text(&output.stderr).contains("warning: `kubectl opensdn version` runs"));
}

#[test]
fn an_unknown_word_that_is_a_program_of_its_own_is_mentioned() {
    let folder = with_program("kubectl-opensdn-notes");
    let output = opensdn(&["notes"]).env("PATH", folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("kubectl-opensdn-notes is a program of its own"));
}

#[test]
fn the_shim_is_installed_beside_the_program_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_kubectl-opensdn");
    std::os::unix::fs::symlink(program, folder.path().join("kubectl-opensdn")).unwrap();
    let path = std::env::join_paths([folder.path().as_os_str(), "/bin".as_ref()]).unwrap();
    for said in ["wrote ", "is there already"] {
        let output =
            opensdn(&["completion", "kubectl", "--install"]).env("PATH", &path).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
    let shim = folder.path().join("kubectl_complete-opensdn");
    let output = Command::new(shim).args(["vers"]).env("PATH", &path).output().unwrap();
    assert!(text(&output.stdout).starts_with("version\t"), "{}", text(&output.stderr));
}

#[test]
fn a_file_that_is_not_ours_is_not_replaced_without_a_yes() {
    let folder = with_program("kubectl_complete-opensdn");
    let install = ["completion", "kubectl", "--install", folder.path().to_str().unwrap()];
    let output = output(&install);
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("do: add --yes"));
    assert_eq!(self::output(&[&install[..], &["--yes"]].concat()).status.code(), Some(0));
}

#[test]
fn a_manual_page_is_written_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man");
    let output = output(&["man", "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(out.join("kubectl-opensdn-explain.1")).unwrap();
    assert!(page.contains("kubectl opensdn explain"), "{page}");
    assert!(out.join("kubectl-opensdn.1").is_file());
}

#[test]
fn variables_stand_for_global_flags_and_a_flag_wins() {
    let run = |arguments: &[&str], name: &str, value: &str| {
        let output = opensdn(arguments).env(name, value).output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let explain = ["explain", "OSDN4001"];
    let escape = "\u{1b}[";
    let (_, colored, _) = run(&explain, "KUBECTL_OPENSDN_COLOR", "always");
    assert!(colored.contains(escape), "{colored}");
    let never = [&explain[..], &["--color", "never"]].concat();
    assert!(!run(&never, "KUBECTL_OPENSDN_COLOR", "always").1.contains(escape));
    let (code, _, said) = run(&["explain", "x"], "KUBECTL_OPENSDN_COLOR", "always");
    assert!(code == Some(2) && said.contains(escape), "{said}");

    let shim = ["completion", "kubectl"];
    let advice = "as an executable file";
    assert!(run(&shim, "KUBECTL_OPENSDN_NO_HINTS", "0").2.contains(advice));
    assert!(!run(&shim, "KUBECTL_OPENSDN_NO_HINTS", "1").2.contains(advice));
    let (code, _, said) = run(&explain, "KUBECTL_OPENSDN_PROGRESS", "loud");
    assert!(code == Some(2) && said.contains("loud"), "{said}");
}

#[test]
fn flags_of_kubectl_that_have_no_effect_are_refused_with_a_sentence() {
    for (arguments, sentence) in [
        (&["validate", "-A", "."][..], "this command lists no objects of a namespace"),
        (&["version", "--all-namespaces"], "this command lists no objects of a namespace"),
        (
            &["version", "--timeout", "30s"],
            "to bound each request to the cluster: --request-timeout",
        ),
        (&["explain", "--context", "x"], "explain asks no cluster"),
        (&["validate", "--token", "x", "."], "validate asks no cluster without --live"),
    ] {
        let output = output(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(sentence), "{arguments:?}: {said}");
    }
}

#[test]
fn every_shell_gets_a_script_with_our_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish", "nushell"] {
        let output = output(&["completion", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = text(&output.stdout);
        for word in ["kubectl-opensdn", "validate", "fail-on"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let nushell = text(&output(&["completion", "nushell"]).stdout);
    assert!(nushell.contains("export extern \"kubectl-opensdn validate\" ["), "{nushell}");
}
