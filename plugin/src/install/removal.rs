//! What is removed of an installation, and in which order: first what could block the rest or would restore it, last
//! what says what is installed. Pure.

use std::collections::BTreeMap;

use opensdn_deploy::names::{INVENTORY, MANAGED_BY_LABEL, configuration, webhook};
use serde_json::Value;

use super::inventory::Entry;
use super::object::{ObjectKey, is_member};
use crate::snapshot::list;

/// What goes along with the objects of the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// CRDs, custom resources and the namespaces of components stay.
    Keep,
    /// They go.
    Purge,
}

/// When an object is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// What writes the webhook configurations, and its right to do so: it would restore them.
    Writer,
    /// What runs, while the API server does not ask it any more.
    Programs,
    /// The policies.
    Policies,
    /// Rights, and what else there is.
    Access,
    /// The CRDs.
    Definitions,
    /// The namespaces, with what is in them.
    Namespaces,
}

/// Why an object of the inventory stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It has data of users.
    Data,
    /// It was there before.
    Existed,
    /// There is no inventory that says whether it was.
    Unknown,
    /// It has objects that are not of the installation.
    Others,
}

/// When an object is removed, or why it is not. Of namespaces only those of our own programs have no data of users: which
/// others were ever watched does not matter.
pub(crate) fn stage(entry: &Entry, own: [&str; 2], data: Data) -> Result<Stage, Kept> {
    let ObjectKey { kind, name, .. } = &entry.key;
    match kind.as_str() {
        "Namespace" if entry.existed => Err(Kept::Existed),
        "Namespace" if !own.contains(&name.as_str()) && data == Data::Keep => Err(Kept::Data),
        "Namespace" => Ok(Stage::Namespaces),
        "CustomResourceDefinition" if data == Data::Keep => Err(Kept::Data),
        "CustomResourceDefinition" => Ok(Stage::Definitions),
        "Deployment" | "ClusterRoleBinding" if name == configuration::NAME => Ok(Stage::Writer),
        "Deployment" | "Service" | "PodDisruptionBudget" | "NetworkPolicy" => Ok(Stage::Programs),
        "AdmissionPolicy" => Ok(Stage::Policies),
        _ => Ok(Stage::Access),
    }
}

/// The webhook configurations, which our own pods write.
pub(crate) fn webhook_configurations() -> [ObjectKey; 2] {
    ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"]
        .map(|kind| ObjectKey::cluster("admissionregistration.k8s.io/v1", kind, webhook::NAME))
}

/// Whether a stored webhook configuration was written by the pods of the installation in this namespace.
pub(crate) fn is_of_webhook(stored: &Value, namespace: &str) -> bool {
    let labels = stored.pointer("/metadata/labels");
    let managed_by = labels.and_then(|labels| labels.get(MANAGED_BY_LABEL)).and_then(Value::as_str);
    let webhooks = stored.pointer("/webhooks").and_then(Value::as_array);
    // One that runs outside of the cluster has an address instead of a Service.
    let is_here = |webhook: &Value| {
        let place = webhook.pointer("/clientConfig/service/namespace").and_then(Value::as_str);
        place.is_none_or(|place| place == namespace)
    };
    managed_by == Some(webhook::NAME) && webhooks.into_iter().flatten().all(is_here)
}

/// Groups of which nothing in a namespace is somebody's: what is measured and asked there.
const NOT_LOOKED_AT: [&str; 5] = [
    "authorization.k8s.io",
    "custom.metrics.k8s.io",
    "events.k8s.io",
    "external.metrics.k8s.io",
    "metrics.k8s.io",
];
/// Our own kinds: what becomes of them is said elsewhere, and what they own is no one else's.
const OUR_KINDS: [&str; 2] = ["opensdn.io", "tf.tungsten.io"];
/// Kinds that programs write by themselves, and that nobody misses.
const WRITTEN: [&str; 4] = ["Endpoints", "EndpointSlice", "Event", "Lease"];

/// Whether objects of a kind in a namespace of ours may be somebody else's, and go with it.
pub(crate) fn is_looked_at(group: &str, kind: &str) -> bool {
    !NOT_LOOKED_AT.contains(&group) && !WRITTEN.contains(&kind)
}

