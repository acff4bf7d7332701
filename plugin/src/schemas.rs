//! The JSON Schema of every answer, by kind. A command's own answers stand in the command's file;
//! here is only the list.

use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::commands;
use crate::exit::Failure;
use crate::output::{API_VERSION, Answer};

/// A kind of document and its schema.
pub(crate) struct Published {
    /// The document's `kind`.
    pub(crate) kind: &'static str,
    schema: fn() -> Schema,
}

/// Every kind, by name.
pub(crate) const PUBLISHED: &[Published] = &[
    of::<Failure>(),
    of::<commands::explain::Explanations>(),
    of::<commands::version::Versions>(),
    of::<crate::report::ValidationReport>(),
    of::<commands::policy::bench::PolicyBench>(),
    of::<commands::policy::explain::PolicyExplanation>(),
    of::<commands::policy::inspect::PolicyInspection>(),
    of::<crate::policy::evaluation::PolicyRun>(),
    of::<crate::policy::test_report::PolicyTest>(),
];

const fn of<A: Answer>() -> Published {
    Published { kind: A::KIND, schema: schema::<A> }
}

fn schema<A: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<A>()
}

impl Published {
    /// The schema of the whole document.
    pub(crate) fn schema(&self) -> Value {
        let mut schema = (self.schema)().to_value();
        let envelope = json!({
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": self.kind},
        });
        if let (Some(schema), Value::Object(envelope)) = (schema.as_object_mut(), envelope) {
            schema.insert("title".to_owned(), json!(self.kind));
            let properties =
                schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
            let mut names: Vec<Value> = envelope.keys().map(|name| json!(name)).collect();
            if let Some(properties) = properties.as_object_mut() {
                properties.extend(envelope);
            }
            let required = schema.entry("required").or_insert_with(|| Value::Array(Vec::new()));
            if let Some(required) = required.as_array_mut() {
                names.append(required);
                *required = names;
            }
        }
        schema
    }
}
