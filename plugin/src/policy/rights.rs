//! What the webhook has to be allowed for a policy, beyond what its own manifest allows: to list
//! and watch the kinds that the policy looks up, or that hold what it claims. Pure.

use std::collections::BTreeSet;

use kube::api::{ApiResource, GroupVersionKind};
use opensdn_deploy::names;
use opensdn_policy_host::Metadata;
use serde_json::{Value, json};

/// The webhook's service account in its namespace (deploy/webhook/rbac.yaml).
const WEBHOOK: &str = names::webhook::NAME;
/// Groups of which deploy/webhook/rbac.yaml lets the webhook read everything.
const OWN_GROUPS: [&str; 2] = ["tf.tungsten.io", "opensdn.io"];
/// Other kinds that it lets the webhook list and watch.
const GRANTED: [(&str, &str); 7] = [
    ("", "ConfigMap"),
    ("", "Namespace"),
    ("", "Node"),
    ("", "Secret"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apps", "StatefulSet"),
    ("networking.k8s.io", "ServiceCIDR"),
];

/// A ClusterRole and its binding.
#[derive(Clone, Debug)]
pub(crate) struct Rights {
    /// In the order in which they are to be applied.
    pub(crate) objects: [Value; 2],
    /// What may be read: `widgets.example.com`.
    pub(crate) resources: Vec<String>,
}

/// What an AdmissionPolicy `name` with this policy needs, if that is anything. `namespace` is the
/// webhook's.
pub(crate) fn rights(name: &str, metadata: &Metadata, namespace: &str) -> Option<Rights> {
    let needed = needed(metadata);
    if needed.is_empty() {
        return None;
    }
    let name = format!("opensdn-policy-{name}");
    let rules: Vec<Value> = needed
        .iter()
        .map(|(group, plural)| {
            json!({"apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "watch"]})
        })
        .collect();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": WEBHOOK, "namespace": namespace}],
    });
    let full = |(group, plural): &(String, String)| match group.as_str() {
        "" => plural.clone(),
        group => format!("{plural}.{group}"),
    };
    Some(Rights { objects: [role, binding], resources: needed.iter().map(full).collect() })
}

/// Group and plural of each kind. The plural is guessed by the rules of English, as there is no
/// cluster to ask.
fn needed(metadata: &Metadata) -> BTreeSet<(String, String)> {
    let looked_up = metadata.indexes.iter().map(|index| (&index.group, &index.kind));
    let holders = metadata.interests.iter().filter(|_| metadata.claims);
    let holders = holders.map(|interest| (&interest.group, &interest.kind));
    looked_up
        .chain(holders)
        .filter(|(group, kind)| *group != "*" && *kind != "*")
        .filter(|(group, kind)| {
            !OWN_GROUPS.contains(&group.as_str())
                && !GRANTED.contains(&(group.as_str(), kind.as_str()))
        })
        .map(|(group, kind)| {
            let kind = GroupVersionKind::gvk(group, "v1", kind);
            (group.clone(), ApiResource::from_gvk(&kind).plural)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use opensdn_policy_host::{Index, Interest, Operation, Step};

    use super::*;

    fn metadata(looked_up: &[(&str, &str)], claims: bool) -> Metadata {
        let index = |(group, kind): &(&str, &str)| Index {
            name: "all".into(),
            group: (*group).into(),
            kind: (*kind).into(),
            key: String::new(),
            reads: Vec::new(),
        };
        Metadata {
            name: "own".into(),
            version: "1.0.0".into(),
            summary: "about widgets".into(),
            interests: vec![Interest {
                step: Step::Validate,
                group: "example.com".into(),
                kind: "Widget".into(),
                operations: vec![Operation::Create],
                reads: Vec::new(),
            }],
            indexes: looked_up.iter().map(index).collect(),
            messages: Vec::new(),
            settings_schema: json!({}),
            claims,
        }
    }

    #[test]
    fn what_the_webhook_may_read_already_needs_no_right() {
        let known = [("", "Node"), ("tf.tungsten.io", "Vrouter"), ("", "Secret")];
        assert!(rights("own", &metadata(&known, false), "opensdn-system").is_none());
        // Judging a kind takes no right to read it.
        assert!(rights("own", &metadata(&[], false), "opensdn-system").is_none());
    }

    #[test]
    fn what_is_said_to_be_granted_is_in_the_webhooks_manifest() {
        let text = include_str!("../../../deploy/webhook/rbac.yaml");
        let source = opensdn_manifests::Source::new("rbac.yaml", text);
        let documents = opensdn_manifests::read(&source).documents;
        let role = documents.iter().find(|one| one.value["kind"] == "ClusterRole").unwrap();
        let rules = role.value["rules"].as_array().unwrap();
        let has = |list: &Value, one: &str| list.as_array().unwrap().contains(&json!(one));
        let may_read = |group: &str, resource: &str| {
            rules.iter().any(|rule| {
                let verbs = ["list", "watch"].iter().all(|verb| has(&rule["verbs"], verb));
                let names = rule.get("resourceNames").is_none();
                verbs
                    && names
                    && has(&rule["apiGroups"], group)
                    && has(&rule["resources"], resource)
            })
        };
        for group in OWN_GROUPS {
            assert!(may_read(group, "*"), "{group}");
        }
        for (group, kind) in GRANTED {
            let plural = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind)).plural;
            assert!(may_read(group, &plural), "{plural}.{group}");
        }
    }

    #[test]
    fn other_kinds_may_be_listed_by_the_webhook_and_no_other() {
        let looked_up = [("", "Pod"), ("networking.k8s.io", "NetworkPolicy"), ("", "Node")];
        let given = rights("own", &metadata(&looked_up, true), "elsewhere").unwrap();
        let resources = ["pods", "widgets.example.com", "networkpolicies.networking.k8s.io"];
        assert_eq!(given.resources, resources);
        let [role, binding] = given.objects;
        assert_eq!(role["metadata"]["name"], "opensdn-policy-own");
        let verbs = json!(["get", "list", "watch"]);
        let rules = role["rules"].as_array().unwrap();
        assert!(rules.iter().all(|rule| rule["verbs"] == verbs), "{role:#}");
        assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
        let webhook = json!([
            {"kind": "ServiceAccount", "name": "opensdn-webhook", "namespace": "elsewhere"}
        ]);
        assert_eq!(binding["subjects"], webhook);
    }
}
