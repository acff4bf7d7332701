//! What is read of a cluster for its status.

use std::collections::BTreeMap;

use serde_json::Value;

use super::denied::Denied;
use crate::snapshot::places::Places;
use crate::snapshot::{Read, name, text};

/// The cluster as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    /// Where the installation is.
    pub(crate) places: Places,
    /// Managers, with what the operator says of each of their services.
    pub(crate) managers: Read<Vec<Value>>,
    /// Pods of components.
    pub(crate) pods: Read<Vec<Value>>,
    /// What runs them.
    pub(crate) stateful_sets: Read<Vec<Value>>,
    /// What runs those that are on all nodes.
    pub(crate) daemon_sets: Read<Vec<Value>>,
    /// All nodes.
    pub(crate) nodes: Read<Vec<Value>>,
    /// AdmissionPolicies.
    pub(crate) policies: Read<Vec<Value>>,
    /// Secrets that the operator has made.
    pub(crate) secrets: Read<Vec<Value>>,
    /// The operator's Deployment.
    pub(crate) operator: Read<Value>,
    /// Upstream's, in the namespaces of Managers.
    pub(crate) tf_operators: Vec<Value>,
    /// The Lease of the operator that acts.
    pub(crate) lease: Read<Value>,
    /// The webhook's Deployment.
    pub(crate) webhook: Read<Value>,
    /// The Lease of the replica of the webhook that leads.
    pub(crate) webhook_lease: Read<Value>,
    /// By what API servers ask the webhook.
    pub(crate) reviews: Read<Value>,
    /// That of the process that writes the webhook configurations.
    pub(crate) configuration: Read<Value>,
    /// What the webhook has denied.
    pub(crate) denied: Denied,
    /// Objects of components by kind, where they were asked for.
    pub(crate) alone: BTreeMap<&'static str, Read<Vec<Value>>>,
    /// Kinds of components of which objects may be there that were not asked for.
    pub(crate) not_listed: Vec<&'static str>,
}

impl World {
    /// Whether there is no node of that name, and no pod that is still said to be on one.
    pub(crate) fn lacks_node(&self, node: &str) -> bool {
        let Read::Known(nodes) = &self.nodes else { return false };
        let mut pods = self.pods.items().iter();
        !nodes.iter().any(|one| name(one) == node)
            && !pods.any(|pod| text(pod, "/spec/nodeName") == node)
    }
}
