//! Nodes, as the operator sees them, and which of them a component runs on.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::Toleration;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::kind::Workload;
use crate::names::{ADDRESSES, DRAINED_FOR};
use crate::network::is_address;
use crate::object::{condition, list, text};

/// Either of them marks a node of the control plane; kubeadm sets only the first since 1.24.
pub const CONTROL_PLANE: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// Taints of `node.kubernetes.io` that Kubernetes sets and takes away (`pkg/apis/core/well_known_taints.go`). `out-of-service` a person sets.
const OF_CONDITIONS: [&str; 7] = [
    "not-ready",
    "unreachable",
    "unschedulable",
    "memory-pressure",
    "disk-pressure",
    "pid-pressure",
    "network-unavailable",
];

/// Either of them names the zone of a node; Kubernetes sets only the first since 1.21.
const ZONE: [&str; 2] = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];

/// What matters of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The address of pods on its network.
    pub address: Option<String>,
    /// Its others.
    pub others: Vec<String>,
    /// The Upgrade for which a user has drained it, as long as it is cordoned.
    pub drained_for: Option<String>,
    /// Whether its kubelet does not answer, or says that it cannot run pods.
    pub is_lost: bool,
    /// What keeps pods away that do not tolerate it.
    pub taints: Vec<Taint>,
}

/// A taint that keeps pods away, and is not one that Kubernetes sets and takes away by what a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    key: String,
    value: String,
    effect: String,
}

impl Taint {
    /// That of a node that is not ready, which a new one is until it has its network.
    #[must_use]
    pub fn not_ready() -> Self {
        let key = "node.kubernetes.io/not-ready".to_owned();
        Self { key, value: String::new(), effect: "NoSchedule".to_owned() }
    }

    /// What tolerates it whatever its value is.
    #[must_use]
    pub fn toleration(&self) -> Toleration {
        Toleration {
            key: Some(self.key.clone()),
            effect: Some(self.effect.clone()),
            operator: Some("Exists".to_owned()),
            ..Toleration::default()
        }
    }

    /// As the API server has it.
    fn of(taint: &Value) -> Option<Self> {
        let [key, value, effect] =
            ["/key", "/value", "/effect"].map(|pointer| text(taint, pointer).to_owned());
        let comes_and_goes =
            key.strip_prefix("node.kubernetes.io/").is_some_and(|of| OF_CONDITIONS.contains(&of));
        let keeps_away = ["NoSchedule", "NoExecute"].contains(&effect.as_str());
        (keeps_away && !comes_and_goes).then_some(Self { key, value, effect })
    }

    /// Whether a pod with these tolerations may come there.
    #[must_use]
    pub fn is_tolerated(&self, by: &[Toleration]) -> bool {
        let is = |given: &Option<String>, own: &str| {
            given.as_deref().is_none_or(|given| given.is_empty() || given == own)
        };
        by.iter().any(|one| {
            let exists = one.operator.as_deref() == Some("Exists");
            let fits = exists || one.value.as_deref().unwrap_or_default() == self.value;
            is(&one.effect, &self.effect) && is(&one.key, &self.key) && fits
        })
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{value}{}:{}", self.key, self.value, self.effect)
    }
}

impl Node {
    /// Whether it has these labels.
    #[must_use]
    pub fn has(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.iter().all(|(key, value)| self.labels.get(key) == Some(value))
    }

    /// Whether it is of the control plane.
    #[must_use]
    pub fn is_of_control_plane(&self) -> bool {
        CONTROL_PLANE.iter().any(|label| self.labels.contains_key(*label))
    }

    /// What fails together with it, as its labels say.
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        ZONE.iter().find_map(|label| self.labels.get(*label)).map(String::as_str)
    }

    /// As the API server has it.
    #[must_use]
    pub fn of(node: &DynamicObject) -> Self {
        let mut internal = list(&node.data, "/status/addresses")
            .filter(|address| text(address, "/type") == "InternalIP")
            .map(|address| text(address, "/address"))
            // It becomes a name in a certificate.
            .filter(|address| is_address(address));
        let address = internal.next().map(str::to_owned);
        let told = node.annotations().get(ADDRESSES).into_iter().flat_map(|told| told.split(','));
        let others = internal.chain(told.map(str::trim)).map(str::to_owned).collect();
        let ready = condition(node, "Ready");
        let is_lost = ready.is_some_and(|ready| text(ready, "/status") != "True");
        let is_cordoned = node.data.pointer("/spec/unschedulable") == Some(&true.into());
        let drained_for = node.annotations().get(DRAINED_FOR).filter(|_| is_cordoned).cloned();
        Self {
            name: node.name_any(),
            labels: node.labels().clone(),
            address,
            others,
            drained_for,
            is_lost,
            taints: list(&node.data, "/spec/taints").filter_map(Taint::of).collect(),
        }
    }
}

/// The addresses of these nodes, in order.
pub(crate) fn addresses_of(nodes: &[Node]) -> Vec<String> {
    let mut all: Vec<_> = nodes.iter().filter_map(|node| node.address.clone()).collect();
    all.sort_unstable();
    all
}

/// The nodes with these labels; without a selector those that have a pod of such a workload then.
#[must_use]
pub fn nodes_of(
    nodes: &[Node],
    selector: Option<&BTreeMap<String, String>>,
    workload: Workload,
) -> Vec<Node> {
    let selector = selector.filter(|selector| !selector.is_empty());
    let wanted = |node: &&Node| match (selector, workload) {
        (Some(selector), _) => node.has(selector),
        (None, Workload::StatefulSet) => node.is_of_control_plane(),
        (None, Workload::DaemonSet) => true,
    };
    nodes.iter().filter(wanted).cloned().collect()
}
