//! The objects of an installation, in both forms.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

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
