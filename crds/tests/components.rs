//! The table of components and the schemas say the same.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opensdn_crds::component::{COMPONENTS, Component, Count, Setting};
use serde_json::{Value, json};

/// The schema of each kind's object.
fn schema(kind: &str) -> Value {
    static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(opensdn_crds::all);
    let mut definitions = DEFINITIONS.iter();
    let found = definitions.find(|definition| definition.spec.names.kind == kind);
    let version = &found.unwrap().spec.versions[0];
    json!(version.schema)["openAPIV3Schema"].clone()
}

fn settings(component: &Component) -> Value {
    schema(component.kind)["properties"]["spec"]["properties"]["serviceConfiguration"]["properties"]
        .clone()
}

#[test]
fn a_manager_has_every_component_under_its_key() {
    let manager = schema("Manager");
    let services = &manager["properties"]["spec"]["properties"]["services"]["properties"];
    let expected = COMPONENTS.iter().map(|component| {
        let is_list = component.count == Count::Many;
        (component.key.to_owned(), json!(if is_list { "array" } else { "object" }))
    });
    let found = services.as_object().unwrap().iter();
    let found = found.map(|(key, service)| (key.clone(), service["type"].clone()));
    let mut expected: Vec<_> = expected.collect();
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn descriptions_name_the_port_that_a_field_has_by_default() {
    for component in COMPONENTS {
        let settings = settings(component);
        for port in component.ports {
            let (Setting::Field(field) | Setting::ShownAs(field)) = port.setting else { continue };
            let text = settings[field]["description"].as_str().unwrap_or_default();
            let number = port.number.to_string();
            let mut words = text.split(|letter: char| !letter.is_ascii_digit());
            assert!(words.any(|word| word == number), "{} {field}: {text}", component.kind);
        }
    }
}

#[test]
fn descriptions_name_every_container() {
    for component in COMPONENTS {
        let text = settings(component)["containers"]["description"].as_str().unwrap().to_owned();
        let names: Vec<_> =
            text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').collect();
        for name in component.containers.all() {
            assert!(names.contains(&name), "{}: {name} is not in: {text}", component.kind);
        }
    }
}
