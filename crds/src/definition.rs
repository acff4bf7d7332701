//! What becomes of each CustomResourceDefinition after the derive: the rules on the object as a
//! whole, which have no type to stand with, and what the derive says that must not be said. The
//! rules on fields are with their types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, JSONSchemaProps,
    JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ValidationRule,
};

use crate::{TUNGSTEN_GROUP, component::Component, schema::message};

/// All kinds of both groups: `kubectl get opensdn`.
const CATEGORY: &str = "opensdn";

/// The most characters of the names of a kind; none for a kind that is no component.
pub(crate) fn longest_name(kind: &str) -> Option<u8> {
    Component::of_kind(kind).map(|component| component.longest_name)
}

/// What to do about a name that is too long.
pub(crate) fn name_text(characters: u8) -> String {
    format!(
        "metadata.name must not be longer than {characters} characters, for the names of the pods \
         are made from it: choose a shorter one"
    )
}

/// The definition as it is to be installed.
pub(crate) fn finish(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    let ours = definition.spec.group != TUNGSTEN_GROUP;
    definition.spec.names.categories = Some(vec![CATEGORY.to_owned()]);
    let kind = &definition.spec.names.kind;
    for version in &mut definition.spec.versions {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        let Some(schema) = schema else { continue };
        tidy(schema);
        if !ours {
            add_columns(version.additional_printer_columns.get_or_insert_default());
            let rules = rules_of(kind);
            schema.x_kubernetes_validations.get_or_insert_default().extend(rules);
            leave_the_spec_out(schema);
        }
        schema.x_kubernetes_validations.take_if(|rules| rules.is_empty());
    }
    definition
}

/// The state of every component, at the end, but before an age that ends the line.
fn add_columns(columns: &mut Vec<CustomResourceColumnDefinition>) {
    let of_ready = |name: &str, field: &str| CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: "string".to_owned(),
        json_path: format!(r#".status.conditions[?(@.type=="Ready")].{field}"#),
        ..CustomResourceColumnDefinition::default()
    };
    let ends_with_age = columns.last().is_some_and(|column| column.name == "Age");
    let at = columns.len() - usize::from(ends_with_age);
    columns.splice(at..at, [of_ready("Ready", "status"), of_ready("Reason", "reason")]);
}

fn rules_of(kind: &str) -> Vec<ValidationRule> {
    let name = longest_name(kind).map(|characters| ValidationRule {
        rule: format!("size(self.metadata.name) <= {characters}"),
        message: Some(message("OSDN1107", &name_text(characters))),
        ..ValidationRule::default()
    });
    name.into_iter().flat_map(|too_long| [too_long, no_dots()]).collect()
}

/// The rule on a component as an object of its own; within a Manager the pattern of the name says it.
fn no_dots() -> ValidationRule {
    let text = "metadata.name must have no dots, for volumes of the pods are named after it: use - \
        instead";
    ValidationRule {
        rule: "!self.metadata.name.contains('.')".to_owned(),
        message: Some(message("OSDN1106", text)),
        ..ValidationRule::default()
    }
}

/// tf-operator's kinds have no need of a spec: the types read an object without one as one with an
/// empty spec, by `serde(default)`. Of that the derive makes defaults in the schema too, by which
/// the API server would write an empty spec and status into every object.
fn leave_the_spec_out(object: &mut JSONSchemaProps) {
    for part in object.properties.iter_mut().flatten() {
        part.1.default = None;
    }
    if let Some(required) = &mut object.required {
        required.retain(|field| field != "spec");
    }
    object.required.take_if(|required| required.is_empty());
}

/// A list or map that has no bound of its own gets one that no object reaches: of short items a megabyte of an
/// object is a hundred in the memory of what reads it.
fn bound(schema: &mut JSONSchemaProps) {
    const MOST: i64 = 1024;
    if schema.items.is_some() {
        schema.max_items.get_or_insert(MOST);
    }
    if schema.additional_properties.is_some() {
        schema.max_properties.get_or_insert(MOST);
    }
}

/// Takes out what people stumble over in `kubectl explain`: line breaks of the source within
/// descriptions, and null among the values of an enum (a field that may be null says so by
/// `nullable`).
fn tidy(schema: &mut JSONSchemaProps) {
    if let Some(description) = &mut schema.description {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if let Some(values) = &mut schema.enum_ {
        values.retain(|value| !value.0.is_null());
    }
    bound(schema);
    for property in schema.properties.iter_mut().flatten() {
        tidy(property.1);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => tidy(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(tidy),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        tidy(values);
    }
}