/// Of all objects in a namespace of ours those that are somebody else's. What something of ours has made by an owner
/// reference, as a Deployment its pods, is not; an owner that is not in the namespace says nothing.
pub(crate) fn of_others(
    all: &[Value],
    installation: &str,
    pull_secrets: &[String],
) -> Vec<ObjectKey> {
    let by_uid: BTreeMap<&str, &Value> =
        all.iter().filter_map(|one| Some((one.pointer("/metadata/uid")?.as_str()?, one))).collect();
    let is_others = |one: &&Value| {
        let mut object = *one;
        // A chain of owners is short; one that leads to itself is nobody's.
        for _ in 0..MOST_OWNERS {
            if !is_of_others(object, installation, pull_secrets) {
                return false;
            }
            let owner = object.pointer("/metadata/ownerReferences/0/uid").and_then(Value::as_str);
            let Some(owner) = owner.and_then(|uid| by_uid.get(uid)) else { return true };
            object = owner;
        }
        true
    };
    all.iter().filter(is_others).map(ObjectKey::of).collect()
}

/// Whether a finalizer of others holds it.
pub(crate) fn is_held_by_others(stored: &Value) -> bool {
    list(stored, "/metadata/finalizers").filter_map(Value::as_str).any(|one| !is_ours(one))
}

/// Whether nobody but others holds it: the operator has let it go.
pub(super) fn is_left_to_others(stored: &Value) -> bool {
    let mut finalizers = list(stored, "/metadata/finalizers").filter_map(Value::as_str).peekable();
    finalizers.peek().is_some() && finalizers.all(|one| !is_ours(one))
}

/// By which the operator keeps an object until what it has in a cloud is taken away: the only one of ours.
pub(crate) const OF_CLOUD: &str = "opensdn.io/cloud";

/// The operator's, and those of Kubernetes' own controllers.
fn is_ours(finalizer: &str) -> bool {
    [OF_CLOUD, "foregroundDeletion", "orphan"].contains(&finalizer)
}

/// What is said of those that are held.
pub(super) fn left_to(held: usize) -> String {
    match held {
        0 => String::new(),
        number => format!("; {number} are gone once other controllers release them"),
    }
}

/// So many owners are followed.
const MOST_OWNERS: usize = 8;

/// Whether an object in a namespace of ours is somebody else's, but for its owners: no member, nothing that Kubernetes puts
/// into every namespace, that our pods write, or that the values name.
fn is_of_others(stored: &Value, installation: &str, pull_secrets: &[String]) -> bool {
    let key = ObjectKey::of(stored);
    if OUR_KINDS.contains(&key.group()) {
        return false;
    }
    let is_of_kubernetes = match key.kind.as_str() {
        "ConfigMap" => {
            ["kube-root-ca.crt", "openshift-service-ca.crt"].contains(&key.name.as_str())
        }
        "ServiceAccount" => {
            ["default", "builder", "deployer", "pipeline"].contains(&key.name.as_str())
        }
        "RoleBinding" | "Role" => key.name.starts_with("system:"),
        "Secret" => {
            let kind = stored.pointer("/type").and_then(Value::as_str).unwrap_or_default();
            kind == "kubernetes.io/service-account-token" || pull_secrets.contains(&key.name)
        }
        _ => false,
    };
    let place = key.namespace.clone().unwrap_or_default();
    let is_written = || left_in_namespace(&place).contains(&key) || key.name == INVENTORY;
    !is_member(stored, installation) && !is_of_kubernetes && !is_written()
}

