//! What is kept of an object's metadata. The API server bounds it by the size of the whole alone: names of owners, labels and
//! finalizers may fill a megabyte, and a tenant who may make objects of one kind must not fill the memory of the process that
//! looks after all.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::kind::Kind;
use crate::names::{ALLOW, LEAVE_BEHIND, PAUSED};

/// The longest name that an object can have, in bytes.
const LONGEST_NAME: usize = 253;
/// More than an annotation of a tenant's object needs, or all finalizers of one, in bytes.
const MOST: usize = 4 << 10;
/// More than the labels of any object need together, in bytes.
const MOST_OF_LABELS: usize = 32 << 10;

/// Leaves out what is not read, and what is far larger than anything that is.
pub(crate) fn bound(kind: Kind, metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    metadata.owner_references = owner(metadata.owner_references.take());
    let finalizers = metadata.finalizers.take();
    metadata.finalizers =
        finalizers.filter(|all| all.iter().map(String::len).sum::<usize>() <= MOST);
    let labels = metadata.labels.take();
    metadata.labels = labels.filter(|all| !is_of_tenants(kind) && length(all) <= MOST_OF_LABELS);
    if is_of_tenants(kind) {
        // An Upgrade is not paused, but its Manager.
        let is_read =
            |key: &str| kind != Kind::Upgrade && [ALLOW, LEAVE_BEHIND, PAUSED].contains(&key);
        let mut annotations = metadata.annotations.take().unwrap_or_default();
        annotations.retain(|key, value| is_read(key) && value.len() <= MOST);
        metadata.annotations = (!annotations.is_empty()).then_some(annotations);
    }
}

/// What others than administrators may make (the threat model's *tenant*).
fn is_of_tenants(kind: Kind) -> bool {
    matches!(kind, Kind::NestedCluster | Kind::LinkLocalService | Kind::Upgrade)
}

/// The controller of an object, or its first owner.
fn owner(owners: Option<Vec<OwnerReference>>) -> Option<Vec<OwnerReference>> {
    let mut owners = owners?;
    owners.retain(|owner| {
        [&owner.api_version, &owner.kind, &owner.name, &owner.uid]
            .iter()
            .all(|text| text.len() <= LONGEST_NAME)
    });
    let of_controller = owners.iter().position(|owner| owner.controller == Some(true));
    owners.into_iter().nth(of_controller.unwrap_or(0)).map(|owner| vec![owner])
}

fn length(all: &BTreeMap<String, String>) -> usize {
    all.iter().map(|(key, value)| key.len() + value.len()).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bounded(kind: Kind, metadata: serde_json::Value) -> ObjectMeta {
        let mut metadata = serde_json::from_value(metadata).unwrap();
        bound(kind, &mut metadata);
        metadata
    }

    fn huge(kind: Kind) -> ObjectMeta {
        let long = "x".repeat(1 << 20);
        let many: BTreeMap<String, String> =
            (0..10_000).map(|number| (format!("example.com/a{number}"), "y".repeat(60))).collect();
        let owner = |number: usize| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "uid": "u",
            "name": if number == 0 { long.clone() } else { format!("o{number}") }})
        };
        bounded(
            kind,
            json!({"name": "a", "namespace": "b", "uid": "c", "labels": many,
                "annotations": {PAUSED: "true", ALLOW: long, "example.com/x": long},
                "managedFields": [{"manager": long}], "finalizers": [long],
                "ownerReferences": (0..5_000).map(owner).collect::<Vec<_>>()}),
        )
    }

    #[test]
    fn what_a_tenant_makes_takes_little_memory_whatever_is_in_its_metadata() {
        for kind in [Kind::NestedCluster, Kind::LinkLocalService, Kind::Upgrade] {
            let kept = serde_json::to_string(&huge(kind)).unwrap();
            assert!(kept.len() < 1024, "{kind:?}: {} bytes", kept.len());
            assert_eq!(kept.contains(PAUSED), kind != Kind::Upgrade, "{kept}");
        }
        let kept = huge(Kind::ConfigMap);
        assert_eq!((&kept.labels, &kept.finalizers, &kept.managed_fields), (&None, &None, &None));
        assert_eq!(kept.owner_references.unwrap().len(), 1);
    }

    #[test]
    fn what_is_read_stays() {
        let metadata = json!({"name": "a", "labels": {"tf_manager": "redis"},
            "annotations": {"opensdn.io/applied": "1", "example.com/y": "2"},
            "finalizers": ["b/c", "opensdn.io/cloud"],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"},
                {"apiVersion": "v1", "kind": "Redis", "name": "r", "uid": "2", "controller": true}]});
        let kept = bounded(Kind::StatefulSet, metadata.clone());
        let kept = serde_json::to_value(&kept).unwrap();
        for part in ["labels", "annotations", "finalizers"] {
            assert_eq!(kept[part], metadata[part], "{part}");
        }
        assert_eq!(kept["ownerReferences"], json!([metadata["ownerReferences"][1]]));
        let without_controller =
            json!({"name": "a", "ownerReferences": [metadata["ownerReferences"][0]]});
        let kept = bounded(Kind::PersistentVolumeClaim, without_controller.clone());
        assert_eq!(serde_json::to_value(&kept).unwrap(), without_controller);
    }
}
