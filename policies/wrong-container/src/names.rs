//! Names of containers: those that have a part of their own in the rules, and the one that was
//! meant. Which containers a kind has is in the table of components.

use opensdn_policy_components::component::Containers;

pub(crate) const DPDK: &str = "vrouteragentdpdk";
pub(crate) const DPDK_INIT: &str = "vrouterkernelinitdpdk";
pub(crate) const KERNEL_INIT: &str = "vrouterkernelinit";
pub(crate) const KERNEL_BUILD: &str = "vrouterkernelbuildinit";
pub(crate) const NODE_INIT: &str = "nodeinit";
pub(crate) const STATUS: &str = "nodeinit-status-prefetch";

/// The name that was meant, where a known one is near.
pub(crate) fn nearest(known: &Containers, name: &str) -> Option<&'static str> {
    let limit = (name.len() / 3).max(1);
    let distances = known.all().map(|known| (distance(&name.to_lowercase(), known), known));
    distances.min().filter(|(distance, _)| *distance <= limit).map(|(_, known)| known)
}

/// How many characters to insert, remove or replace to make one of the other.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, character) in left.bytes().enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(right.bytes()) {
            let replaced = diagonal + usize::from(character != other);
            diagonal = *cell;
            before = replaced.min(diagonal + 1).min(before + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use opensdn_policy_components::component::Component;

    use super::{DPDK, DPDK_INIT, KERNEL_BUILD, KERNEL_INIT, NODE_INIT, STATUS, distance, nearest};

    #[test]
    fn counts_edits() {
        for (left, right, edits) in
            [("", "", 0), ("a", "", 1), ("", "ab", 2), ("api", "apis", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(left, right), edits, "{left} {right}");
        }
    }

    #[test]
    fn guesses_what_is_near_only() {
        let vrouter = Component::of_kind("Vrouter").unwrap().containers;
        assert_eq!(nearest(&vrouter, "vrouter-agent"), Some("vrouteragent"));
        assert_eq!(nearest(&vrouter, "NodeManager"), Some("nodemanager"));
        assert_eq!(nearest(&vrouter, "dpdk"), None);
    }

    #[test]
    fn the_names_in_the_rules_are_vrouters() {
        let vrouter = Component::of_kind("Vrouter").unwrap().containers;
        for name in [DPDK, DPDK_INIT, KERNEL_INIT, KERNEL_BUILD, NODE_INIT, STATUS] {
            assert!(vrouter.all().any(|known| known == name), "{name}");
        }
    }
}
