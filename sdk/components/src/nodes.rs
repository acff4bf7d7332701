//! The nodes that a node selector matches. What their number means is the policy's business.

use std::collections::BTreeMap;

use opensdn_policy_sdk::{Failure, Index};

/// Labels that a node must have, with their values.
pub type Selector = BTreeMap<String, String>;

/// Nodes by the value of any of their labels: the host answers with those that have the value
/// somewhere, and only these are compared with the whole selector. A policy that calls
/// [`nodes_with`] lists it among its indexes.
pub const NODES: Index = Index {
    name: "nodes-by-label-value",
    group: "",
    kind: "Node",
    key: "/metadata/labels/*",
    reads: &["/metadata/labels"],
};

/// A node with its labels.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Selector,
}

/// Whether a node with these labels is one that the selector means.
#[must_use]
pub fn matches(labels: &Selector, selector: &Selector) -> bool {
    selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// The nodes that have all labels of the selector, which has one at least.
///
/// # Errors
/// The cluster does not say.
pub fn nodes_with(selector: &Selector) -> Result<Vec<Node>, Failure> {
    // The longest value is the rarest one as a rule.
    let value = selector.values().max_by_key(|value| value.len()).map_or("", String::as_str);
    let mut nodes = Vec::new();
    for found in NODES.find(value)? {
        let labels = found.part::<Selector>(0)?.unwrap_or_default();
        if matches(&labels, selector) {
            nodes.push(Node { name: found.name().to_owned(), labels });
        }
    }
    Ok(nodes)
}

/// Either of them marks a node of the control plane; kubeadm sets only the first since 1.24.
pub const CONTROL_PLANE: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// The names of the nodes on which a service runs; without a selector, those of the control plane.
///
/// # Errors
/// The cluster does not say.
pub fn selected(selector: Option<&Selector>) -> Result<Vec<String>, Failure> {
    if let Some(selector) = selector {
        return Ok(nodes_with(selector)?.into_iter().map(|node| node.name).collect());
    }
    let mut names = Vec::new();
    for label in CONTROL_PLANE {
        let marked = Selector::from([(label.to_owned(), String::new())]);
        for node in nodes_with(&marked)? {
            if !names.contains(&node.name) {
                names.push(node.name);
            }
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The first few names, for a message.
#[must_use]
pub fn few<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 6;
    let more = if names.len() > SHOWN { ", …" } else { "" };
    let shown: Vec<&str> = names.take(SHOWN).collect();
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{Selector, few, matches};

    #[test]
    fn of_many_names_the_first_six_are_shown() {
        let names: Vec<_> = (0..8).map(|number| format!("n{number}")).collect();
        let shown = |names: &[String]| few(names.iter().map(String::as_str));
        assert_eq!(shown(&names), "n0, n1, n2, n3, n4, n5, …");
        assert_eq!(shown(names.get(..6).unwrap_or_default()), "n0, n1, n2, n3, n4, n5");
    }

    fn labels(pairs: &[(&str, &str)]) -> Selector {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_node_needs_every_label_of_the_selector() {
        let node = labels(&[("rack", "a"), ("role", "db")]);
        assert!(matches(&node, &labels(&[("rack", "a")])));
        assert!(matches(&node, &labels(&[("rack", "a"), ("role", "db")])));
        assert!(!matches(&node, &labels(&[("rack", "a"), ("role", "")])));
    }
}
