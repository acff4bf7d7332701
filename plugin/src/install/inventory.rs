//! What is installed, with which values, and what was there before: a ConfigMap in the namespace of the webhook, written
//! before anything else, so that an installation that is interrupted is known. Pure.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use opensdn_deploy::Values;
use opensdn_deploy::names::{INVENTORY, MANAGED_BY_LABEL};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::object::{MANAGER, ObjectKey};

/// The label of the object itself, after KEP-3659.
const ID: &str = "applyset.kubernetes.io/id";
/// When a removal that is at work has last said so.
pub(crate) const REMOVAL_SEEN: &str = "removalSeenAt";
/// This program's version, which is that of what it installs.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How far the installation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Some objects may be missing.
    Installing,
    /// All objects were applied.
    Applied,
    /// A removal is at work, or was interrupted.
    Removing,
}

impl Progress {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Installing => "installing",
            Self::Applied => "applied",
            Self::Removing => "removing",
        }
    }
}

/// An object of the installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// What it is called.
    #[serde(flatten)]
    pub(crate) key: ObjectKey,
    /// Whether it was there before and not ours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) existed: bool,
}

/// What is installed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inventory {
    /// The namespace of the webhook.
    pub(crate) namespace: String,
    /// The version of what is installed.
    pub(crate) version: String,
    /// The values it was installed with.
    pub(crate) values: Values,
    /// How far it has come.
    pub(crate) progress: Progress,
    /// Its objects, by key.
    pub(crate) entries: Vec<Entry>,
}

/// Why the ConfigMap says nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InventoryError {
    /// A key of it is missing.
    #[error("it has no `{0}`")]
    Missing(&'static str),
    /// A key of it cannot be read.
    #[error("its `{0}` cannot be read, perhaps as it is of a newer version")]
    Unreadable(&'static str, #[source] serde_json::Error),
}

/// By which label members of the installation in this namespace are known.
pub(crate) fn installation(namespace: &str) -> String {
    let hash = Sha256::digest(format!("{INVENTORY}.{namespace}.ConfigMap."));
    format!("applyset-{}-v1", BASE64_URL_SAFE_NO_PAD.encode(hash))
}

/// What the ConfigMap in this namespace is called.
pub(crate) fn key(namespace: &str) -> ObjectKey {
    ObjectKey::within(namespace, "v1", "ConfigMap", INVENTORY)
}

/// By which label an inventory is found in whatever namespace it is.
pub(crate) fn selector() -> String {
    format!("{MANAGED_BY_LABEL}={MANAGER},{ID}")
}

impl Inventory {
    /// Of a stored ConfigMap.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn read(stored: &Value) -> Result<Self, InventoryError> {
        let data = |name: &'static str| {
            let text = stored.get("data").and_then(|data| data.get(name)).and_then(Value::as_str);
            text.ok_or(InventoryError::Missing(name))
        };
        let unreadable = |name| move |error| InventoryError::Unreadable(name, error);
        let progress = match data("state")? {
            "applied" => Progress::Applied,
            "removing" => Progress::Removing,
            _ => Progress::Installing,
        };
        Ok(Self {
            namespace: ObjectKey::of(stored).namespace.unwrap_or_default(),
            version: data("version")?.to_owned(),
            values: serde_json::from_str(data("values")?).map_err(unreadable("values"))?,
            progress,
            entries: serde_json::from_str(data("objects")?).map_err(unreadable("objects"))?,
        })
    }

    /// As it is applied. Values have no secrets: their type has no place for one.
    pub(crate) fn object(&self) -> Value {
        let kinds: BTreeSet<String> =
            self.entries.iter().map(|entry| group_kind(&entry.key)).collect();
        let namespaces = self.entries.iter().filter_map(|entry| entry.key.namespace.as_deref());
        let others: BTreeSet<&str> = namespaces.filter(|one| *one != self.namespace).collect();
        let text = |value: Result<String, serde_json::Error>| value.unwrap_or_default();
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": INVENTORY,
                "namespace": self.namespace,
                "labels": {ID: installation(&self.namespace), MANAGED_BY_LABEL: MANAGER},
                "annotations": {
                    "applyset.kubernetes.io/tooling": format!("{MANAGER}/{VERSION}"),
                    "applyset.kubernetes.io/contains-group-kinds": Vec::from_iter(kinds).join(","),
                    "applyset.kubernetes.io/additional-namespaces": Vec::from_iter(others).join(","),
                },
            },
            "data": {
                "version": self.version,
                "state": self.progress.word(),
                "values": text(serde_json::to_string_pretty(&self.values)),
                "objects": text(serde_json::to_string(&self.entries)),
            },
        })
    }

    /// With what is installed now: entries of before stay until they are pruned, as they say what is ours.
    pub(crate) fn merged(self, before: Option<&Self>) -> Self {
        let mut entries: BTreeMap<ObjectKey, Entry> = BTreeMap::new();
        let before = before.into_iter().flat_map(|before| before.entries.iter().cloned());
        // What was known of an object before holds: by now it is ours.
        for entry in self.entries.into_iter().chain(before) {
            entries.insert(entry.key.clone(), entry);
        }
        Self { entries: entries.into_values().collect(), ..self }
    }

    /// Entries that are not among these objects.
    pub(crate) fn obsolete(&self, wanted: &BTreeSet<ObjectKey>) -> Vec<Entry> {
        self.entries.iter().filter(|entry| !wanted.contains(&entry.key)).cloned().collect()
    }
}

fn group_kind(key: &ObjectKey) -> String {
    match key.group() {
        "" => key.kind.clone(),
        group => format!("{}.{group}", key.kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(names: &[(&str, bool)]) -> Inventory {
        let entry = |(name, existed): &(&str, bool)| Entry {
            key: ObjectKey::cluster("v1", "Namespace", name),
            existed: *existed,
        };
        Inventory {
            namespace: "here".to_owned(),
            version: VERSION.to_owned(),
            values: Values::default(),
            progress: Progress::Installing,
            entries: names.iter().map(entry).collect(),
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let written = inventory(&[("a", true), ("b", false)]);
        assert_eq!(Inventory::read(&written.object()).unwrap(), written);
        assert!(matches!(Inventory::read(&json!({})), Err(InventoryError::Missing(_))));
    }

    /// Else what a user had before would count as ours after the first run, and be deleted with the rest.
    #[test]
    fn what_existed_before_the_first_run_is_known_after_the_second() {
        let merged = inventory(&[("a", false), ("c", false)])
            .merged(Some(&inventory(&[("a", true), ("b", false)])));
        let found: Vec<(&str, bool)> =
            merged.entries.iter().map(|one| (one.key.name.as_str(), one.existed)).collect();
        assert_eq!(found, [("a", true), ("b", false), ("c", false)]);
        let wanted = BTreeSet::from([
            ObjectKey::cluster("v1", "Namespace", "a"),
            ObjectKey::cluster("v1", "Namespace", "c"),
        ]);
        assert_eq!(merged.obsolete(&wanted).len(), 1);
    }

    /// As `kubectl apply --applyset` computes it, so that tools recognise the members.
    #[test]
    fn the_installation_is_named_after_the_inventory() {
        let id = installation("opensdn-system");
        assert!(id.starts_with("applyset-") && id.ends_with("-v1") && id.len() < 64, "{id}");
        assert_ne!(id, installation("other"));
    }
}
