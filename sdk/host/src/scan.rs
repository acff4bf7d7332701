//! One strict pass over a JSON text that finds all wanted parts.
//!
//! Strict means: whatever two parsers could read differently is refused: a key that is twice in
//! one object, a lone surrogate, anything after the end. So what a policy saw is what the API
//! server stores. The pass allocates per object depth, not per value, but for the keys of objects that have many.

mod deep;
mod keys;
mod lexer;
mod paths;

#[cfg(test)]
mod tests;

pub use paths::{Mount, Paths, Slot};

use keys::{Key, Keys, MOST_KEYS, Scope};
use lexer::Lexer;

use crate::text::quoted;

/// Deeper nesting is refused. An API server takes objects of 10,000 levels, which are in a review then.
pub const MOST_LEVELS: usize = 10_100;

/// Of what lies deeper no part is found: a level of these takes room on the stack.
pub const RECURSIVE_LEVELS: usize = 512;

/// Why a text is not acceptable JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// Not JSON.
    #[error("not valid JSON at byte {at}: expected {expected}")]
    Syntax {
        /// Offset into the text.
        at: usize,
        /// What would have been valid here.
        expected: &'static str,
    },
    /// A key is twice in one object, so two parsers may read different values.
    #[error("the key {key:?} stands twice in one object (byte {at})")]
    DuplicateKey {
        /// Offset of the second key.
        at: usize,
        /// The key, unescaped; no more of it than an error may quote.
        key: String,
    },
    /// More keys than an object can be stored with.
    #[error("more than {MOST_KEYS} keys in objects with many (byte {at})")]
    TooManyKeys {
        /// Offset of the one too many.
        at: usize,
    },
    /// Nested too deeply.
    #[error("nested more than {MOST_LEVELS} levels deep (byte {at})")]
    TooDeep {
        /// Offset where the limit was passed.
        at: usize,
    },
    /// Not UTF-8.
    #[error("not valid UTF-8 at byte {at}")]
    Encoding {
        /// Offset of the first bad byte.
        at: usize,
    },
    /// More than 4 GiB.
    #[error("longer than 4 GiB")]
    TooLong,
}

/// Where a part is: byte offsets into the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    const ABSENT: Self = Self { start: u32::MAX, end: 0 };

    pub(crate) fn of(self, text: &str) -> Option<&str> {
        text.get(self.start as usize..self.end as usize)
    }
}

/// The parts that a scan found.
#[derive(Clone, Debug)]
pub struct Found<'t> {
    text: &'t str,
    spans: Vec<Span>,
    is_deep: bool,
}

impl<'t> Found<'t> {
    /// Whether something in the text is nested more than [`RECURSIVE_LEVELS`] levels deep.
    #[must_use]
    pub fn is_deep(&self) -> bool {
        self.is_deep
    }

    /// The JSON text of the part, `None` where the text has no such part.
    #[must_use]
    pub fn get(&self, slot: Slot) -> Option<&'t str> {
        self.spans.get(slot.number())?.of(self.text)
    }

    /// The document mounted there; `None` where it is absent or `null`.
    #[must_use]
    pub fn document(&self, mount: &Mount) -> Option<Document<'_>> {
        let whole = self.get(mount.whole())?;
        let spans = self.spans.get(mount.slots())?;
        (whole != "null").then_some(Document { source: self.text, text: whole, spans })
    }
}

/// An object, with the parts that a set of policies declared found in it.
#[derive(Clone, Copy, Debug)]
pub struct Document<'f> {
    source: &'f str,
    text: &'f str,
    spans: &'f [Span],
}

impl<'f> Document<'f> {
    /// The object's JSON text.
    #[must_use]
    pub fn text(&self) -> &'f str {
        self.text
    }

    /// The part in `slot` of the paths that were mounted.
    #[must_use]
    pub fn part(&self, slot: Slot) -> Option<&'f str> {
        self.spans.get(slot.number())?.of(self.source)
    }
}

