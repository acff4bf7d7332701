//! The records of the webhook's image, without an image: what the bill names and what it does not, and
//! whose digests the provenance has. `tests/tests/images.rs` has the same of an image as it is built.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const TARGET: &str = "x86_64-unknown-linux-musl";

fn image_records(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_image-records"));
    command.args(arguments).current_dir(folder).output().unwrap()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The bill of the webhook, and the list for its program.
fn bill(folder: &Path) -> (Value, Vec<u8>) {
    let arguments = ["bill", "--workspace", WORKSPACE, "--package", "opensdn-webhook"];
    let more = ["--target", TARGET, "--out", "bill.json", "--section", "section"];
    let output = image_records(&[&arguments[..], &more].concat(), folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (json(&folder.join("bill.json")), fs::read(folder.join("section")).unwrap())
}

/// Name and targets of each component.
fn components(bill: &Value) -> BTreeMap<String, Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let targets = |one: &Value| {
        let properties = one["properties"].as_array().into_iter().flatten();
        properties.map(|property| text(&property["value"])).collect()
    };
    let all = bill["components"].as_array().unwrap();
    all.iter().map(|one| (text(&one["name"]), targets(one))).collect()
}

#[test]
fn the_bill_names_what_is_linked_into_the_program_or_a_policy_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let (bill, _) = bill(folder.path());
    assert_eq!(bill["metadata"]["component"]["name"], "opensdn-webhook");
    let components = components(&bill);
    let into = |name: &str, target: &str| {
        components.get(name).is_some_and(|targets| targets.iter().any(|one| one == target))
    };
    for name in ["wasmtime", "kube-client", "rustls", "ring", "opensdn-runtime", "opensdn-policies"]
    {
        assert!(into(name, TARGET), "{name} is linked into the program");
    }
    for name in ["talc", "opensdn-policy-sdk", "plaintext", "duplicate-link-local"] {
        assert!(into(name, "wasm32-unknown-unknown"), "{name} is linked into a policy");
    }
    assert!(into("serde_json", TARGET) && into("serde_json", "wasm32-unknown-unknown"));
    assert!(!into("talc", TARGET) && !into("wasmtime", "wasm32-unknown-unknown"));
    assert!(components.contains_key("rust-std"));
    let not_linked = [
        // They test, build, or derive.
        "opensdn-testing",
        "trycmd",
        "opensdn-stand-in",
        "cc",
        "serde_derive",
        "syn",
        // Other programs of the workspace have them, or features of the same packages that do.
        "kubectl-opensdn",
        "wat",
        "wasmtime-internal-jit-debug",
        "addr2line",
        // Other systems.
        "windows-sys",
        "security-framework",
    ];
    for name in not_linked {
        assert!(!components.contains_key(name), "{name} is not linked");
    }
}

#[test]
fn each_package_of_a_registry_has_its_checksum_and_licence_and_all_references_are_there() {
    let folder = TempDir::new().unwrap();
    let (bill, _) = bill(folder.path());
    let lock = fs::read_to_string(Path::new(WORKSPACE).join("Cargo.lock")).unwrap();
    let all = bill["components"].as_array().unwrap();
    let of_registry = all.iter().filter(|one| one.get("purl").is_some());
    for one in of_registry.clone() {
        let checksum = one["hashes"][0]["content"].as_str().unwrap_or_default();
        let line = format!("checksum = \"{checksum}\"");
        assert!(checksum.len() == 64 && lock.contains(&line), "{one}");
        assert!(one["licenses"][0]["expression"].as_str().is_some_and(|text| !text.is_empty()));
    }
    assert!(of_registry.count() > 200);
    let references: Vec<&str> = all.iter().filter_map(|one| one["bom-ref"].as_str()).collect();
    for dependency in bill["dependencies"].as_array().unwrap() {
        for used in dependency["dependsOn"].as_array().unwrap() {
            assert!(references.contains(&used.as_str().unwrap()), "{used} is named nowhere");
        }
    }
}

