//! Which keys an object has had so far.

use std::{borrow::Cow, collections::HashSet};

/// Objects with more keys are kept in a hash set, so that no object makes the scan quadratic.
const LINEAR: usize = 32;

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

/// The keys of all objects that are open, innermost last.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    open: Vec<(u64, Key)>,
    large: Vec<(usize, HashSet<String>)>,
}

/// Where the keys of one open object begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope(usize);

impl Keys {
    pub(crate) fn open(&self) -> Scope {
        Scope(self.open.len())
    }

    pub(crate) fn close(&mut self, scope: Scope) {
        self.open.truncate(scope.0);
        if self.large.last().is_some_and(|(start, _)| *start == scope.0) {
            self.large.pop();
        }
    }

    /// Whether the object has had this key; notes it otherwise.
    pub(crate) fn seen_before(&mut self, scope: Scope, text: &str, key: Key) -> bool {
        let known = self.open.get(scope.0..).unwrap_or_default();
        if known.len() >= LINEAR {
            return self.seen_in_large(scope, text, key);
        }
        let name = key.decode(text);
        let hash = hash(name.as_bytes());
        if known.iter().any(|(other, key)| *other == hash && key.decode(text) == name) {
            return true;
        }
        self.open.push((hash, key));
        false
    }

    fn seen_in_large(&mut self, scope: Scope, text: &str, key: Key) -> bool {
        if self.large.last().is_none_or(|(start, _)| *start != scope.0) {
            let known = self.open.get(scope.0..).unwrap_or_default();
            let names = known.iter().map(|(_, key)| key.decode(text).into_owned()).collect();
            self.large.push((scope.0, names));
        }
        let Some((_, names)) = self.large.last_mut() else { return false };
        !names.insert(key.decode(text).into_owned())
    }
}

/// Fast and weak: equal hashes are compared in full.
fn hash(bytes: &[u8]) -> u64 {
    let mut state = bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0_u8; 8];
        for (to, from) in word.iter_mut().zip(chunk) {
            *to = *from;
        }
        state =
            (state.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    state
}
