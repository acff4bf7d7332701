//! What is known of modules without another look at them: those that are loaded, and why others
//! cannot be. Bounded: what is not in force goes, the oldest first.

use std::collections::{HashSet, VecDeque};

use opensdn_admission_policy::Problem;
use opensdn_policy_host::{Digest, Policy};

/// Entries that are kept besides those in force.
const MAX_ENTRIES: usize = 64;
/// Bytes of compiled code that are kept besides that in force.
const MAX_CODE_BYTES: usize = 64 << 20;

/// What became of a module's bytes, which will always become of them.
pub(super) type Known = Result<Policy, Problem>;

/// The modules that are known.
#[derive(Default)]
pub(super) struct Table {
    /// The oldest first.
    entries: VecDeque<(Digest, Known)>,
    in_force: HashSet<Digest>,
}

impl Table {
    pub(super) fn get(&self, digest: Digest) -> Option<Known> {
        self.entries.iter().find(|(other, _)| *other == digest).map(|(_, known)| known.clone())
    }

    pub(super) fn put(&mut self, digest: Digest, known: Known) {
        self.entries.retain(|(other, _)| *other != digest);
        self.entries.push_back((digest, known));
        self.trim();
    }

    /// Says what is in force, all of it: none of that is forgotten.
    pub(super) fn keep(&mut self, in_force: HashSet<Digest>) {
        self.in_force = in_force;
        self.trim();
    }

    /// What is in force.
    pub(super) fn in_force(&self) -> &HashSet<Digest> {
        &self.in_force
    }

    fn trim(&mut self) {
        let (mut entries, mut bytes) = (0, 0);
        // From the newest: what then is too much is the oldest.
        let mut kept = VecDeque::with_capacity(self.entries.len());
        for (digest, known) in self.entries.drain(..).rev() {
            if !self.in_force.contains(&digest) {
                entries += 1;
                bytes += known.as_ref().map_or(0, Policy::code_size);
                if entries > MAX_ENTRIES || bytes > MAX_CODE_BYTES {
                    continue;
                }
            }
            kept.push_front((digest, known));
        }
        self.entries = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str) -> Known {
        Err(Problem::unusable(text.to_owned()))
    }

    #[test]
    fn the_oldest_that_is_not_in_force_is_forgotten_first() {
        let digest = |number: usize| Digest::of(&number.to_le_bytes());
        let mut table = Table::default();
        table.put(digest(0), known("in force"));
        table.keep(HashSet::from([digest(0)]));
        for number in 1..=MAX_ENTRIES + 1 {
            table.put(digest(number), known("refused"));
        }
        assert!(table.get(digest(0)).is_some(), "it is in force");
        assert!(table.get(digest(1)).is_none(), "it was the oldest");
        assert!(table.get(digest(2)).is_some());
        table.keep(HashSet::new());
        assert!(table.get(digest(0)).is_none());
        assert_eq!(table.entries.len(), MAX_ENTRIES);
    }
}
