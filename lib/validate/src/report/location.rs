//! Where a finding is: file, line, column, and the line's text. It is made while the document is at
//! hand and needs it no longer.

use opensdn_manifests::{Source, Span};
use schemars::JsonSchema;
use serde::Serialize;

/// Longer lines are not shown: they are a machine's JSON in one line.
const LONGEST_LINE: usize = 400;

/// Whether something comes from a file or from the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A file, or standard input.
    #[default]
    File,
    /// What kustomize made of a folder; lines are those of its output.
    Kustomize,
    /// The live cluster.
    Cluster,
}

/// Where something is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    /// Where it comes from.
    pub origin: Origin,
    /// The file as it was named or found, `<stdin>`, or `cluster: ` and the object.
    pub file: String,
    /// Line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// Line of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_line: Option<usize>,
    /// Column behind the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_column: Option<usize>,
    /// Number of the file among those given, for the order.
    #[serde(skip)]
    #[schemars(skip)]
    pub file_number: usize,
    /// The first line of it.
    #[serde(skip)]
    #[schemars(skip)]
    pub excerpt: Option<Excerpt>,
}

/// A line, and the bytes of it that are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The line without its end.
    pub line: String,
    /// First byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
}

impl Location {
    /// A file as a whole.
    pub fn of_file(origin: Origin, file: impl Into<String>, file_number: usize) -> Self {
        Self { origin, file: file.into(), file_number, ..Self::default() }
    }

    /// A part of a text. What spans several lines is shown by its first.
    pub fn of_span(origin: Origin, file_number: usize, source: &Source, span: Span) -> Self {
        let text = source.text();
        let start = text.floor_char_boundary(span.start);
        let end = text.floor_char_boundary(span.end).max(start);
        let rest = text.get(start..end).unwrap_or_default();
        // A mapping ends where the next key begins; that is not where it is seen to end.
        let end = start + rest.trim_end().len();
        let (from, to) = (source.position(start), source.position(end));
        Self {
            origin,
            file: source.name().to_owned(),
            line: Some(from.line),
            column: Some(from.column),
            end_line: Some(to.line),
            end_column: Some(to.column),
            file_number,
            excerpt: excerpt(text, start, end),
        }
    }

    pub(super) fn order(&self) -> impl Ord + use<> {
        (self.file_number, self.line, self.column)
    }

    /// `file:line:column`, as far as known.
    pub fn text(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}", self.file),
            _ => self.file.clone(),
        }
    }
}

fn excerpt(text: &str, start: usize, end: usize) -> Option<Excerpt> {
    let begin = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    let length = text.get(begin..)?.find('\n').unwrap_or(text.len() - begin);
    let line = text.get(begin..begin + length)?;
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.len() > LONGEST_LINE {
        return None;
    }
    let (start, end) = (start - begin, (end - begin).min(line.len()));
    Some(Excerpt { line: line.to_owned(), start: start.min(end), end })
}
