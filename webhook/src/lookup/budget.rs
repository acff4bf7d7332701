//! How much is kept of the objects of one kind. Whoever may create objects in a namespace decides what they weigh, so each
//! namespace has a part of its own: what is over it is not kept, and a lookup that needs it is an error that says so.
//! Objects without a namespace are made by administrators, and all of them are kept.

use std::collections::HashMap;

/// Bytes of the objects of one kind in one namespace. A LinkLocalService is some 600 of them.
const OF_NAMESPACE: usize = 8 << 20;
/// Bytes of all objects of one kind.
const OF_KIND: usize = 64 << 20;
/// So many a namespace has whatever others have: no tenant with several of them takes everybody's part.
const IN_ANY_CASE: usize = 1 << 20;

/// What is kept, and how much that may be.
#[derive(Debug)]
pub(super) struct Budget {
    of_namespace: usize,
    of_kind: usize,
    in_any_case: usize,
    kept: HashMap<Box<str>, usize>,
    all: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(OF_NAMESPACE, OF_KIND, IN_ANY_CASE)
    }
}

impl Budget {
    pub(super) fn new(of_namespace: usize, of_kind: usize, in_any_case: usize) -> Self {
        Self { of_namespace, of_kind, in_any_case, kept: HashMap::new(), all: 0 }
    }

    /// Whether so many bytes more may be kept of a namespace.
    pub(super) fn has_room(&self, namespace: &str, bytes: usize) -> bool {
        let kept = self.kept.get(namespace).copied().unwrap_or_default() + bytes;
        let has_share = kept <= self.of_namespace && self.all + bytes <= self.of_kind;
        namespace.is_empty() || kept <= self.in_any_case || has_share
    }

    pub(super) fn add(&mut self, namespace: &str, bytes: usize) {
        if namespace.is_empty() {
            return;
        }
        self.all += bytes;
        match self.kept.get_mut(namespace) {
            Some(kept) => *kept += bytes,
            None => drop(self.kept.insert(namespace.into(), bytes)),
        }
    }

    pub(super) fn remove(&mut self, namespace: &str, bytes: usize) {
        if namespace.is_empty() {
            return;
        }
        self.all = self.all.saturating_sub(bytes);
        if let Some(kept) = self.kept.get_mut(namespace) {
            *kept = kept.saturating_sub(bytes);
            if *kept == 0 {
                self.kept.remove(namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_its_own_part_and_all_have_theirs() {
        let mut budget = Budget::new(10, 25, 2);
        budget.add("a", 10);
        assert!(!budget.has_room("a", 1) && budget.has_room("b", 10) && !budget.has_room("b", 11));
        budget.add("b", 10);
        assert!(budget.has_room("c", 5) && !budget.has_room("c", 6));
        budget.add("c", 5);
        assert!(budget.has_room("d", 2), "what it has in any case");
        assert!(!budget.has_room("d", 3), "there is no more for all");
        budget.remove("a", 10);
        assert!(budget.has_room("a", 10));
        for namespace in ["b", "c"] {
            budget.remove(namespace, if namespace == "b" { 10 } else { 5 });
        }
        assert!(budget.kept.is_empty() && budget.all == 0);
    }

    #[test]
    fn what_has_no_namespace_is_kept_and_takes_nothing_from_others() {
        let mut budget = Budget::new(10, 25, 2);
        budget.add("", 1_000);
        assert!(budget.has_room("", 1_000) && budget.has_room("a", 10));
        budget.remove("", 1_000);
        assert_eq!(budget.all, 0);
    }
}
