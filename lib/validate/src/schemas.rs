//! The schemas of OpenSDN's kinds, as this program carries them: what the API server would refuse,
//! and what it would make of an object before admission.

use std::collections::HashSet;

use opensdn_manifests::{Document, KubernetesVersion, Problem};
use serde_json::Value;

use super::table::GroupKind;

/// The schemas of the kinds that OpenSDN defines.
pub(crate) struct Schemas {
    schemas: opensdn_manifests::Schemas,
    as_of: Option<KubernetesVersion>,
    namespaced: HashSet<GroupKind>,
}

impl Schemas {
    /// The schemas that belong to this version, by the rules of a version of Kubernetes.
    pub(crate) fn built_in(as_of: Option<KubernetesVersion>) -> Self {
        let definitions = opensdn_crds::all();
        let namespaced = definitions
            .iter()
            .filter(|definition| definition.spec.scope == "Namespaced")
            .map(|one| (one.spec.group.clone(), one.spec.names.kind.clone()))
            .collect();
        Self { schemas: opensdn_manifests::Schemas::new(definitions), as_of, namespaced }
    }

    /// Everything that is wrong with the object by its schema and the rules in it.
    pub(crate) fn check(&self, document: &Document) -> Vec<Problem> {
        self.schemas.check(document, self.as_of)
    }

    /// The object as the API server hands it to admission: without unknown fields, with defaults.
    pub(crate) fn as_stored(&self, value: &Value) -> Value {
        self.schemas.with_defaults(value)
    }

    /// Whether objects of the kind live in namespaces.
    pub(crate) fn is_namespaced(&self, value: &Value) -> bool {
        let text = |key| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let group = text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        self.namespaced.contains(&(group.to_owned(), text("kind").to_owned()))
    }
}
