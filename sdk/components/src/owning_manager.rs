//! The Manager of whose service the operator makes an object. An ownerReference anybody can write; here it is looked up.
//!
//! What is stored as a Manager the operator makes objects of, whatever a policy would say of it today: to refuse these
//! fixes nothing and keeps the operator from repairing the cluster.

use opensdn_policy_sdk::{Failure, Index};
use serde::de::DeserializeOwned;

use crate::{Owners, Services};

/// Managers with their services. A policy that calls [`owning_manager`] lists it among its indexes.
pub const MANAGERS: Index = Index {
    name: "owning-managers",
    group: "tf.tungsten.io",
    kind: "Manager",
    key: "",
    reads: &["/spec/services"],
};

/// A Manager that is stored.
#[derive(Clone, Debug)]
pub struct OwningManager<S> {
    /// How a message names it: `Manager cluster1`.
    pub title: String,
    /// Its services.
    pub services: Services<S>,
}

/// The Manager that controls the object of that namespace, kind and name: it is stored with the UID of the reference,
/// and has such a service. `None` where one of this is not so.
///
/// # Errors
/// The cluster does not say, or the services are unreadable.
pub fn owning_manager<S: Default + DeserializeOwned>(
    owners: Option<&Owners>,
    (namespace, kind, name): (&str, &str, &str),
) -> Result<Option<OwningManager<S>>, Failure> {
    let Some(owner) = owners.and_then(Owners::manager) else { return Ok(None) };
    let Some(stored) = owner.stored(&MANAGERS, namespace)? else { return Ok(None) };
    let services = stored.part::<Option<Services<S>>>(0)?.flatten().unwrap_or_default();
    let nothing = S::default();
    let is_made = services
        .walk_all(&nothing)
        .any(|service| service.kind == kind && (service.name.is_empty() || service.name == name));
    Ok(is_made.then(|| OwningManager { title: format!("Manager {}", stored.name()), services }))
}
