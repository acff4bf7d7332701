//! Streams cut into the texts of single documents, so that tens of thousands of documents are read
//! in the memory of the largest one.

use std::io::{self, BufRead, Read};

use crate::read::MAX_DOCUMENT_BYTES;
use crate::source::{Fault, Source};
use crate::split::is_separator;

/// The documents of a stream, each as a [`Source`] for [`read`](crate::read): separated by `---`,
/// or objects of JSON that begin on a line of their own.
///
/// An error of the stream ends it. What is no text, or too large, is a source all the same:
/// [`read`](crate::read) says what is wrong with it, and the stream continues behind it.
#[derive(Debug)]
pub struct Sources<R> {
    name: String,
    reader: R,
    /// A line that was read already, and belongs to the next document.
    held: Vec<u8>,
    line: usize,
    offset: u64,
    ended: bool,
}

/// What is gathered of one document.
#[derive(Default)]
struct Gathered {
    bytes: Vec<u8>,
    lines: usize,
    length: u64,
    too_large: bool,
    /// Whether something other than blanks was seen.
    started: bool,
    /// Whether the last line is not complete, for it is longer than a document may be.
    within_line: bool,
    json: Option<Json>,
}

/// How deep a line ends within objects of JSON.
#[derive(Default)]
struct Json {
    depth: i64,
    quoted: bool,
    escaped: bool,
}

impl<R: BufRead> Sources<R> {
    /// The documents of a reader, under the name that people see.
    pub fn new(name: impl Into<String>, reader: R) -> Self {
        Self { name: name.into(), reader, held: Vec::new(), line: 1, offset: 0, ended: false }
    }

    fn gather(&mut self) -> io::Result<Option<Gathered>> {
        let mut gathered = Gathered::default();
        loop {
            let line = match std::mem::take(&mut self.held) {
                held if held.is_empty() => self.read_line()?,
                held => held,
            };
            if line.is_empty() {
                self.ended = true;
                return Ok((gathered.length > 0).then_some(gathered));
            }
            if gathered.length > 0 && gathered.ends_before(&line) {
                self.held = line;
                return Ok(Some(gathered));
            }
            gathered.add(&line);
        }
    }

    /// A line, or as much of it as a document may have.
    fn read_line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        let most = MAX_DOCUMENT_BYTES as u64 + 1;
        (&mut self.reader).take(most).read_until(b'\n', &mut line)?;
        Ok(line)
    }

    fn source(&mut self, gathered: Gathered) -> Source {
        let (line, offset) = (self.line, self.offset);
        self.line += gathered.lines;
        self.offset = self.offset.saturating_add(gathered.length);
        let name = self.name.clone();
        if gathered.too_large {
            return Source::part(name, String::new(), line, Some(Fault::TooLarge));
        }
        Source::part_of_bytes(name, gathered.bytes, line, offset)
    }
}

impl<R: BufRead> Iterator for Sources<R> {
    type Item = io::Result<Source>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        match self.gather() {
            Ok(gathered) => Some(Ok(self.source(gathered?))),
            Err(error) => {
                self.ended = true;
                Some(Err(error))
            }
        }
    }
}

impl Gathered {
    fn ends_before(&self, line: &[u8]) -> bool {
        if self.within_line {
            return false;
        }
        let object_ended = self.json.as_ref().is_some_and(|json| json.depth == 0 && !json.quoted);
        is_separator(line) || (object_ended && line.starts_with(b"{") && self.is_json())
    }

    /// Braces are YAML too; only what is JSON may be cut without a separator.
    fn is_json(&self) -> bool {
        serde_json::from_slice::<serde::de::IgnoredAny>(&self.bytes).is_ok()
    }

    fn add(&mut self, line: &[u8]) {
        self.length = self.length.saturating_add(line.len() as u64);
        self.lines += usize::from(line.ends_with(b"\n"));
        self.within_line = !line.ends_with(b"\n");
        if !self.started && line.starts_with(b"{") {
            self.json = Some(Json::default());
        }
        self.started |= !line.iter().all(u8::is_ascii_whitespace);
        if let Some(json) = &mut self.json {
            json.take(line);
        }
        // From here on only the end is looked for.
        self.too_large |= self.bytes.len() + line.len() > MAX_DOCUMENT_BYTES;
        if self.too_large {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(line);
        }
    }
}

impl Json {
    fn take(&mut self, line: &[u8]) {
        for byte in line {
            match (self.quoted, byte) {
                (true, _) if self.escaped => self.escaped = false,
                (true, b'\\') => self.escaped = true,
                (_, b'"') => self.quoted = !self.quoted,
                (false, b'{') => self.depth += 1,
                (false, b'}') => self.depth -= 1,
                _ => {}
            }
        }
    }
}
