//! `policy`: what a transcript cannot show, because a file changes or numbers differ.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const ZOOKEEPER: &str = "\
apiVersion: tf.tungsten.io/v1alpha1
kind: Zookeeper
metadata: {name: z, namespace: tf}
spec:
  commonConfiguration: {nodeSelector: {rack: a}}
  serviceConfiguration: {}
";

/// A folder with some files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// `kubectl opensdn policy …` in a folder, without anything of the developer's environment.
fn policy(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kubectl-opensdn"))
        .arg("policy")
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)))
}

/// Two cases with a wrong expectation of even-quorum, in the two ways of writing one.
fn wrong_cases() -> tempfile::TempDir {
    let node = |name| {
        format!(
            "  - {{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{rack: a}}}}}}\n"
        )
    };
    let object = ZOOKEEPER.replace('\n', "\n  ");
    let object = format!("# why\nobject:\n  {}\n", object.trim_end());
    let cluster = format!("# others\ncluster:\n{}{}", node("n1"), node("n2"));
    let flow = "expect: {findings: []}\n";
    let block =
        "expect:\n  findings:\n    - code: OSDN1205\n      severity: deny\n      pointer: /x\n";
    folder(&[
        ("cases/block.yaml", &format!("{object}{block}{cluster}")),
        ("cases/flow.yaml", &format!("{object}{flow}{cluster}")),
    ])
}

#[test]
fn update_takes_what_the_policy_says_and_keeps_the_rest_byte_for_byte() {
    let folder = wrong_cases();
    let files = ["cases/block.yaml", "cases/flow.yaml"].map(|file| folder.path().join(file));
    let before = files.each_ref().map(|file| fs::read_to_string(file).unwrap());
    let test = ["test", "even-quorum", "--cases", "cases", "--no-coverage"];
    assert_eq!(policy(folder.path(), &test).status.code(), Some(1));
    let updated = policy(folder.path(), &[&test[..], &["--update", "-o", "json"]].concat());
    assert_eq!(updated.status.code(), Some(0));
    assert_eq!(document(&updated)["summary"]["updated"], 2);
    assert_eq!(policy(folder.path(), &test).status.code(), Some(0));
    for (file, before) in files.iter().zip(before) {
        let after = fs::read_to_string(file).unwrap();
        let around = |text: &str| {
            let (first, rest) = text.split_once("expect:").unwrap();
            let (_, last) = rest.split_once("# others").unwrap();
            (first.to_owned(), last.to_owned())
        };
        assert_eq!(around(&after), around(&before));
        assert!(after.contains("severity: warn"), "{after}");
    }
}

#[test]
fn a_message_without_a_case_fails_unless_it_is_allowed_to() {
    let folder = wrong_cases();
    let test = ["test", "even-quorum", "--cases", "cases", "--update"];
    let output = policy(folder.path(), &test);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("no case gives OSDN1202"), "{}", text(&output.stdout));
    let filtered = [&test[..4], &["--filter", "flow"]].concat();
    assert_eq!(policy(folder.path(), &filtered).status.code(), Some(0));
}

#[test]
fn a_case_that_never_reaches_its_policy_fails() {
    let object = "object: {apiVersion: v1, kind: Pod, metadata: {name: p}}\n";
    let folder = folder(&[("cases/pod.yaml", &format!("{object}expect: {{findings: []}}\n"))]);
    let test = ["test", "even-quorum", "--cases", "cases", "--no-coverage", "-o", "json"];
    let output = policy(folder.path(), &test);
    assert_eq!(output.status.code(), Some(1));
    let problem = document(&output)["cases"][0]["problems"][0].clone();
    assert!(problem.as_str().unwrap().contains("never reaches the policy"), "{problem}");
}

