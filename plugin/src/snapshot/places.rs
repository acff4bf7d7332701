//! In which namespaces an installation is: by its inventory, where it may be read; else by the defaults.

use std::collections::BTreeSet;

use opensdn_deploy::{Values, names};
use serde_json::Value;

use super::Read;
use super::ask::Asker;
use crate::install::inventory::{self, Inventory};
use crate::install::object::is_member;

/// The namespaces of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// That of the webhook.
    pub(crate) webhook: String,
    /// That of the operator.
    pub(crate) operator: String,
    /// Those whose components the operator looks after.
    pub(crate) watched: Vec<String>,
}

impl Default for Places {
    fn default() -> Self {
        Self::without(names::NAMESPACE)
    }
}

impl Places {
    /// Of the installation whose webhook is in this namespace; of the only one that there is, where none is there.
    pub(crate) async fn of(asker: &Asker, control_namespace: &str) -> Self {
        let name = names::INVENTORY;
        let path = format!("/api/v1/namespaces/{control_namespace}/configmaps/{name}");
        if let Read::Known(stored) = asker.get(&path).await {
            return Self::said(&stored).unwrap_or_else(|| Self::without(control_namespace));
        }
        // Who has named a namespace is not shown another.
        if control_namespace != names::NAMESPACE {
            return Self::without(control_namespace);
        }
        let selector = inventory::selector().replace('=', "%3D");
        let all = asker.list(&format!("/api/v1/configmaps?labelSelector={selector}")).await;
        for one in all.items().iter().filter(|one| super::name(one) == name) {
            if is_labelled(asker, super::namespace(one)).await
                && let Some(places) = Self::said(one)
            {
                return places;
            }
        }
        Self::without(control_namespace)
    }

    /// The namespaces in which components of this installation are: those that are watched, and those of Managers. What
    /// has the labels of a component elsewhere, anybody may have made. None where Managers may not be read.
    pub(crate) fn of_components(&self, managers: &Read<Vec<Value>>) -> Option<BTreeSet<String>> {
        let managers = match managers {
            Read::Known(managers) => managers.as_slice(),
            Read::Absent => &[],
            Read::Unknown(_) => return None,
        };
        let of_managers = managers.iter().map(|one| super::namespace(one).to_owned());
        Some(of_managers.chain(self.watched.iter().cloned()).collect())
    }

    /// Whether a namespace is one of these, or may be.
    pub(crate) fn may_have_components(&self, managers: &Read<Vec<Value>>, namespace: &str) -> bool {
        managers.why_unknown().is_some()
            || managers.items().iter().any(|one| super::namespace(one) == namespace)
            || self.watched.iter().any(|one| one == namespace)
    }

    fn said(stored: &Value) -> Option<Self> {
        let inventory = Inventory::read(stored).ok()?;
        Some(Self::by(inventory.namespace, inventory.values))
    }

    /// By the defaults, but for the namespace of the webhook.
    fn without(control_namespace: &str) -> Self {
        Self::by(control_namespace.to_owned(), Values::default())
    }

    /// Of an installation with these values.
    pub(crate) fn by(webhook: String, values: Values) -> Self {
        let operator = values.operator;
        Self { webhook, operator: operator.namespace, watched: operator.watched_namespaces }
    }
}

/// Whether the namespace has the label of the installation in it. Who may write a ConfigMap there, and so an inventory,
/// may not write that.
async fn is_labelled(asker: &Asker, namespace: &str) -> bool {
    let stored = asker.get(&format!("/api/v1/namespaces/{namespace}")).await;
    stored.known().is_some_and(|stored| is_member(stored, &inventory::installation(namespace)))
}
