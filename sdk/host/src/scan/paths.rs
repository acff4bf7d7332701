//! The wanted parts as a tree of keys.

use std::{borrow::Cow, ops::Range};

/// What a scan looks for: JSON Pointers, merged into one tree.
#[derive(Clone, Debug)]
pub struct Paths {
    nodes: Vec<Entry>,
    slots: usize,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    /// In the order of their keys.
    children: Vec<(Box<str>, Node)>,
    slot: Option<usize>,
}

/// A place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node(usize);

/// The number under which a wanted part is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(usize);

impl Slot {
    pub(crate) fn number(self) -> usize {
        self.0
    }
}

/// Where the paths of a document are within those of the text around it.
#[derive(Clone, Debug)]
pub struct Mount {
    whole: Slot,
    slots: Range<usize>,
}

impl Mount {
    pub(crate) fn whole(&self) -> Slot {
        self.whole
    }

    pub(crate) fn slots(&self) -> Range<usize> {
        self.slots.clone()
    }
}

impl Default for Paths {
    fn default() -> Self {
        Self { nodes: vec![Entry::default()], slots: 0 }
    }
}

impl Paths {
    /// Nothing is wanted yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Wants the part at `pointer` (RFC 6901; `""` is the whole text). The same pointer again gives
    /// the same slot.
    pub fn want(&mut self, pointer: &str) -> Slot {
        let node = self.insert(pointer);
        self.slot_at(node)
    }

    /// Wants all of `other` below `pointer`. Nothing may be wanted there before; what is wanted
    /// afterwards shares its slots.
    pub fn mount(&mut self, pointer: &str, other: &Self) -> Mount {
        let first = self.slots;
        self.slots += other.slots;
        let at = self.insert(pointer);
        self.graft(at, other, Node(0), first);
        // Its root may be wanted from within as well; both share the slot then.
        let whole = self.slot_at(at);
        Mount { whole, slots: first..first + other.slots }
    }

    /// The slot of a place: the one that it has, or a new one.
    fn slot_at(&mut self, node: Node) -> Slot {
        let next = self.slots;
        match self.nodes.get_mut(node.0) {
            Some(Entry { slot: Some(slot), .. }) => Slot(*slot),
            Some(entry) => {
                entry.slot = Some(next);
                self.slots += 1;
                Slot(next)
            }
            // A node is always one of this tree.
            None => Slot(usize::MAX),
        }
    }

    /// A loop, not a recursion: how deep the pointers are is not ours to say.
    fn graft(&mut self, at: Node, other: &Self, from: Node, first: usize) {
        let mut open = vec![(at, from)];
        while let Some((at, from)) = open.pop() {
            let Some(entry) = other.nodes.get(from.0) else { continue };
            if let (Some(slot), Some(here)) = (entry.slot, self.nodes.get_mut(at.0)) {
                here.slot = Some(first + slot);
            }
            for (key, child) in &entry.children {
                open.push((self.step(at, key), *child));
            }
        }
    }

    fn insert(&mut self, pointer: &str) -> Node {
        let mut node = Node(0);
        for segment in pointer.split('/').skip(1) {
            node = self.step(node, &segment.replace("~1", "/").replace("~0", "~"));
        }
        node
    }

    fn step(&mut self, node: Node, key: &str) -> Node {
        let found = self.nodes.get(node.0).and_then(|entry| entry.find(key));
        found.unwrap_or_else(|| {
            let child = Node(self.nodes.len());
            self.nodes.push(Entry::default());
            if let Some(entry) = self.nodes.get_mut(node.0) {
                let at = entry.children.partition_point(|(name, _)| **name < *key);
                entry.children.insert(at, (key.into(), child));
            }
            child
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.slots
    }

    pub(crate) fn root(&self) -> Option<Node> {
        Some(Node(0))
    }

    pub(crate) fn slot(&self, node: Node) -> Option<usize> {
        self.nodes.get(node.0)?.slot
    }

    /// `key` is only asked for where something is wanted below.
    pub(crate) fn child<'k>(&self, node: Node, key: impl FnOnce() -> Cow<'k, str>) -> Option<Node> {
        let entry = self.nodes.get(node.0)?;
        if entry.children.is_empty() { None } else { entry.find(&key()) }
    }
}

/// Up to as many children, to compare one after the other is faster than to halve.
const FEW: usize = 8;

impl Entry {
    /// In an object with many keys, below which much is wanted, each key is asked for.
    fn find(&self, key: &str) -> Option<Node> {
        if self.children.len() <= FEW {
            return self.children.iter().find(|(name, _)| **name == *key).map(|(_, node)| *node);
        }
        let at = self.children.binary_search_by(|(name, _)| (**name).cmp(key)).ok()?;
        self.children.get(at).map(|(_, node)| *node)
    }
}
