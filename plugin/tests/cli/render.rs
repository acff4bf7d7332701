//! The objects of an installation, in both forms.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

use crate::program::output;

fn written(arguments: &[&str]) -> String {
    let output = output(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn json_is_one_list_of_the_objects_that_yaml_has_as_documents() {
    let yaml = written(&["render"]);
    let json: Value = serde_json::from_str(&written(&["render", "-o", "json"])).unwrap();
    assert_eq!(json["kind"], "List");
    let items = json["items"].as_array().unwrap();
    assert_eq!(items.len(), yaml.matches("---\n").count());
    for item in items {
        let name = item["metadata"]["name"].as_str().unwrap();
        assert!(yaml.contains(name) && item["kind"].is_string(), "{item}");
    }
    let values: Value =
        serde_json::from_str(&written(&["render", "--effective-values", "-o", "json"])).unwrap();
    assert_eq!(values["kind"], "Values");
}

#[test]
fn a_form_of_standard_output_is_not_for_files() {
    let output = output(&["render", "--split", "manifests", "-o", "json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn files_are_written_within_their_folder_and_never_into_what_another_has_put_there() {
    let folder = tempfile::tempdir().unwrap();
    let (split, elsewhere) = (folder.path().join("split"), folder.path().join("elsewhere"));
    std::fs::create_dir_all(&split).unwrap();
    std::fs::create_dir_all(&elsewhere).unwrap();
    symlink(&elsewhere, split.join("manifests")).unwrap();
    let installer =
        ["render", "--for", "openshift-installer", "--set", "platform=openshift", "--split"];
    let said = output(&[&installer[..], &[split.to_str().unwrap()]].concat());
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    assert!(String::from_utf8_lossy(&said.stderr).contains("is a link to elsewhere"), "{said:?}");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);

    let plain = folder.path().join("plain");
    let plain_text = plain.to_str().unwrap();
    written(&["render", "--split", plain_text]);
    let first = std::fs::read_dir(&plain).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&first).unwrap();
    // Who opens it to write waits for a reader.
    assert!(Command::new("mkfifo").arg(&first).status().unwrap().success());
    written(&["render", "--split", plain_text]);
    assert!(first.symlink_metadata().unwrap().is_file());
}
