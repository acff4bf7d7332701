//! One kind: what it is called, and the way from its name to one of its fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Value, json};

use super::{Kind, Missing};

/// A field with what it is a field of.
pub(super) struct Found<'a> {
    /// The names of the fields, without what only counts items or is a key of a mapping.
    pub(super) path: Vec<String>,
    pub(super) schema: &'a JSONSchemaProps,
    /// What it is a field of; none for the object itself.
    pub(super) parent: Option<&'a JSONSchemaProps>,
}

impl Kind {
    /// Of what is served; the schemas have one version each.
    pub(super) fn new(definition: CustomResourceDefinition) -> Option<Self> {
        let version = definition.spec.versions.iter().find(|version| version.served)?;
        let mut root = version.schema.clone()?.open_api_v3_schema?;
        let version = version.name.clone();
        let namespaced = definition.spec.scope == "Namespaced";
        for (name, said) in of_every_object(namespaced) {
            // What a definition leaves out, and every object has.
            root.properties.get_or_insert_default().entry(name).or_insert(said);
        }
        Some(Self { definition, version, root })
    }

    pub(super) fn name(&self) -> &str {
        &self.definition.spec.names.kind
    }

    /// As paths begin with it: `vrouter`.
    pub(super) fn word(&self) -> String {
        self.name().to_lowercase()
    }

    /// Kind, plural, singular and short names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let names = &self.definition.spec.names;
        let short = names.short_names.iter().flatten().map(String::as_str);
        [names.kind.as_str(), names.plural.as_str()]
            .into_iter()
            .chain(names.singular.as_deref())
            .chain(short)
    }

    pub(super) fn is_called(&self, word: &str) -> bool {
        self.names().any(|name| name.eq_ignore_ascii_case(word))
    }

    /// After `managers.tf.tungsten.io` and `managers.v1alpha1.tf.tungsten.io` come fields, too.
    pub(super) fn without_group<'n, 'w>(&self, names: &'n [&'w str]) -> &'n [&'w str] {
        let rest = match names {
            [version, rest @ ..] if *version == self.version => rest,
            all => all,
        };
        let group: Vec<&str> = self.definition.spec.group.split('.').collect();
        match rest.get(group.len()..) {
            Some(fields) if rest.starts_with(&group) => fields,
            _ => names,
        }
    }

    /// The field of these names.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn walk(&self, names: &[&str]) -> Result<Found<'_>, Missing> {
        let mut found = Found { path: Vec::new(), schema: &self.root, parent: None };
        for name in names.iter().filter(|name| !name.is_empty()) {
            let parent = content(found.schema);
            match step(found.schema, name) {
                Step::Field(schema) => {
                    found.path.push((*name).to_owned());
                    found = Found { schema, parent: Some(parent), ..found };
                }
                Step::Within(schema) => found.schema = schema,
                Step::Missing => return Err(Missing::field(self, &found, name)),
            }
        }
        Ok(found)
    }
}

/// Where a name leads.
enum Step<'a> {
    Field(&'a JSONSchemaProps),
    /// Into a list or a mapping, without a name of the schema's.
    Within(&'a JSONSchemaProps),
    Missing,
}

fn step<'a>(schema: &'a JSONSchemaProps, name: &str) -> Step<'a> {
    let inner = content(schema);
    if let Some(field) = inner.properties.iter().flatten().find(|(known, _)| *known == name) {
        return Step::Field(field.1);
    }
    match within(schema) {
        Some(items) if schema.items.is_none() || name.parse::<usize>().is_ok() => {
            Step::Within(items)
        }
        _ => Step::Missing,
    }
}

/// What is in a list or a mapping.
pub(super) fn within(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        return Some(items);
    }
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => Some(values),
        Some(JSONSchemaPropsOrBool::Bool(_)) | None => None,
    }
}

/// What has the fields: the object, or what is in the list or mapping.
pub(super) fn content(schema: &JSONSchemaProps) -> &JSONSchemaProps {
    match within(schema) {
        Some(inner) if schema.properties.is_none() => content(inner),
        _ => schema,
    }
}

pub(super) fn description(schema: &JSONSchemaProps) -> String {
    let own = schema.description.clone();
    own.or_else(|| within(schema)?.description.clone()).unwrap_or_default()
}

/// `apiVersion`, `kind` and what matters of `metadata`.
fn of_every_object(namespaced: bool) -> Vec<(String, JSONSchemaProps)> {
    let text = |said: &str| json!({"type": "string", "description": said});
    let texts = |said: &str| json!({"type": "object", "description": said, "additionalProperties": {"type": "string"}});
    let mut metadata = json!({
        "name": text("Name of the object: no other of its kind in the namespace has it."),
        "labels": texts("What objects are selected by."),
        "annotations": texts("What tools have noted."),
    });
    if let (true, Value::Object(fields)) = (namespaced, &mut metadata) {
        fields.insert("namespace".to_owned(), text("Namespace of the object."));
    }
    let metadata = json!({"type": "object", "properties": metadata,
        "description": "Name, labels and the like, as every object of Kubernetes has them: all fields by `kubectl explain pod.metadata`."});
    let all = [
        ("apiVersion", text("Group and version of the kind.")),
        ("kind", text("The kind.")),
        ("metadata", metadata),
    ];
    all.into_iter()
        .filter_map(|(name, schema)| Some((name.to_owned(), serde_json::from_value(schema).ok()?)))
        .collect()
}
