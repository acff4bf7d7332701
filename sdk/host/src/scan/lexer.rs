//! The tokens of JSON (RFC 8259), checked strictly.

use super::{ScanError, keys::Key};

pub(super) struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0 }
    }

    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    pub(super) fn take(&mut self) {
        self.at += 1;
    }

    #[inline]
    pub(super) fn accept(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    #[inline]
    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), ScanError> {
        if self.accept(byte) { Ok(()) } else { Err(self.syntax(expected)) }
    }

    pub(super) fn expect_end(&self) -> Result<(), ScanError> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.syntax("the end")) }
    }

    #[inline]
    pub(super) fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    pub(super) fn key(&mut self) -> Result<Key, ScanError> {
        if self.peek() != Some(b'"') {
            return Err(self.syntax("a key in double quotes"));
        }
        self.string()
    }

    /// A string; the position is at its opening quote.
    pub(super) fn string(&mut self) -> Result<Key, ScanError> {
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.skip_plain();
            match self.peek() {
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    return Ok(Key { start, end, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(byte) if byte >= 0x20 => self.at += 1,
                Some(_) => return Err(self.syntax("an escaped control character")),
                None => return Err(self.syntax("the closing `\"`")),
            }
        }
    }

    /// Skips eight bytes at a time while none of them is a quote, a backslash or a control
    /// character.
    #[inline]
    fn skip_plain(&mut self) {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let has_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
        while let Some(chunk) = self.bytes.get(self.at..self.at + 8) {
            let Ok(chunk) = <[u8; 8]>::try_from(chunk) else { return };
            let word = u64::from_le_bytes(chunk);
            let quote = has_zero(word ^ (ONES * u64::from(b'"')));
            let backslash = has_zero(word ^ (ONES * u64::from(b'\\')));
            let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
            let special = quote | backslash | control;
            if special != 0 {
                // The lowest hit is exact, those above it may be carries.
                self.at += (special.trailing_zeros() / 8) as usize;
                return;
            }
            self.at += 8;
        }
    }

    fn escape(&mut self) -> Result<(), ScanError> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => self.unicode_escape(),
            _ => Err(self.syntax("an escape sequence")),
        }
    }

    /// `\uXXXX`; one half of a surrogate pair alone is refused, parsers disagree about it.
    fn unicode_escape(&mut self) -> Result<(), ScanError> {
        const PAIR: &str = "a surrogate pair";
        match self.hexadecimal()? {
            0xD800..=0xDBFF => {
                self.expect(b'\\', PAIR)?;
                if self.peek() != Some(b'u') {
                    return Err(self.syntax(PAIR));
                }
                match self.hexadecimal()? {
                    0xDC00..=0xDFFF => Ok(()),
                    _ => Err(self.syntax(PAIR)),
                }
            }
            0xDC00..=0xDFFF => Err(self.syntax(PAIR)),
            _ => Ok(()),
        }
    }

    /// Four hexadecimal digits after the `u` at the position.
    fn hexadecimal(&mut self) -> Result<u32, ScanError> {
        self.at += 1;
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            value = value * 16 + digit.ok_or_else(|| self.syntax("four hexadecimal digits"))?;
            self.at += 1;
        }
        Ok(value)
    }

    pub(super) fn number(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        self.accept(b'-');
        if !self.accept(b'0') {
            self.digits()?;
        }
        if self.accept(b'.') {
            self.digits()?;
        }
        let exponent = self.accept(b'e') || self.accept(b'E');
        if exponent {
            let _sign = self.accept(b'+') || self.accept(b'-');
            self.digits()?;
        }
        // Some parsers read infinity, others refuse. 308 digits are always in range.
        if exponent || self.at - start > 308 { self.in_range(start) } else { Ok(()) }
    }

    fn in_range(&self, start: usize) -> Result<(), ScanError> {
        let text = self.text.get(start..self.at).unwrap_or_default();
        if text.parse().is_ok_and(f64::is_finite) {
            return Ok(());
        }
        Err(ScanError::Syntax { at: start, expected: "a number that is at most 1.79e308" })
    }

    fn digits(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.syntax("a digit")) } else { Ok(()) }
    }

    pub(super) fn literal(&mut self) -> Result<(), ScanError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let found =
            [&b"true"[..], b"false", b"null"].into_iter().find(|word| rest.starts_with(word));
        self.at += found.ok_or_else(|| self.syntax("a JSON value"))?.len();
        Ok(())
    }

    fn syntax(&self, expected: &'static str) -> ScanError {
        ScanError::Syntax { at: self.at, expected }
    }
}
