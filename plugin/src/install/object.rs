//! What an object is called, and whether it is ours. Pure.

use std::fmt::{self, Display, Formatter};

use kube::api::{ApiResource, GroupVersionKind};
use opensdn_deploy::names::MANAGED_BY_LABEL;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// By which field manager our applies are known, and what is in the label of who manages an object.
pub(crate) const MANAGER: &str = "kubectl-opensdn";
/// The label by which members of an installation are known, after KEP-3659. Tools recognise it; kubectl does not
/// prune an installation of another tool by it.
pub(crate) const PART_OF: &str = "applyset.kubernetes.io/part-of";

/// What an object is called.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectKey {
    /// Its group and version: `apps/v1`.
    pub(crate) api_version: String,
    /// Its kind.
    pub(crate) kind: String,
    /// Its namespace, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    /// Its name.
    pub(crate) name: String,
}

impl ObjectKey {
    /// Of an object as it is rendered or stored.
    pub(crate) fn of(object: &Value) -> Self {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Self {
            api_version: text("/apiVersion").unwrap_or_default(),
            kind: text("/kind").unwrap_or_default(),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name").unwrap_or_default(),
        }
    }

    /// Of an object without a namespace.
    pub(crate) fn cluster(api_version: &str, kind: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        }
    }

    /// Of an object in a namespace.
    pub(crate) fn within(namespace: &str, api_version: &str, kind: &str, name: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..Self::cluster(api_version, kind, name) }
    }

    /// The group of its kind; empty for Kubernetes' core.
    pub(crate) fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// As kubectl names it with `-o name`.
    pub(crate) fn kubectl_name(&self) -> String {
        let (kind, group) = (self.kind.to_lowercase(), self.group());
        let dot = if group.is_empty() { "" } else { "." };
        format!("{kind}{dot}{group}/{}", self.name)
    }

    /// What a request names. The plurals of all kinds of ours follow the rules of English, but for one that is a
    /// plural already.
    pub(crate) fn resource(&self) -> ApiResource {
        let version = self.api_version.rsplit('/').next().unwrap_or_default();
        let kind = GroupVersionKind::gvk(self.group(), version, &self.kind);
        match self.kind.as_str() {
            "SecurityContextConstraints" => {
                ApiResource::from_gvk_with_plural(&kind, "securitycontextconstraints")
            }
            _ => ApiResource::from_gvk(&kind),
        }
    }

    /// Whether a user's `KIND/NAME` means it.
    pub(crate) fn is_meant_by(&self, words: &str) -> bool {
        words.split_once('/').is_some_and(|(kind, name)| {
            kind.eq_ignore_ascii_case(&self.kind)
                && (name == self.name
                    || self
                        .namespace
                        .as_ref()
                        .is_some_and(|namespace| name == format!("{namespace}/{}", self.name)))
        })
    }
}

impl Display for ObjectKey {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name, .. } = self;
        match namespace {
            Some(namespace) => write!(formatter, "{kind}/{namespace}/{name}"),
            None => write!(formatter, "{kind}/{name}"),
        }
    }
}

fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(name)?.as_str()
}

/// Whether a stored object is a member of the installation.
pub(crate) fn is_member(object: &Value, installation: &str) -> bool {
    label(object, PART_OF) == Some(installation)
}

/// The object with the labels of a member.
pub(crate) fn with_labels(mut object: Value, installation: &str) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        let labels = metadata.entry("labels").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(labels) = labels {
            labels.insert(PART_OF.to_owned(), json!(installation));
            labels.insert(MANAGED_BY_LABEL.to_owned(), json!(MANAGER));
        }
    }
    object
}

/// Who manages a stored object that is no member: a tool by what it writes into each of its objects, else the field
/// managers.
pub(crate) fn managers(object: &Value) -> Vec<String> {
    let annotation = |name: &str| object.get("metadata")?.get("annotations")?.get(name)?.as_str();
    let mut found = Vec::new();
    if let Some(release) = annotation("meta.helm.sh/release-name") {
        found.push(format!("Helm release {release}"));
    }
    if let Some(name) = label(object, "kustomize.toolkit.fluxcd.io/name") {
        found.push(format!("Flux kustomization {name}"));
    }
    if let Some(name) = annotation("argocd.argoproj.io/tracking-id") {
        found.push(format!("Argo CD {name}"));
    }
    if let Some(other) = label(object, PART_OF) {
        found.push(format!("installation {other}"));
    }
    if found.is_empty() {
        let fields = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        for manager in fields.into_iter().flatten() {
            let of_status = manager.get("subresource").is_some();
            if let Some(name) = manager
                .get("manager")
                .and_then(Value::as_str)
                .filter(|name| !of_status && *name != MANAGER)
                && !found.iter().any(|one| one == name)
            {
                found.push(name.to_owned());
            }
        }
    }
    if found.is_empty() {
        found.push("unknown".to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_ours_by_its_label_alone() {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "b"}});
        let ours = with_labels(object.clone(), "id");
        assert!(is_member(&ours, "id") && !is_member(&ours, "other") && !is_member(&object, "id"));
        assert_eq!(ObjectKey::of(&ours).to_string(), "Deployment/b/a");
        assert_eq!(ObjectKey::of(&ours).resource().plural, "deployments");
    }

    #[test]
    fn an_object_is_named_as_kubectl_names_it() {
        let deployment = ObjectKey::within("b", "apps/v1", "Deployment", "a");
        assert_eq!(deployment.kubectl_name(), "deployment.apps/a");
        assert_eq!(ObjectKey::within("b", "v1", "Secret", "a").kubectl_name(), "secret/a");
    }

    #[test]
    fn words_of_a_user_mean_an_object_with_or_without_its_namespace() {
        let key = ObjectKey::within("b", "apps/v1", "Deployment", "a");
        for words in ["deployment/a", "Deployment/a", "Deployment/b/a"] {
            assert!(key.is_meant_by(words), "{words}");
        }
        for words in ["a", "Deployment/b", "Service/a"] {
            assert!(!key.is_meant_by(words), "{words}");
        }
    }

    #[test]
    fn a_tool_is_named_before_field_managers() {
        let fields = json!([{"manager": "kubectl"}, {"manager": "kubectl"}, {"manager": "kcm", "subresource": "status"}]);
        let object = json!({"metadata": {"managedFields": fields}});
        assert_eq!(managers(&object), ["kubectl"]);
        let helm = json!({"metadata": {"managedFields": fields, "annotations": {"meta.helm.sh/release-name": "sdn"}}});
        assert_eq!(managers(&helm), ["Helm release sdn"]);
    }
}
