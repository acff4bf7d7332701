//! The nodes that a node selector matches. What their number means is not decided here.

use std::collections::BTreeMap;

use opensdn_policy_sdk::{Failure, Index};

/// Labels that a node must have, with their values.
pub(crate) type Selector = BTreeMap<String, String>;

/// Nodes by the value of any of their labels: the host answers with those that have the value
/// somewhere, and only these are compared with the whole selector.
pub(crate) const NODES: Index = Index {
    name: "nodes-by-label-value",
    group: "",
    kind: "Node",
    key: "/metadata/labels/*",
    reads: &["/metadata/labels"],
};

/// Either of them marks a node of the control plane; kubeadm sets only the first since 1.24.
const CONTROL_PLANE: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// The names of the nodes that `selector` matches; without one, those of the control plane.
pub(crate) fn members(selector: Option<&Selector>) -> Result<Vec<String>, Failure> {
    // The longest value is the rarest one as a rule; the default's labels have the value "".
    let value = selector.and_then(|selector| selector.values().max_by_key(|value| value.len()));
    let mut names = Vec::new();
    for node in NODES.find(value.map_or("", String::as_str))? {
        let labels = node.part::<Selector>(0)?.unwrap_or_default();
        if matches(&labels, selector) {
            names.push(node.name().to_owned());
        }
    }
    Ok(names)
}

fn matches(labels: &Selector, selector: Option<&Selector>) -> bool {
    match selector {
        Some(selector) => selector.iter().all(|(key, value)| labels.get(key) == Some(value)),
        None => CONTROL_PLANE.iter().any(|key| labels.get(*key).is_some_and(String::is_empty)),
    }
}

/// The selector in words.
pub(crate) fn describe(selector: Option<&Selector>) -> String {
    match selector {
        Some(selector) => {
            let pairs: Vec<_> =
                selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("the label {}", pairs.join(" and "))
        }
        None => format!("the label {} (the default, as no nodeSelector is set)", CONTROL_PLANE[0]),
    }
}

/// The first few names.
pub(crate) fn list(names: &[String]) -> String {
    const SHOWN: usize = 6;
    let mut text = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Selector, describe, list, matches};

    fn labels(pairs: &[(&str, &str)]) -> Selector {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_node_needs_every_label_of_the_selector() {
        let node = labels(&[("rack", "a"), ("role", "db")]);
        assert!(matches(&node, Some(&labels(&[("rack", "a")]))));
        assert!(matches(&node, Some(&labels(&[("rack", "a"), ("role", "db")]))));
        assert!(!matches(&node, Some(&labels(&[("rack", "a"), ("role", "")]))));
    }

    #[test]
    fn the_default_is_either_label_of_the_control_plane() {
        assert!(matches(&labels(&[("node-role.kubernetes.io/control-plane", "")]), None));
        assert!(matches(&labels(&[("node-role.kubernetes.io/master", "")]), None));
        assert!(!matches(&labels(&[("rack", "")]), None));
    }

    #[test]
    fn describes_selectors_and_long_lists() {
        let selector = labels(&[("rack", "a"), ("role", "db")]);
        assert_eq!(describe(Some(&selector)), "the label rack=a and role=db");
        let names: Vec<_> = (0..8).map(|number| format!("n{number}")).collect();
        assert_eq!(list(&names), "n0, n1, n2, n3, n4, n5, …");
    }
}
