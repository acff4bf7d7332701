//! The nodes on which a component runs, with what policies ask of them.

use std::collections::BTreeMap;

use opensdn_policy_components::nodes::{CONTROL_PLANE, Selector, matches};
use opensdn_policy_sdk::{Failure, Index};

use crate::quantity;

/// By the value of any of their labels, as in even-quorum; here with what they have.
pub(crate) const RESOURCES: Index = Index {
    name: "resources-of-nodes-by-label-value",
    group: "",
    kind: "Node",
    key: "/metadata/labels/*",
    reads: &["/metadata/labels", "/status/allocatable", "/status/nodeInfo/osImage"],
};

/// Every node has it; kubelet sets it.
const SYSTEM: (&str, &str) = ("kubernetes.io/os", "linux");
/// A node with what can be asked of it: `hugepages-2Mi`, `cpu`, `memory`.
pub(crate) struct Node {
    pub(crate) name: String,
    allocatable: BTreeMap<String, String>,
    /// As kubelet reads it in /etc/os-release: `Ubuntu 22.04.5 LTS`.
    pub(crate) system: String,
}

impl Node {
    /// So much of it that can be asked for; none where the node does not say.
    pub(crate) fn has(&self, resource: &str) -> Option<f64> {
        quantity::parse(self.allocatable.get(resource)?)
    }
}

fn nodes_with(selector: &Selector) -> Result<Vec<Node>, Failure> {
    let value = selector.values().max_by_key(|value| value.len()).map_or("", String::as_str);
    let mut nodes = Vec::new();
    for found in RESOURCES.find(value)? {
        if matches(&found.part::<Selector>(0)?.unwrap_or_default(), selector) {
            let allocatable = found.part(1)?.unwrap_or_default();
            let system = found.part(2)?.unwrap_or_default();
            nodes.push(Node { name: found.name().to_owned(), allocatable, system });
        }
    }
    Ok(nodes)
}

/// The nodes that a component runs on: without a selector vrouters on all, others on the control plane.
pub(crate) fn nodes_of(kind: &str, selector: Option<&Selector>) -> Result<Vec<Node>, Failure> {
    let marked = |key: &str, value: &str| Selector::from([(key.to_owned(), value.to_owned())]);
    match selector {
        Some(selector) => nodes_with(selector),
        None if kind == "Vrouter" => nodes_with(&marked(SYSTEM.0, SYSTEM.1)),
        None => {
            let mut nodes: Vec<Node> = Vec::new();
            for label in CONTROL_PLANE {
                for node in nodes_with(&marked(label, ""))? {
                    if nodes.iter().all(|other| other.name != node.name) {
                        nodes.push(node);
                    }
                }
            }
            Ok(nodes)
        }
    }
}
