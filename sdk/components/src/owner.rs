//! Whether the operator made an object of a Manager's service.

use opensdn_policy_sdk::{Failure, Found, Index};
use serde::Deserialize;

/// `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Owners(Vec<Owner>);

/// One owner reference.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    api_version: String,
    kind: String,
    /// Name of the owner; it is in the namespace of the object.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
    #[serde(default)]
    controller: bool,
}

impl Owner {
    /// The owner as the index has it, if that is the one: it is stored in the namespace with the UID of the reference.
    ///
    /// # Errors
    /// The cluster does not say.
    pub fn stored(&self, index: &Index, namespace: &str) -> Result<Option<Found>, Failure> {
        let found = index.get(namespace, &self.name)?;
        Ok(found.filter(|found| found.uid() == self.uid))
    }
}

impl Owners {
    /// The Manager whose service the object says to be. A user can write this reference too: what
    /// must hold against ill will looks the Manager up, by [`Owner::stored`].
    #[must_use]
    pub fn manager(&self) -> Option<&Owner> {
        self.0.iter().find(|owner| {
            owner.controller
                && owner.kind == "Manager"
                && owner.api_version.starts_with("tf.tungsten.io/")
        })
    }

    /// Whether the object was made of the component of that kind and name.
    #[must_use]
    pub fn has_component(&self, kind: &str, name: &str) -> bool {
        let is_it = |owner: &Owner| (owner.kind.as_str(), owner.name.as_str()) == (kind, name);
        self.0.iter().any(|owner| is_it(owner) && owner.api_version.starts_with("tf.tungsten.io/"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Owners;

    fn manager_of(references: serde_json::Value) -> Option<String> {
        let owners: Owners = serde_json::from_value(references).unwrap();
        owners.manager().map(|owner| owner.name.clone())
    }

    #[test]
    fn finds_the_controlling_manager_only() {
        let owner = |api: &str, kind: &str, controller: bool| {
            json!([{"apiVersion": api, "kind": kind, "name": "a", "uid": "1",
                    "controller": controller}])
        };
        let ours = "tf.tungsten.io/v1alpha1";
        assert_eq!(manager_of(owner(ours, "Manager", true)), Some("a".to_owned()));
        assert_eq!(manager_of(owner(ours, "Manager", false)), None);
        assert_eq!(manager_of(owner(ours, "Config", true)), None);
        assert_eq!(manager_of(owner("v1", "Manager", true)), None);
        assert_eq!(manager_of(json!([])), None);
    }
}
