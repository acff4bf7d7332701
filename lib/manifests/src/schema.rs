//! Objects checked against the schemas of CustomResourceDefinitions, in the order in which the API
//! server does it: unknown fields, nulls, defaults, metadata, structure, rules. Deliberately not
//! here: rules that need an older object, and what a cluster knows.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use serde_json::Value;

use crate::document::Document;
use crate::problem::{Problem, codes};
use crate::version::KubernetesVersion;
use found::Found;
use node::Node;
use rule::Rules;

mod cel_optional;
mod defaults;
mod evaluate;
mod format;
mod found;
mod library;
mod metadata;
mod node;
mod rule;
mod structure;
mod unknown;

/// The schemas of some CustomResourceDefinitions, compiled.
#[derive(Debug)]
pub struct Schemas {
    groups: BTreeMap<String, BTreeMap<String, KindSchemas>>,
}

/// A kind in all its versions.
#[derive(Debug)]
struct KindSchemas {
    namespaced: bool,
    versions: BTreeMap<String, VersionSchema>,
}

#[derive(Debug)]
struct VersionSchema {
    root: Node,
    /// What the API server warns of where the version is deprecated.
    deprecated: Option<String>,
}

/// What is known of an object's kind.
enum Known<'a> {
    /// Its schema, and whether its objects are in namespaces.
    Schema(&'a VersionSchema, bool),
    /// The group is ours, and has no such kind or version.
    Missing(Problem),
    /// None of ours.
    Foreign,
}

impl Schemas {
    /// The schemas of these definitions. Versions that are not served are left out.
    #[must_use]
    pub fn new(definitions: Vec<CustomResourceDefinition>) -> Self {
        let mut rules = Rules::default();
        let mut groups: BTreeMap<String, BTreeMap<String, KindSchemas>> = BTreeMap::new();
        for definition in definitions {
            let spec = definition.spec;
            let served = spec.versions.into_iter().filter(|version| version.served);
            let versions = served
                .map(|version| (version.name.clone(), VersionSchema::new(&version, &mut rules)))
                .collect();
            let namespaced = spec.scope == "Namespaced";
            let kinds = groups.entry(spec.group).or_default();
            kinds.insert(spec.names.kind, KindSchemas { namespaced, versions });
        }
        Self { groups }
    }

    /// Whether the object is in an API group of these definitions, so that
    /// [`check`](Self::check) says something about it.
    #[must_use]
    pub fn knows(&self, document: &Document) -> bool {
        let group = document.api_version().and_then(|version| version.split_once('/'));
        group.is_some_and(|(group, _)| self.groups.contains_key(group))
    }

    /// Everything that is wrong with an object that is to be created, each with its place; nothing
    /// for kinds of other groups. Without a version the newest Kubernetes is taken.
    #[must_use]
    pub fn check(&self, document: &Document, as_of: Option<KubernetesVersion>) -> Vec<Problem> {
        let mut found = Found::default();
        let (version, namespaced) = match self.find(&document.value) {
            Known::Schema(version, namespaced) => (version, namespaced),
            Known::Missing(problem) => {
                found.push(problem);
                return found.finish(document);
            }
            Known::Foreign => return Vec::new(),
        };
        if let Some(warning) = &version.deprecated {
            let problem = Problem::warning(codes::DEPRECATED, warning).pointer("/apiVersion");
            found.push(problem);
        }
        let mut object = document.value.clone();
        version.prepare(&mut object, &mut found);
        metadata::check(&object, namespaced, &mut found);
        let as_of = as_of.unwrap_or(KubernetesVersion::NEWEST);
        structure::check(&object, &version.root, "", as_of, &mut found);
        evaluate::check(&object, &version.root, &mut found);
        found.finish(document)
    }

    /// The object as the API server hands it to admission and stores it: without the fields that
    /// its schema has not, and with the schema's defaults. Objects of other kinds come back
    /// unchanged.
    #[must_use]
    pub fn with_defaults(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if let Known::Schema(version, _) = self.find(&object) {
            version.prepare(&mut object, &mut Found::default());
        }
        object
    }

    fn find(&self, object: &Value) -> Known<'_> {
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let Some((group, version)) = text("apiVersion").and_then(|text| text.split_once('/'))
        else {
            return Known::Foreign;
        };
        let Some(kinds) = self.groups.get(group) else { return Known::Foreign };
        let Some(kind) = text("kind") else {
            let message = "the object has no kind";
            let problem = Problem::error(codes::UNKNOWN_KIND, message).pointer("/kind");
            return Known::Missing(problem.hint(format!("kinds of {group}: {}", listed(kinds))));
        };
        let Some(schemas) = kinds.get(kind) else {
            let message = format!("no kind `{kind}` in {group}");
            let hint = match unknown::nearest(kind, kinds.keys().map(String::as_str)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("kinds of {group}: {}", listed(kinds)),
            };
            let problem = Problem::error(codes::UNKNOWN_KIND, message).pointer("/kind");
            return Known::Missing(problem.hint(hint));
        };
        match schemas.versions.get(version) {
            Some(version) => Known::Schema(version, schemas.namespaced),
            None => {
                let message = format!("no version `{version}` of {kind} in {group}");
                let served = listed(&schemas.versions);
                let problem = Problem::error(codes::UNKNOWN_KIND, message).pointer("/apiVersion");
                Known::Missing(problem.hint(format!("served: {served}")))
            }
        }
    }
}

impl VersionSchema {
    fn new(version: &CustomResourceDefinitionVersion, rules: &mut Rules) -> Self {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        let deprecated = (version.deprecated == Some(true)).then(|| {
            let own = version.deprecation_warning.clone();
            own.unwrap_or_else(|| format!("version {} is deprecated", version.name))
        });
        let root = schema.map(|schema| Node::new(schema, rules)).unwrap_or_default();
        Self { root, deprecated }
    }

    /// What the API server does before it checks.
    fn prepare(&self, object: &mut Value, found: &mut Found) {
        unknown::prune(object, &self.root, true, "", found);
        defaults::drop_nulls(object, &self.root);
        defaults::write(object, &self.root);
    }
}

fn listed<T>(names: &BTreeMap<String, T>) -> String {
    names.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