/// What our pods leave in the namespace of the webhook, for where that stays: it was there before.
pub(crate) fn left_in_namespace(namespace: &str) -> Vec<ObjectKey> {
    let within = |api, kind, name| ObjectKey::within(namespace, api, kind, name);
    vec![
        within("v1", "Secret", webhook::CA_SECRET),
        within("v1", "Secret", webhook::PATH_SECRET),
        within("v1", "ConfigMap", webhook::AUDIT_REPORT),
        within("coordination.k8s.io/v1", "Lease", webhook::LEADER_LEASE),
        within("coordination.k8s.io/v1", "Lease", configuration::LEADER_LEASE),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OWN: [&str; 2] = ["opensdn-system", "opensdn-operator"];

    #[test]
    fn what_is_of_others_in_a_namespace_of_ours_is_known() {
        let of = |kind: &str, name: &str| {
            let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "opensdn-system"}});
            is_of_others(&object, "id", &["pull".to_owned()])
        };
        for (kind, name) in [
            ("ConfigMap", "mine"),
            ("Secret", "mine"),
            ("PersistentVolumeClaim", "mine"),
            ("Pod", "mine"),
        ] {
            assert!(of(kind, name), "{kind} {name}");
        }
        for (kind, name) in [
            ("ConfigMap", "kube-root-ca.crt"),
            ("ConfigMap", INVENTORY),
            ("Secret", "pull"),
            ("Secret", webhook::CA_SECRET),
            ("ServiceAccount", "default"),
        ] {
            assert!(!of(kind, name), "{kind} {name}");
        }
    }

    #[test]
    fn what_an_object_of_ours_has_made_goes_with_it_and_what_one_of_others_has_made_stays() {
        let object = |kind: &str, name: &str, owner: Option<&str>| {
            let owners: Vec<Value> = owner.iter().map(|uid| json!({"uid": uid})).collect();
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "uid": name,
                "namespace": "opensdn-operator", "ownerReferences": owners}})
        };
        let ours = crate::install::object::with_labels(object("Deployment", "d", None), "id");
        let all = [
            ours,
            object("ReplicaSet", "rs", Some("d")),
            object("Pod", "pod", Some("rs")),
            object("Database", "db", None),
            object("PersistentVolumeClaim", "data", Some("db")),
            object("Secret", "of-a-cluster-wide-owner", Some("elsewhere")),
            object("Secret", "loop", Some("loop")),
            json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Redis",
                "metadata": {"name": "redis1", "uid": "cr", "namespace": "opensdn-operator"}}),
            object("StatefulSet", "redis1", Some("cr")),
        ];
        let found: Vec<String> =
            of_others(&all, "id", &[]).into_iter().map(|key| key.name).collect();
        assert_eq!(found, ["db", "data", "of-a-cluster-wide-owner", "loop"]);
        assert!(is_looked_at("example.com", "Database") && is_looked_at("", "Secret"));
        assert!(!is_looked_at("metrics.k8s.io", "PodMetrics") && !is_looked_at("", "Event"));
    }

    #[test]
    fn a_webhook_configuration_of_another_namespace_is_not_of_this_installation() {
        let of = |place: &str| {
            json!({"metadata": {"labels": {MANAGED_BY_LABEL: webhook::NAME}},
                "webhooks": [{"clientConfig": {"service": {"namespace": place}}}]})
        };
        assert!(is_of_webhook(&of("a"), "a") && !is_of_webhook(&of("b"), "a"));
        let outside = json!({"metadata": {"labels": {MANAGED_BY_LABEL: webhook::NAME}},
            "webhooks": [{"clientConfig": {"url": "https://127.0.0.1:1/"}}]});
        assert!(is_of_webhook(&outside, "a"), "it runs outside of the cluster");
    }

    fn entry(kind: &str, name: &str, existed: bool) -> Entry {
        Entry { key: ObjectKey::cluster("v1", kind, name), existed }
    }

    #[test]
    fn what_would_restore_the_webhook_configurations_goes_first_and_namespaces_last() {
        let of = |kind, name| stage(&entry(kind, name, false), OWN, Data::Purge).unwrap();
        let order = [
            of("ClusterRoleBinding", configuration::NAME),
            of("Deployment", webhook::NAME),
            of("AdmissionPolicy", "even-quorum"),
            of("ClusterRole", webhook::NAME),
            of("CustomResourceDefinition", "managers.tf.tungsten.io"),
            of("Namespace", "tf"),
        ];
        assert!(order.is_sorted() && order[0] == Stage::Writer && order[5] == Stage::Namespaces);
    }

    #[test]
    fn a_finalizer_of_others_holds_and_one_of_ours_or_of_kubernetes_does_not() {
        let held = |finalizers: &[&str]| {
            is_held_by_others(&json!({"metadata": {"finalizers": finalizers}}))
        };
        assert!(held(&["example.com/hold"]) && held(&["opensdn.io/cloud", "hold"]));
        assert!(held(&["tf.tungsten.io/mine"]), "our operator knows no such one");
        assert!(!held(&["opensdn.io/cloud", "foregroundDeletion"]) && !held(&[]));
        let left = |finalizers: &[&str]| {
            is_left_to_others(&json!({"metadata": {"finalizers": finalizers}}))
        };
        assert!(left(&["hold"]), "nothing of ours waits for it");
        assert!(
            !left(&["opensdn.io/cloud", "hold"]),
            "the operator has to release its cloud first"
        );
        assert!(!left(&[]), "it will be gone");
    }

    #[test]
    fn data_is_kept_unless_it_is_purged_and_what_existed_always() {
        for kind in ["CustomResourceDefinition", "Namespace"] {
            assert_eq!(
                stage(&entry(kind, "tf", false), OWN, Data::Keep),
                Err(Kept::Data),
                "{kind}"
            );
        }
        for data in [Data::Keep, Data::Purge] {
            assert_eq!(stage(&entry("Namespace", "mine", true), OWN, data), Err(Kept::Existed));
        }
        assert_eq!(
            stage(&entry("Namespace", "opensdn-system", false), OWN, Data::Keep),
            Ok(Stage::Namespaces)
        );
    }
}
