//! Which object controls another, by its ownerReferences. A policy may exempt an object from a claim
//! because its owner makes it; so when the owner gives the claim up, the object is its heir.
//! Deliberately not here: which objects those are (`ledger.rs`), and whether they claim
//! (`controller`).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use opensdn_crds::unique_claim::Holder as StoredHolder;
use serde_json::Value;

use super::ledger::ObjectRef;

/// The one owner that controls an object. It is in the namespace of the object, or in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Owner {
    /// The owner that controls this object.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let references = object.pointer("/metadata/ownerReferences")?;
        let references: Vec<OwnerReference> = serde_json::from_value(references.clone()).ok()?;
        references.into_iter().find(|one| one.controller == Some(true)).map(Self::from)
    }

    /// As the holder of a claim, for an object in that namespace.
    pub(crate) fn held(&self, namespace: &str) -> StoredHolder {
        StoredHolder {
            group: self.group.clone(),
            version: Some(self.version.clone()),
            kind: self.kind.clone(),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name: self.name.clone(),
            uid: Some(self.uid.clone()),
            pointer: None,
        }
    }

    /// Where it is, if it has a namespace.
    pub(crate) fn object_ref(&self, namespace: &str) -> ObjectRef {
        ObjectRef::of(&self.held(namespace))
    }
}

impl From<OwnerReference> for Owner {
    fn from(reference: OwnerReference) -> Self {
        let OwnerReference { api_version, kind, name, uid, .. } = reference;
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind, name, uid }
    }
}

/// The UID of the owner that controls the object of these metadata.
pub(crate) fn controller_uid(metadata: &ObjectMeta) -> Option<&str> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|one| one.controller == Some(true)).map(|one| one.uid.as_str())
}

/// The object as if it had no owner.
pub(crate) fn without_owners(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("ownerReferences");
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_owner_is_the_one_that_controls() {
        let reference = |uid: &str, controller: Value| {
            json!({"apiVersion": "g/v1", "kind": "Manager", "name": "m", "uid": uid,
                "controller": controller})
        };
        let others = [reference("1", json!(false)), reference("2", Value::Null)];
        let object = |references: Value| json!({"metadata": {"ownerReferences": references}});
        let uid = |object: &Value| Owner::of(object).map(|owner| owner.uid);
        for none in [json!({}), object(json!([])), object(json!("?")), object(json!(others))] {
            assert_eq!(uid(&none), None, "{none}");
        }
        let [first, second] = others;
        let owned = object(json!([first, second, reference("3", json!(true))]));
        assert_eq!(uid(&owned).as_deref(), Some("3"));
        let held = Owner::of(&owned).unwrap().held("n");
        assert_eq!((held.group.as_str(), held.version.as_deref()), ("g", Some("v1")));
        assert_eq!(Owner::of(&without_owners(&owned)), None);
    }
}
