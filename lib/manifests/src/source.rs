//! The text of a file, or of the part of it that holds one document, and places in it. Deliberately
//! not here: opening files, and what the text means.

use std::sync::OnceLock;

use serde::Serialize;

/// A range of bytes in the text of a [`Source`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset behind the last byte; equal to `start` for a place between two characters.
    pub end: usize,
}

impl Span {
    /// The range from one offset to another.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The place between two characters.
    #[must_use]
    pub const fn at(offset: usize) -> Self {
        Self::new(offset, offset)
    }

    pub(crate) const fn moved(self, by: usize) -> Self {
        Self::new(self.start.saturating_add(by), self.end.saturating_add(by))
    }
}

/// A line and a column as editors count them: both from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    /// Line in the file.
    pub line: usize,
    /// Column in characters (Unicode scalar values).
    pub column: usize,
}

/// Text with the name under which it is shown to people. Read from a stream it is the part that
/// holds one document, and knows on which line of the file it begins.
#[derive(Debug)]
pub struct Source {
    name: String,
    text: String,
    first_line: usize,
    fault: Option<Fault>,
    /// Offset of the beginning of each line; made when the first position is asked for.
    lines: OnceLock<Vec<usize>>,
}

/// Why the bytes of a source are no text that could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The text ends before the byte at this offset of the file.
    NotUtf8 { byte: u64 },
    /// A byte order mark of UTF-16 or UTF-32.
    OtherEncoding(&'static str),
    /// A byte that no text has.
    Binary { byte: u64 },
    /// Longer than a document may be. The text is its beginning.
    TooLarge,
}

impl Source {
    /// A source that begins on line 1.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::part(name.into(), text.into(), 1, None)
    }

    /// The same from bytes. Where they are no UTF-8, [`read`](crate::read) says where and why.
    #[must_use]
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self::part_of_bytes(name.into(), bytes, 1, 0)
    }

    /// The name that people see: a path, or `<stdin>`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text to which all [`Span`]s refer.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line of the file on which the text begins, from 1.
    #[must_use]
    pub const fn first_line(&self) -> usize {
        self.first_line
    }

    /// Line and column of a byte offset. An offset behind the end counts as the end; one within a
    /// character as that character's beginning.
    #[must_use]
    pub fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let lines = self.lines.get_or_init(|| line_starts(&self.text));
        let index = lines.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = lines.get(index).copied().unwrap_or_default();
        let before = self.text.get(start..offset).unwrap_or_default();
        let characters = before.chars().filter(|character| *character != '\u{feff}').count();
        Position { line: self.first_line.saturating_add(index), column: characters + 1 }
    }

    pub(crate) const fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    pub(crate) const fn part(
        name: String,
        text: String,
        first_line: usize,
        fault: Option<Fault>,
    ) -> Self {
        Self { name, text, first_line, fault, lines: OnceLock::new() }
    }

    /// A part of a file whose first byte has the given offset there.
    pub(crate) fn part_of_bytes(
        name: String,
        bytes: Vec<u8>,
        first_line: usize,
        offset: u64,
    ) -> Self {
        if let Some(encoding) = other_encoding(&bytes) {
            let fault = Fault::OtherEncoding(encoding);
            return Self::part(name, String::new(), first_line, Some(fault));
        }
        let (text, fault) = match String::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let good = error.utf8_error().valid_up_to();
                let mut bytes = error.into_bytes();
                bytes.truncate(good);
                let byte = offset.saturating_add(good as u64);
                (String::from_utf8(bytes).unwrap_or_default(), Some(Fault::NotUtf8 { byte }))
            }
        };
        let nul =
            text.find('\0').map(|at| Fault::Binary { byte: offset.saturating_add(at as u64) });
        Self::part(name, text, first_line, nul.or(fault))
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect()
}

fn other_encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, Position, Source};

    fn position(text: &str, offset: usize) -> (usize, usize) {
        let Position { line, column } = Source::new("f", text).position(offset);
        (line, column)
    }

    #[test]
    fn columns_count_characters_and_lines_breaks() {
        assert_eq!(position("aä\nbc", 3), (1, 3));
        assert_eq!(position("aä\nbc", 5), (2, 2));
        assert_eq!(position("a\r\nb", 3), (2, 1));
        assert_eq!(position("", 0), (1, 1));
        assert_eq!(position("ab", 99), (1, 3));
    }

    #[test]
    fn byte_order_mark_takes_no_column() {
        assert_eq!(position("\u{feff}ab", 3), (1, 1));
    }

    #[test]
    fn bytes_that_are_no_text_keep_what_stands_before_them() {
        let source = Source::from_bytes("f", b"a: b\nc: \xff\xfe".to_vec());
        assert_eq!(source.text(), "a: b\nc: ");
        assert_eq!(source.fault(), Some(&Fault::NotUtf8 { byte: 8 }));
        let wide = Source::from_bytes("f", vec![0xff, 0xfe, b'a', 0]);
        assert_eq!(wide.fault(), Some(&Fault::OtherEncoding("UTF-16")));
        let binary = Source::from_bytes("f", b"\x7fELF\0\0".to_vec());
        assert_eq!(binary.fault(), Some(&Fault::Binary { byte: 4 }));
    }
}
