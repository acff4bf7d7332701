//! Which keys an object has had so far.

use std::{borrow::Cow, collections::HashSet};

/// Objects with more keys are kept in a hash set, so that no object makes the scan quadratic. Up to
/// here it is faster to look at each hash.
const LINEAR: usize = 256;

/// So many keys may be in the hash sets of all objects that are open: up to 26 MiB in memory. An API server stores
/// objects of 1.5 MiB, in which so many keys do not fit.
pub(super) const MOST_KEYS: usize = 1 << 18;

/// A key as written in the text, without its quotes.
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

/// The keys of all objects that are open, innermost last. Hashes are kept apart from the keys: they
/// are what is searched.
#[derive(Debug, Default)]
pub(crate) struct Keys<'t> {
    hashes: Vec<u64>,
    keys: Vec<Key>,
    large: Vec<(usize, HashSet<Cow<'t, str>>)>,
    in_large: usize,
    too_many: bool,
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
        if self.is_large(scope) {
            self.in_large -= self.large.pop().map_or(0, |(_, names)| names.len());
        }
    }

    /// Whether a key was not noted because there are too many.
    pub(crate) fn are_too_many(&self) -> bool {
        self.too_many
    }

    /// Whether the object has had this key, or it is one too many; notes it otherwise.
    pub(crate) fn seen_before(&mut self, scope: Scope, text: &'t str, key: Key) -> bool {
        let known = self.hashes.get(scope.0..).unwrap_or_default();
        if known.len() >= LINEAR || self.is_large(scope) {
            return self.seen_in_large(scope, text, key);
        }
        let name = key.decode(text);
        let hash = hash(name.as_bytes());
        if known.contains(&hash) {
            let same = |other: &Key| other.decode(text) == name;
            if self.keys.get(scope.0..).unwrap_or_default().iter().any(same) {
                return true;
            }
            // By chance this does not happen, so the keys are made to collide.
            return self.seen_in_large(scope, text, key);
        }
        self.hashes.push(hash);
        self.keys.push(key);
        false
    }

    fn is_large(&self, scope: Scope) -> bool {
        self.large.last().is_some_and(|(start, _)| *start == scope.0)
    }

    /// The standard hasher has random keys: no sender can prepare keys that collide in it.
    fn seen_in_large(&mut self, scope: Scope, text: &'t str, key: Key) -> bool {
        if !self.is_large(scope) {
            let known = self.keys.get(scope.0..).unwrap_or_default();
            let names: HashSet<_> = known.iter().map(|key| key.decode(text)).collect();
            self.in_large += names.len();
            self.large.push((scope.0, names));
        }
        let Some((_, names)) = self.large.last_mut() else { return false };
        if !names.insert(key.decode(text)) {
            return true;
        }
        self.in_large += 1;
        self.too_many = self.in_large > MOST_KEYS;
        self.too_many
    }
}

const FACTOR: u64 = 0x517c_c1b7_2722_0a95;

/// Fast and weak: where hashes are equal, keys are compared.
fn hash(bytes: &[u8]) -> u64 {
    let mix = |state: u64, word: u64| (state.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    let state =
        words.iter().fold(bytes.len() as u64, |state, word| mix(state, u64::from_le_bytes(*word)));
    let tail = rest.iter().fold(0, |tail, byte| tail << 8 | u64::from(*byte));
    mix(state, tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three keys of 16 bytes with one hash: what the second half subtracts, the first has added.
    fn colliding() -> Vec<String> {
        let start = |word: u64| (16_u64.rotate_left(5) ^ word).wrapping_mul(FACTOR);
        let first = u64::from_le_bytes(*b"aaaaaaaa");
        let last = u64::from_le_bytes(*b"bbbbbbbb");
        let all = (0_u64..).map(|number| {
            // Backwards, so that what changes most is in all bytes of the product.
            let mut digits = format!("{number:08x}").into_bytes();
            digits.reverse();
            let word = u64::from_le_bytes(digits.try_into().unwrap());
            let rest = start(word).rotate_left(5) ^ start(first).rotate_left(5) ^ last;
            [word.to_le_bytes(), rest.to_le_bytes()].concat()
        });
        let texts = all.filter_map(|key| String::from_utf8(key).ok());
        let plain = |key: &String| key.bytes().all(|byte| byte.is_ascii_graphic());
        texts.filter(plain).filter(|key| !key.contains(['"', '\\'])).take(3).collect()
    }

    #[test]
    fn keys_that_are_made_to_collide_are_told_apart_in_a_set() {
        let names = colliding();
        let hashes: HashSet<u64> = names.iter().map(|name| hash(name.as_bytes())).collect();
        assert_eq!((names.len(), hashes.len()), (3, 1), "{names:?}");
        let text = names.concat();
        let mut keys = Keys::default();
        let scope = keys.open();
        let key = |number: usize| Key { start: number * 16, end: number * 16 + 16, escaped: false };
        for number in 0..3 {
            assert!(!keys.seen_before(scope, &text, key(number)));
        }
        assert_eq!(keys.keys.len(), 1, "the others are in the set");
        for number in 0..3 {
            assert!(keys.seen_before(scope, &text, key(number)));
        }
        keys.close(scope);
        assert!(!keys.seen_before(keys.open(), &text, key(0)));
    }
}