#[test]
fn every_built_in_policy_passes_its_own_cases() {
    let folder = folder(&[]);
    for policy_ in opensdn_policies::ALL {
        let output = policy(folder.path(), &["test", policy_.name]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    }
}

#[test]
fn every_answer_fits_its_published_schema() {
    let folder = folder(&[("z.yaml", ZOOKEEPER), ("bad.wasm", "\0asm\u{1}\0\0\0")]);
    for (kind, arguments) in [
        ("PolicyTest", &["test", "even-quorum"][..]),
        ("PolicyRun", &["run", "even-quorum", "-f", "z.yaml"]),
        ("PolicyRun", &["run", "even-quorum", "-f", "z.yaml", "--objects", "z.yaml"]),
        ("PolicyBench", &["bench", "even-quorum", "--samples", "10", "--exit-zero"]),
        ("PolicyInspection", &["inspect", "even-quorum"]),
        ("PolicyInspection", &["inspect", "bad.wasm"]),
        ("PolicyExplanation", &["explain", "OSDN1205"]),
    ] {
        let schema = Command::new(env!("CARGO_BIN_EXE_kubectl-opensdn"))
            .args(["explain", "--schema", kind])
            .output()
            .unwrap();
        let answer = document(&policy(folder.path(), &[arguments, &["-o", "json"]].concat()));
        assert_eq!(answer["kind"], kind);
        let validator = jsonschema::validator_for(&document(&schema)).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&answer).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{kind}: {errors:?}");
    }
}

#[test]
fn the_exit_code_does_not_depend_on_the_format() {
    let folder = folder(&[("z.yaml", ZOOKEEPER), ("bad.wasm", "no")]);
    for (arguments, code) in [
        (&["inspect", "even-quorum"][..], 0),
        (&["inspect", "bad.wasm"], 1),
        (&["run", "even-quorum", "-f", "z.yaml"], 1),
        (&["run", "even-quorum", "-f", "z.yaml", "--objects", "z.yaml"], 0),
        (&["run", "bad.wasm", "-f", "z.yaml"], 2),
        (&["explain", "OSDN9999"], 2),
        (&["test"], 2),
    ] {
        for format in ["human", "json", "yaml"] {
            let output = policy(folder.path(), &[arguments, &["-o", format]].concat());
            assert_eq!(output.status.code(), Some(code), "{arguments:?} -o {format}");
            let escapes = output.stdout.iter().chain(&output.stderr).any(|byte| *byte == 0x1b);
            assert!(!escapes, "{arguments:?}");
        }
    }
}

#[test]
fn fuel_and_findings_are_the_same_at_every_run() {
    let folder = folder(&[("z.yaml", ZOOKEEPER)]);
    let run = ["run", "even-quorum", "-f", "z.yaml", "--objects", "z.yaml", "-o", "json"];
    let one = document(&policy(folder.path(), &run));
    let two = document(&policy(folder.path(), &run));
    assert!(one["costs"][0]["fuel"].as_u64().unwrap() > 1000, "{one}");
    assert_eq!(one["costs"][0]["fuel"], two["costs"][0]["fuel"]);
    assert_eq!(one["findings"], two["findings"]);
}

#[test]
fn a_benchmark_is_compared_with_an_earlier_one() {
    let folder = folder(&[("z.yaml", ZOOKEEPER)]);
    let bench = ["bench", "even-quorum", "-f", "z.yaml", "--objects", "z.yaml", "--samples", "30"];
    let mut before = document(&policy(folder.path(), &[&bench[..], &["-o", "json"]].concat()));
    let compare = [&bench[..], &["-o", "json", "--compare", "before.json"]].concat();
    let mut with_fuel = |part: f64| {
        let measured = &mut before["measurements"][0];
        let fuel = measured["fuel"].as_f64().unwrap();
        measured["fuel"] = json!((fuel * part).round() as u64);
        // Times mean nothing on a busy machine.
        measured["noisePercent"] = json!(1e9);
        fs::write(folder.path().join("before.json"), before.to_string()).unwrap();
        policy(folder.path(), &compare)
    };
    let same = with_fuel(1.0);
    assert_eq!(document(&same)["changes"][0]["fuel"], "same");
    assert_eq!(same.status.code(), Some(0));
    let worse = with_fuel(0.5);
    assert_eq!(document(&worse)["changes"][0]["fuel"], "worse");
    assert_eq!(worse.status.code(), Some(1));
}

