//! The schemas of OpenSDN's kinds, as this program carries them: what the API server would refuse,
//! and what it would make of an object before admission.

use std::collections::HashSet;
use std::sync::LazyLock;

use opensdn_manifests::{Document, KubernetesVersion, Problem};
use serde_json::Value;

use super::table::GroupKind;

/// Made once in a process: with their rules they take longer than many a validation.
static COMPILED: LazyLock<Compiled> = LazyLock::new(|| {
    let definitions = opensdn_crds::all();
    let namespaced = definitions
        .iter()
        .filter(|definition| definition.spec.scope == "Namespaced")
        .map(|one| (one.spec.group.clone(), one.spec.names.kind.clone()))
        .collect();
    Compiled { schemas: opensdn_manifests::Schemas::new(definitions), namespaced }
});

struct Compiled {
    schemas: opensdn_manifests::Schemas,
    namespaced: HashSet<GroupKind>,
}

/// The schemas of the kinds that OpenSDN defines.
pub(crate) fn compiled() -> &'static opensdn_manifests::Schemas {
    &COMPILED.schemas
}

/// They, by the rules of a version of Kubernetes.
#[derive(Clone, Copy)]
pub(crate) struct Schemas {
    as_of: Option<KubernetesVersion>,
}

impl Schemas {
    /// The schemas that belong to this version, by the rules of a version of Kubernetes.
    pub(crate) fn built_in(as_of: Option<KubernetesVersion>) -> Self {
        Self { as_of }
    }

    /// Everything that is wrong with the object by its schema and the rules in it.
    pub(crate) fn check(&self, document: &Document) -> Vec<Problem> {
        compiled().check(document, self.as_of)
    }

    /// The object as the API server hands it to admission: without unknown fields, with defaults.
    pub(crate) fn as_stored(&self, value: &Value) -> Value {
        compiled().with_defaults(value)
    }

    /// Whether objects of the kind live in namespaces.
    pub(crate) fn is_namespaced(&self, value: &Value) -> bool {
        let text = |key| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let group = text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        COMPILED.namespaced.contains(&(group.to_owned(), text("kind").to_owned()))
    }
}