/// Finds the wanted parts of `bytes`.
///
/// # Errors
/// The bytes are not UTF-8, not JSON, or could be read in two ways.
pub fn scan<'t>(bytes: &'t [u8], paths: &Paths) -> Result<Found<'t>, ScanError> {
    let text = simdutf8::compat::from_utf8(bytes)
        .map_err(|error| ScanError::Encoding { at: error.valid_up_to() })?;
    if u32::try_from(text.len()).is_err() {
        return Err(ScanError::TooLong);
    }
    let mut scanner = Scanner {
        lexer: Lexer::new(text),
        paths,
        keys: Keys::default(),
        spans: vec![Span::ABSENT; paths.len()],
        is_deep: false,
    };
    scanner.lexer.skip_whitespace();
    scanner.value(paths.root(), 0)?;
    scanner.lexer.skip_whitespace();
    scanner.lexer.expect_end()?;
    Ok(Found { text, spans: scanner.spans, is_deep: scanner.is_deep })
}

struct Scanner<'t, 'p> {
    lexer: Lexer<'t>,
    paths: &'p Paths,
    keys: Keys<'t>,
    spans: Vec<Span>,
    is_deep: bool,
}

impl Scanner<'_, '_> {
    /// One value; `node` is where the wanted paths have got to, if any leads here.
    fn value(&mut self, node: Option<paths::Node>, depth: usize) -> Result<(), ScanError> {
        if depth > RECURSIVE_LEVELS {
            self.is_deep = true;
            return self.deep_value();
        }
        let start = self.lexer.position();
        match self.lexer.peek() {
            Some(b'{') => self.object(node, depth)?,
            Some(b'[') => self.array(node, depth)?,
            _ => self.scalar()?,
        }
        if let Some(slot) = node.and_then(|node| self.paths.slot(node))
            && let Some(span) = self.spans.get_mut(slot)
        {
            *span = Span { start: narrow(start), end: narrow(self.lexer.position()) };
        }
        Ok(())
    }

    // Without a call for each value: they are what a scan is made of.
    #[inline(always)]
    fn scalar(&mut self) -> Result<(), ScanError> {
        match self.lexer.peek() {
            Some(b'"') => self.lexer.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.lexer.number(),
            _ => self.lexer.literal(),
        }
    }

    /// A key that the object has not had, and what stands between it and its value.
    #[inline(always)]
    fn key(&mut self, scope: Scope) -> Result<Key, ScanError> {
        let at = self.lexer.position();
        let key = self.lexer.key()?;
        if self.keys.seen_before(scope, self.lexer.text(), key) {
            if self.keys.are_too_many() {
                return Err(ScanError::TooManyKeys { at });
            }
            let key = key.decode(self.lexer.text());
            return Err(ScanError::DuplicateKey { at, key: quoted(&key).into_owned() });
        }
        self.lexer.skip_whitespace();
        self.lexer.expect(b':', "`:`")?;
        self.lexer.skip_whitespace();
        Ok(key)
    }

    fn object(&mut self, node: Option<paths::Node>, depth: usize) -> Result<(), ScanError> {
        self.lexer.take();
        let scope = self.keys.open();
        self.lexer.skip_whitespace();
        if self.lexer.accept(b'}') {
            return Ok(());
        }
        loop {
            let key = self.key(scope)?;
            let child =
                node.and_then(|node| self.paths.child(node, || key.decode(self.lexer.text())));
            self.value(child, depth + 1)?;
            self.lexer.skip_whitespace();
            if self.lexer.accept(b'}') {
                break;
            }
            self.lexer.expect(b',', "`,` or `}`")?;
            self.lexer.skip_whitespace();
        }
        self.keys.close(scope);
        Ok(())
    }

    fn array(&mut self, node: Option<paths::Node>, depth: usize) -> Result<(), ScanError> {
        self.lexer.take();
        self.lexer.skip_whitespace();
        if self.lexer.accept(b']') {
            return Ok(());
        }
        for index in 0_usize.. {
            let child = node.and_then(|node| self.paths.child(node, || index.to_string().into()));
            self.value(child, depth + 1)?;
            self.lexer.skip_whitespace();
            if self.lexer.accept(b']') {
                break;
            }
            self.lexer.expect(b',', "`,` or `]`")?;
            self.lexer.skip_whitespace();
        }
        Ok(())
    }
}

/// The text was checked to be shorter than 4 GiB.
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