#[test]
fn a_module_from_a_file_is_installed_by_a_config_map_with_its_digest() {
    let folder = folder(&[]);
    let module = opensdn_policies::find("even-quorum").unwrap().bytes;
    fs::write(folder.path().join("even.wasm"), module).unwrap();
    let manifest = ["manifest", "even.wasm", "--mode", "audit", "-o", "json"];
    let list = document(&policy(folder.path(), &manifest));
    let (map, admission) = (&list["items"][0], &list["items"][1]);
    let place = &admission["spec"]["module"]["configMap"];
    assert_eq!(place["name"], map["metadata"]["name"]);
    assert_eq!(place["namespace"], "opensdn-system");
    assert_eq!(map["immutable"], true);
    assert!(map["binaryData"]["even-quorum.wasm"].is_string());
    let digest = admission["spec"]["module"]["digest"].as_str().unwrap();
    assert!(digest.starts_with("sha256:"));
    let looked_up =
        json!([{"group": "", "kind": "Node"}, {"group": "apps", "kind": "StatefulSet"}]);
    assert_eq!(admission["spec"]["allowedLookups"], looked_up);
    // The same as YAML documents.
    let yaml = text(&policy(folder.path(), &manifest[..4]).stdout);
    let documents: Vec<Value> = serde_saphyr::from_multiple(&yaml).unwrap();
    assert_eq!(json!(documents), list["items"]);
}

/// A built-in policy's module with a section of no meaning behind it, so that it has this size.
fn module_of(size: usize) -> Vec<u8> {
    let mut bytes =
        opensdn_policies::ALL.iter().find(|one| one.name == "even-quorum").unwrap().bytes.to_vec();
    // Section 0: its length in five bytes of LEB128, a name of one letter, the rest.
    let length = size - bytes.len() - 6;
    let digits = (0..5).map(|at| {
        let digit = u8::try_from((length >> (7 * at)) & 0x7f).unwrap();
        if at < 4 { digit | 0x80 } else { digit }
    });
    bytes.push(0);
    bytes.extend(digits);
    bytes.extend([1, b'x']);
    bytes.resize(size, 0);
    bytes
}

#[test]
fn a_module_that_no_config_map_takes_gives_no_config_map_but_says_what_to_do() {
    const MOST: usize = 1 << 20;
    let folder = folder(&[]);
    let write = |size| fs::write(folder.path().join("own.wasm"), module_of(size)).unwrap();
    let manifest = ["manifest", "own.wasm"];

    write(MOST);
    let refused = policy(folder.path(), &manifest);
    assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(2), ""));
    let said = text(&refused.stderr);
    assert!(
        said.contains("--policy-folder") && said.contains("--folder even-quorum.wasm"),
        "{said}"
    );

    // What the hint says to do gives a manifest without the bytes.
    let placed = policy(folder.path(), &[&manifest[..], &["--folder", "own.wasm"]].concat());
    assert_eq!(placed.status.code(), Some(0), "{}", text(&placed.stderr));
    let object: Value = serde_saphyr::from_str(&text(&placed.stdout)).unwrap();
    assert_eq!(object["spec"]["module"]["folder"]["path"], "own.wasm");
    assert!(object["spec"]["module"]["digest"].as_str().unwrap().starts_with("sha256:"));
    let said = text(&placed.stderr);
    assert!(said.contains("copy the module to own.wasm in the folder"), "{said}");

    // The largest that is still put into one: the API server counts decoded bytes.
    write(MOST - 4096);
    let largest = policy(folder.path(), &[&manifest[..], &["-o", "json"]].concat());
    assert_eq!(largest.status.code(), Some(0), "{}", text(&largest.stderr));
    let map = document(&largest)["items"][0].clone();
    let encoded = map["binaryData"]["even-quorum.wasm"].as_str().unwrap();
    assert!(encoded.len() / 4 * 3 <= MOST, "{}", encoded.len());
    assert!(text(&largest.stderr).contains("--server-side"), "{}", text(&largest.stderr));
}
