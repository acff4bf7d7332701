//! What is removed of an installation, and in which order: first what could block the rest or would restore it, last
//! what says what is installed. Pure.

use opensdn_deploy::names::{MANAGED_BY_LABEL, configuration, webhook};
use serde_json::Value;

use super::inventory::Entry;
use super::object::ObjectKey;

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
}

/// When an object is removed, or why it is not.
pub(crate) fn stage(entry: &Entry, watched: &[String], data: Data) -> Result<Stage, Kept> {
    let ObjectKey { kind, name, .. } = &entry.key;
    match kind.as_str() {
        "Namespace" if entry.existed => Err(Kept::Existed),
        "Namespace" if watched.contains(name) && data == Data::Keep => Err(Kept::Data),
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

/// Whether a stored object was written by our own pods.
pub(crate) fn is_of_webhook(stored: &Value) -> bool {
    let labels = stored.pointer("/metadata/labels");
    labels.and_then(|labels| labels.get(MANAGED_BY_LABEL)).and_then(Value::as_str)
        == Some(webhook::NAME)
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
    use super::*;

    fn entry(kind: &str, name: &str, existed: bool) -> Entry {
        Entry { key: ObjectKey::cluster("v1", kind, name), existed }
    }

    #[test]
    fn what_would_restore_the_webhook_configurations_goes_first_and_namespaces_last() {
        let watched = ["tf".to_owned()];
        let of = |kind, name| stage(&entry(kind, name, false), &watched, Data::Purge).unwrap();
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
    fn data_is_kept_unless_it_is_purged_and_what_existed_always() {
        let watched = ["tf".to_owned()];
        for kind in ["CustomResourceDefinition", "Namespace"] {
            assert_eq!(
                stage(&entry(kind, "tf", false), &watched, Data::Keep),
                Err(Kept::Data),
                "{kind}"
            );
        }
        for data in [Data::Keep, Data::Purge] {
            assert_eq!(
                stage(&entry("Namespace", "mine", true), &watched, data),
                Err(Kept::Existed)
            );
        }
        assert_eq!(
            stage(&entry("Namespace", "opensdn-system", false), &watched, Data::Keep),
            Ok(Stage::Namespaces)
        );
    }
}
