//! Nodes that a user drains before their vrouters are replaced: whoever drains has the right to evict pods of others, which
//! the operator has not.

use std::collections::BTreeSet;

use opensdn_crds::upgrade::ImageChange;

use crate::health::{Pod, Service, Side};

/// Annotation of a node that is drained, with the namespace and name of the Upgrade for which: `tf/to-r25-1`. It counts as long as the
/// node is cordoned.
pub const ANNOTATION: &str = "opensdn.io/drained-for";
/// As many nodes are named.
const MOST: usize = 4;

/// What a person has to do before another pod is replaced. Nothing, where one can be, or is, or all are.
#[must_use]
pub fn waits(
    service: &Service,
    images: &[ImageChange],
    upgrade: &str,
    drained: &BTreeSet<String>,
) -> Option<String> {
    let is_drained = |pod: &&Pod| pod.node.as_ref().is_some_and(|node| drained.contains(node));
    let (new, old): (Vec<_>, Vec<_>) =
        service.pods.iter().partition(|pod| pod.has(images, Side::New));
    if old.is_empty() || old.iter().any(&is_drained) {
        return None;
    }
    // What is the matter with it is to be said, and has its time.
    if new.iter().any(|pod| !pod.is_ready) {
        return None;
    }
    let done: Vec<&Pod> = new.into_iter().filter(is_drained).collect();
    let done = match done.is_empty() {
        true => String::new(),
        false => format!(
            "done, kubectl annotate node NODE {ANNOTATION}- && kubectl uncordon NODE: {}; ",
            nodes(&done)
        ),
    };
    Some(format!(
        "{done}waits for a node to be drained: kubectl drain NODE --ignore-daemonsets --pod-selector='!tf_manager' && kubectl \
         annotate --overwrite node NODE {ANNOTATION}={upgrade}; left: {}",
        nodes(&old)
    ))
}

fn nodes(pods: &[&Pod]) -> String {
    let mut names: Vec<&str> = pods.iter().filter_map(|pod| pod.node.as_deref()).collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(MOST);
    names.truncate(MOST);
    let names = names.join(", ");
    if more > 0 { format!("{names} and {more} more") } else { names }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pods on nodes of these names, whose letters are `n` for the new images, `o` for the old ones; `-` is not ready.
    fn said(pods: &[&str], drained: &[&str]) -> Option<String> {
        let images = [ImageChange {
            container: "agent".to_owned(),
            from: "a:o".to_owned(),
            to: "a:n".to_owned(),
        }];
        let pod = |node: &&str| Pod {
            node: Some((*node).to_owned()),
            images: [("agent".to_owned(), format!("a:{}", &node[..1]))].into(),
            is_ready: !node.ends_with('-'),
            ..Pod::default()
        };
        let service = Service { pods: pods.iter().map(pod).collect(), ..Service::default() };
        let drained = drained.iter().map(|node| (*node).to_owned()).collect();
        waits(&service, &images, "tf/up", &drained)
    }

    #[test]
    fn while_no_node_with_an_old_pod_is_drained_it_is_said_what_to_do() {
        let text = said(&["o2", "o1"], &[]).unwrap();
        assert!(text.starts_with("waits for a node to be drained: kubectl drain"), "{text}");
        assert!(text.contains("drained-for=tf/up") && text.ends_with("left: o1, o2"), "{text}");
        let many = said(&["o1", "o2", "o3", "o4", "o5", "o6"], &["another"]).unwrap();
        assert!(many.ends_with("left: o1, o2, o3, o4 and 2 more"), "{many}");
        let next = said(&["n1", "o2"], &["n1"]).unwrap();
        assert!(next.starts_with("done, ") && next.contains("uncordon NODE: n1; waits"), "{next}");
    }

    #[test]
    fn what_is_at_work_is_not_waited_for() {
        assert_eq!(said(&["o1", "o2"], &["o2"]), None, "it is replaced next");
        assert_eq!(said(&["n1-", "o2"], &["n1"]), None, "it is not ready yet");
        assert!(said(&["n1", "o2-"], &["n1"]).is_some(), "a node that is off is not of our doing");
        assert_eq!(said(&["n1", "n2"], &[]), None, "all have the new images");
    }
}
