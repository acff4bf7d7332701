//! What the pods of a manifest take from Secrets and ConfigMaps: where one is missing they wait for it without an end, with
//! a reason that only `kubectl describe` shows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::file::WorkloadFile;
use crate::install::object::ObjectKey;
use crate::snapshot::{list, text};

/// Objects that the pods need and the manifest does not have, with the keys that they need of each.
pub(super) type Needs = BTreeMap<ObjectKey, BTreeSet<String>>;

/// Of all pods of the manifest.
pub(super) fn needs(file: &WorkloadFile) -> Needs {
    let mut needs = Needs::new();
    for one in &file.objects {
        let Some(pod) = one.object.pointer("/spec/template/spec") else { continue };
        let namespace = one.key.namespace.as_deref().unwrap_or_default();
        let mut add = |kind: &str, source: &Value, name: &str, keys: Vec<&str>| {
            let is_optional = source.get("optional").and_then(Value::as_bool) == Some(true);
            if !is_optional && !name.is_empty() {
                let key = ObjectKey::within(namespace, "v1", kind, name);
                needs.entry(key).or_default().extend(keys.into_iter().map(str::to_owned));
            }
        };
        of_volumes(pod, &mut add);
        of_containers(pod, &mut add);
    }
    needs.retain(|key, _| !file.objects.iter().any(|one| one.key == *key));
    needs
}

/// Kind, what refers to it, its name, and keys.
type Add<'a> = dyn FnMut(&str, &Value, &str, Vec<&str>) + 'a;

fn of_volumes(pod: &Value, add: &mut Add<'_>) {
    for volume in list(pod, "/volumes") {
        let projected = list(volume, "/projected/sources");
        for source in std::iter::once(volume).chain(projected) {
            for (field, kind) in [("secret", "Secret"), ("configMap", "ConfigMap")] {
                let Some(of) = source.get(field) else { continue };
                let name = match text(of, "/secretName") {
                    "" => text(of, "/name"),
                    name => name,
                };
                add(kind, of, name, list(of, "/items").map(|item| text(item, "/key")).collect());
            }
        }
    }
}

fn of_containers(pod: &Value, add: &mut Add<'_>) {
    let containers = list(pod, "/initContainers").chain(list(pod, "/containers"));
    for container in containers {
        for (field, kind) in [("secretRef", "Secret"), ("configMapRef", "ConfigMap")] {
            let sources = list(container, "/envFrom").filter_map(|one| one.get(field));
            sources.for_each(|of| add(kind, of, text(of, "/name"), Vec::new()));
        }
        for (field, kind) in [("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")] {
            let variables =
                list(container, "/env").filter_map(|one| one.get("valueFrom")?.get(field));
            variables.for_each(|of| add(kind, of, text(of, "/name"), vec![text(of, "/key")]));
        }
    }
}

/// The keys that a stored object lacks.
pub(super) fn lacking<'k>(stored: &Value, keys: &'k BTreeSet<String>) -> Vec<&'k str> {
    let has = |key: &str| {
        ["data", "stringData", "binaryData"]
            .iter()
            .any(|field| stored.get(field).and_then(|data| data.get(key)).is_some())
    };
    keys.iter().map(String::as_str).filter(|key| !has(key)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_pods_need_and_the_manifest_does_not_have_is_known_with_its_keys() {
        let meta = |name: &str| json!({"name": name, "namespace": "n"});
        let pod = json!({
            "volumes": [
                {"secret": {"secretName": "token", "items": [{"key": "token"}]}},
                {"projected": {"sources": [{"secret": {"name": "ca", "items": [{"key": "ca-bundle.crt"}]}}]}},
                {"secret": {"secretName": "left-out", "optional": true}},
                {"hostPath": {"path": "/var/log"}},
            ],
            "containers": [{
                "envFrom": [{"configMapRef": {"name": "env"}}, {"secretRef": {"name": "more"}}],
                "env": [
                    {"name": "A", "valueFrom": {"secretKeyRef": {"name": "keystone", "key": "password"}}},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "keystone", "key": "escaped"}}},
                    {"name": "C", "value": "x"},
                ],
            }],
        });
        let objects = vec![
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("opensdn-kube-manager"),
                "spec": {"template": {"spec": pod}}}),
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta("opensdn-kubernetes-cni-agent")}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta("token")}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("env")}),
        ];
        let found: Vec<(String, Vec<String>)> = needs(&WorkloadFile::of_test(objects))
            .into_iter()
            .map(|(key, keys)| (key.to_string(), keys.into_iter().collect()))
            .collect();
        let of = |key: &str, keys: &[&str]| {
            (key.to_owned(), keys.iter().map(ToString::to_string).collect())
        };
        let wanted: [(String, Vec<String>); 3] = [
            of("Secret/n/ca", &["ca-bundle.crt"]),
            of("Secret/n/keystone", &["escaped", "password"]),
            of("Secret/n/more", &[]),
        ];
        assert_eq!(found, wanted);
        let keys = ["escaped", "password"].map(str::to_owned).into();
        assert_eq!(lacking(&json!({"data": {"password": "eA=="}}), &keys), ["escaped"]);
    }
}