#[test]
fn the_list_for_the_program_names_the_same_packages() {
    let folder = TempDir::new().unwrap();
    let (bill, section) = bill(folder.path());
    // One or more blocks of what is stored as it is.
    let mut text = Vec::new();
    let mut rest = section.get(2..).unwrap();
    while let [_, low, high, _, _, content @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (block, behind) = content.split_at(length);
        text.extend_from_slice(block);
        rest = behind;
        if rest.len() <= 4 {
            break;
        }
    }
    let list: Value = serde_json::from_slice(&text).unwrap();
    let packages = list["packages"].as_array().unwrap();
    let names = packages.iter().map(|one| one["name"].as_str().unwrap().to_owned());
    let mut names: Vec<String> = names.collect();
    let mut wanted: Vec<String> = bill["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .filter(|name| name != "rust-std")
        .collect();
    wanted.push("opensdn-webhook".to_owned());
    names.sort();
    wanted.sort();
    assert_eq!(names, wanted);
    let roots = packages.iter().filter(|one| one["root"] == true);
    assert_eq!(roots.map(|one| &one["name"]).collect::<Vec<_>>(), ["opensdn-webhook"]);
}

#[test]
fn the_same_source_gives_the_same_records() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    assert_eq!(bill(one.path()), bill(other.path()));
    let text = fs::read_to_string(one.path().join("bill.json")).unwrap();
    let here = Path::new(WORKSPACE).canonicalize().unwrap();
    assert!(!text.contains(&here.display().to_string()), "it says where it was made");
}

/// Files as a build leaves them, and their names.
fn build(folder: &Path, image: &str) {
    let index = format!(
        r#"{{"schemaVersion":2,"manifests":[{{"digest":"sha256:{image}","annotations":
            {{"org.opencontainers.image.ref.name":"docker.io/library/x:1"}}}}]}}"#
    );
    let files = [("x.tar", "archive"), ("x", "program"), ("bill", "bill"), ("lock", "lock")];
    for (name, content) in files.into_iter().chain([("index.json", index.as_str())]) {
        fs::write(folder.join(name), content).unwrap();
    }
}

/// What is said of them, built from this revision.
fn provenance(folder: &Path, revision: &str) -> Value {
    let files =
        "--package x --program x --archive x.tar --index index.json --bill bill --lock lock";
    let source = "--source https://example.com/x --tool rustc-1.95.0 --out out --target there";
    let arguments = format!("provenance {files} {source} --revision {revision}");
    let output = image_records(&arguments.split(' ').collect::<Vec<_>>(), folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    json(&folder.join("out"))
}

/// Name and digest of each.
fn named(list: &Value) -> Vec<(String, String)> {
    let text = |one: &Value, place| one.pointer(place).and_then(Value::as_str).unwrap().to_owned();
    let all = list.as_array().unwrap().iter();
    all.map(|one| (text(one, "/name"), text(one, "/digest/sha256"))).collect()
}

#[test]
fn the_digests_of_the_provenance_are_those_of_the_files() {
    let folder = TempDir::new().unwrap();
    let (image, commit) = ("a".repeat(64), "b".repeat(40));
    build(folder.path(), &image);
    let said = provenance(folder.path(), &commit);
    // As the system's own program says it.
    let sum = |name: &str| {
        let output = Command::new("sha256sum").arg(folder.path().join(name)).output().unwrap();
        String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap().to_owned()
    };
    assert_eq!(said["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(said["predicateType"], "https://slsa.dev/provenance/v1");
    let wanted = [("x.tar", sum("x.tar")), ("docker.io/library/x:1", image), ("x", sum("x"))];
    let wanted = wanted.map(|(name, digest)| (name.to_owned(), digest));
    assert_eq!(named(&said["subject"]), wanted);
    let run = &said["predicate"]["runDetails"];
    assert_eq!(named(&run["byproducts"]), [("bill".to_owned(), sum("bill"))]);
    let sources = &said["predicate"]["buildDefinition"]["resolvedDependencies"];
    assert_eq!(sources[0]["digest"]["gitCommit"], commit);
    assert_eq!(sources[0]["uri"], "git+https://example.com/x");
    assert_eq!(sources[1]["digest"]["sha256"], sum("lock"));
}

#[test]
fn a_source_that_differs_from_its_commit_is_reported() {
    let folder = TempDir::new().unwrap();
    build(folder.path(), &"a".repeat(64));
    let source = |revision: &str| {
        let said = provenance(folder.path(), revision);
        said["predicate"]["buildDefinition"]["resolvedDependencies"][0].clone()
    };
    let commit = "b".repeat(40);
    assert_eq!(source(&commit)["annotations"], Value::Null);
    let modified = source(&format!("{commit}-modified"));
    assert_eq!(modified["digest"]["gitCommit"], commit);
    assert_eq!(modified["annotations"]["modified"], true);
    assert_eq!(source("unknown")["digest"], Value::Null);
}
