//! Takes out of an object what the schema of our kind has not, as the API server would without a word.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Notes, reasons};

/// The schemas of our kinds.
pub(crate) struct Shapes(BTreeMap<String, Value>);

impl Shapes {
    /// Those of our CRDs.
    ///
    /// # Errors
    /// A CRD of ours is no JSON.
    pub(crate) fn new() -> Result<Self, serde_json::Error> {
        let schema = |definition: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition| {
            let kind = definition.spec.names.kind.clone();
            let definition = serde_json::to_value(definition)?;
            let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema");
            Ok((kind, schema.cloned().unwrap_or_default()))
        };
        opensdn_crds::all().into_iter().map(schema).collect::<Result<_, _>>().map(Self)
    }

    /// Takes out what the kind has not, with the reason.
    pub(super) fn prune(&self, kind: &str, object: &mut Value, notes: &mut Notes) {
        let properties = |schema: &Value, name: &str| {
            schema.pointer(&format!("/properties/{name}")).cloned().unwrap_or_default()
        };
        let schema = self.0.get(kind).cloned().unwrap_or_default();
        if let Some(spec) = object.get_mut("spec") {
            prune(spec, &properties(&schema, "spec"), "spec", kind, notes);
        }
        let known = ["apiVersion", "kind", "metadata", "spec"];
        remove(object.as_object_mut(), |name| known.contains(&name), "", kind, notes);
    }
}

fn prune(value: &mut Value, schema: &Value, path: &str, kind: &str, notes: &mut Notes) {
    match value {
        Value::Array(items) => {
            let of_items = schema.get("items").unwrap_or(&Value::Null);
            for (at, item) in items.iter_mut().enumerate() {
                prune(item, of_items, &format!("{path}[{at}]"), kind, notes);
            }
        }
        Value::Object(fields) => {
            let of_others = schema.get("additionalProperties");
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                // A mapping with keys of the user's, or what no schema describes.
                let others = fields.iter_mut().filter(|_| of_others.is_some());
                others.for_each(|(name, value)| {
                    let of_others = of_others.unwrap_or(&Value::Null);
                    prune(value, of_others, &format!("{path}.{name}"), kind, notes);
                });
                return;
            };
            let is_ours = |name: &str| properties.contains_key(name) && !is_another(path, name);
            remove(Some(&mut *fields), is_ours, path, kind, notes);
            for (name, value) in fields {
                let schema = properties.get(name).unwrap_or(&Value::Null);
                prune(value, schema, &format!("{path}.{name}"), kind, notes);
            }
        }
        _ => {}
    }
}

/// A field that has the name of one of ours and is something else: release 2011 makes volumes of folders, which it names by size and
/// path, and OpenSDN uses these folders themselves.
fn is_another(path: &str, name: &str) -> bool {
    name == "storage" && path.ends_with(".serviceConfiguration")
}

fn remove(
    fields: Option<&mut Map<String, Value>>,
    is_known: impl Fn(&str) -> bool,
    path: &str,
    kind: &str,
    notes: &mut Notes,
) {
    let Some(fields) = fields else { return };
    fields.retain(|name, _| {
        let is_known = is_known(name);
        if !is_known {
            let field = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let none = format!("{kind} has no such field");
            notes.dropped(&field, reasons::of_field(name).unwrap_or(&none));
        }
        is_known
    });
}
