//! Which keys an object has had so far.

use std::{borrow::Cow, collections::HashSet};

/// Objects with more keys are kept in a hash set, so that no object makes the scan quadratic. Up to
/// here it is faster to look at each hash.
const LINEAR: usize = 256;

/// A key as it stands in the text, without its quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) escaped: bool,
}

impl Key {
    /// The unescaped key.
    pub(crate) fn decode<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let raw = text.get(self.start..self.end).unwrap_or_default();
        if !self.escaped {
            return Cow::Borrowed(raw);
        }
        // The lexer has checked every escape, so this does not fail.
        let quoted = text.get(self.start - 1..self.end + 1).unwrap_or_default();
        serde_json::from_str(quoted).map_or(Cow::Borrowed(raw), Cow::Owned)
    }
}

/// The keys of all objects that are open, innermost last. Hashes stand apart from the keys: they
/// are what is searched.
#[derive(Debug, Default)]
pub(crate) struct Keys<'t> {
    hashes: Vec<u64>,
    keys: Vec<Key>,
    large: Vec<(usize, HashSet<Cow<'t, str>>)>,
}

/// Where the keys of one open object begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope(usize);

impl<'t> Keys<'t> {
    pub(crate) fn open(&self) -> Scope {
        Scope(self.keys.len())
    }

    pub(crate) fn close(&mut self, scope: Scope) {
        self.keys.truncate(scope.0);
        self.hashes.truncate(scope.0);
        if self.large.last().is_some_and(|(start, _)| *start == scope.0) {
            self.large.pop();
        }
    }

    /// Whether the object has had this key; notes it otherwise.
    pub(crate) fn seen_before(&mut self, scope: Scope, text: &'t str, key: Key) -> bool {
        let known = self.hashes.get(scope.0..).unwrap_or_default();
        if known.len() >= LINEAR {
            return self.seen_in_large(scope, text, key);
        }
        let name = key.decode(text);
        let hash = hash(name.as_bytes());
        if known.contains(&hash) {
            let same = |other: &Key| other.decode(text) == name;
            if self.keys.get(scope.0..).unwrap_or_default().iter().any(same) {
                return true;
            }
        }
        self.hashes.push(hash);
        self.keys.push(key);
        false
    }

    /// The standard hasher is keyed by chance: nobody can prepare keys that collide in it.
    fn seen_in_large(&mut self, scope: Scope, text: &'t str, key: Key) -> bool {
        if self.large.last().is_none_or(|(start, _)| *start != scope.0) {
            let known = self.keys.get(scope.0..).unwrap_or_default();
            let names = known.iter().map(|key| key.decode(text)).collect();
            self.large.push((scope.0, names));
        }
        let Some((_, names)) = self.large.last_mut() else { return false };
        !names.insert(key.decode(text))
    }
}

/// Fast and weak: where hashes are equal, keys are compared.
fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x517c_c1b7_2722_0a95;
    let mix = |state: u64, word: u64| (state.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    let state =
        words.iter().fold(bytes.len() as u64, |state, word| mix(state, u64::from_le_bytes(*word)));
    let tail = rest.iter().fold(0, |tail, byte| tail << 8 | u64::from(*byte));
    mix(state, tail)
}
