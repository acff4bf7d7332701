//! From a text to its documents: pieces, their trees, and the entries of lists of objects, as
//! kubectl takes them apart.

use std::sync::Arc;

use granit_parser::{Event, Options, Parser};
use serde_json::Value;

use crate::build::Builder;
use crate::comment::Comment;
use crate::document::Document;
use crate::problem::{Problem, Severity, codes};
use crate::source::{Fault, Source, Span};
use crate::source_map::SourceMap;
use crate::split::{behind_separator, json_stream, pieces};
use crate::syntax::kind_of;

/// The deepest nesting of a document: what the webhook takes.
pub const MAX_DEPTH: usize = 512;

/// The largest document in bytes: what the webhook takes.
pub const MAX_DOCUMENT_BYTES: usize = 8 << 20;

/// The most values of a document.
pub const MAX_VALUES: usize = 1_000_000;

/// What a text holds.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The objects in the order of the text; the entries of a `List` one by one. Documents without
    /// content are left out, as are those with an error of syntax.
    pub documents: Vec<Document>,
    /// What is wrong with the text itself.
    pub problems: Vec<Problem>,
}

/// Errors of one text that are shown; the first is mostly the reason for the others.
const SHOWN: usize = 5;

impl Parsed {
    /// The first errors, each as `line:column: what is wrong; what to do`. `source` is the text that was read.
    #[must_use]
    pub fn errors(&self, source: &Source) -> Vec<String> {
        let errors = self.problems.iter().filter(|one| one.severity == Severity::Error);
        errors.take(SHOWN).map(|one| placed(source, one)).collect()
    }
}

fn placed(source: &Source, problem: &Problem) -> String {
    let Problem { span, message, hint, .. } = problem;
    let place = span.map(|span| source.position(span.start));
    let place = place.map(|place| format!("{}:{}: ", place.line, place.column));
    let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
    format!("{}{message}{hint}", place.unwrap_or_default())
}

/// Reads all documents of a text. A broken document does not hide those behind it.
#[must_use]
pub fn read(source: &Source) -> Parsed {
    let mut parsed = Parsed::default();
    if let Some(fault) = source.fault() {
        parsed.problems.push(unreadable(fault, source));
        return parsed;
    }
    for (offset, piece) in pieces(source.text()) {
        check_separator(offset, piece, &mut parsed.problems);
        match json_stream(piece) {
            Some(objects) => {
                for (at, object) in objects {
                    read_piece(offset + at, object, &mut parsed);
                }
            }
            None => read_piece(offset, piece, &mut parsed),
        }
    }
    parsed
}

fn read_piece(offset: usize, piece: &str, parsed: &mut Parsed) {
    if piece.len() > MAX_DOCUMENT_BYTES {
        parsed.problems.push(too_large().at(Span::at(offset)));
        return;
    }
    let mut builder = Builder::new(offset, piece);
    let root = match build(&mut builder, piece) {
        Ok(()) => builder.root.take(),
        Err(problem) => {
            builder.problems.push(*problem);
            None
        }
    };
    parsed.problems.append(&mut builder.problems);
    let comments = Arc::from(builder.comments);
    if let Some((value, places)) = root.filter(|(value, _)| !value.is_null()) {
        take_apart(value, String::new(), &places, &comments, parsed);
    }
}

/// Feeds the events of one document to the builder.
fn build(builder: &mut Builder<'_>, piece: &str) -> Result<(), Box<Problem>> {
    let text = piece.strip_prefix('\u{feff}').unwrap_or(piece);
    let mut parser = Parser::new_from_str_with_options(text, options());
    let mut documents = 0;
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| builder.syntax_error(&error))?;
        match event {
            Event::DocumentStart(..) => {
                documents += 1;
                if documents > 1 {
                    builder.problems.push(behind_the_end(builder.span(&span)));
                    return Ok(());
                }
            }
            event => builder.take(event, &span)?,
        }
    }
    Ok(())
}

fn options() -> Options {
    granit_parser::options! {
        // Comments are bounded by the size of the document already.
        max_buffered_comment_events: MAX_DOCUMENT_BYTES,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
        emit_unresolved_aliases: true,
        // As long as a key may be in JSON for all practical purposes; YAML's own limit is 1024.
        simple_key_max_lookahead: 65_536,
    }
}

/// The document itself, or the entries of the list that it is.
fn take_apart(
    mut value: Value,
    origin: String,
    places: &SourceMap,
    comments: &Arc<[Comment]>,
    parsed: &mut Parsed,
) {
    if !value.is_object() {
        parsed.problems.push(no_object(&value, places.span));
        return;
    }
    let Some(items) = items_of_list(&mut value) else {
        let document = Document::new(value, origin, places.clone(), Arc::clone(comments));
        parsed.documents.push(document);
        return;
    };
    let listed = items.into_iter().enumerate();
    for (index, mut item) in listed.filter(|(_, item)| !item.is_null()) {
        let pointer = format!("/items/{index}");
        let found = places.find(&pointer);
        let inner = found.map_or_else(|| places.clone(), |(_, inner)| inner.clone());
        name_kind(&mut item, &value);
        take_apart(item, format!("{origin}{pointer}"), &inner, comments, parsed);
    }
}

/// The entries, where the object is a list of objects: `List` or, say, `ManagerList`.
fn items_of_list(value: &mut Value) -> Option<Vec<Value>> {
    let listed = value.get("kind")?.as_str()?.ends_with("List");
    match value.get_mut("items")? {
        Value::Array(items) if listed => Some(std::mem::take(items)),
        _ => None,
    }
}

/// Entries of a list of one kind need not repeat what kind they are of.
fn name_kind(item: &mut Value, list: &Value) {
    let kind = list.get("kind").and_then(Value::as_str).and_then(|kind| kind.strip_suffix("List"));
    let (Some(kind), Some(version), Some(object)) =
        (kind.filter(|kind| !kind.is_empty()), list.get("apiVersion"), item.as_object_mut())
    else {
        return;
    };
    if !object.contains_key("kind") && !object.contains_key("apiVersion") {
        object.insert("kind".to_owned(), Value::from(kind));
        object.insert("apiVersion".to_owned(), version.clone());
    }
}

fn check_separator(offset: usize, piece: &str, problems: &mut Vec<Problem>) {
    let line = piece.lines().next().unwrap_or_default();
    if let Some(rest) = behind_separator(line) {
        let start = offset + line.find(rest).unwrap_or_default();
        let message = "kubectl takes nothing but a comment behind `---` on the same line";
        let problem = Problem::error(codes::SEPARATOR, message)
            .at(Span::new(start, start + rest.len()))
            .hint("begin the document on the next line");
        problems.push(problem);
    }
}

fn behind_the_end(span: Span) -> Problem {
    Problem::error(codes::SEPARATOR, "kubectl does not read what is behind `...`")
        .at(span)
        .hint("separate documents by a line `---`")
}

fn no_object(value: &Value, span: Span) -> Problem {
    let what = kind_of(value);
    Problem::error(codes::NO_OBJECT, format!("the document is {what}, not an object"))
        .at(span)
        .hint("a manifest is a mapping with apiVersion, kind and metadata")
}

fn too_large() -> Problem {
    let mebibytes = MAX_DOCUMENT_BYTES >> 20;
    Problem::error(codes::LIMIT, format!("the document is larger than {mebibytes} MiB"))
        .hint("the API server takes objects up to about 1.5 MiB; split a list into several files")
}

fn unreadable(fault: &Fault, source: &Source) -> Problem {
    let end = Span::at(source.text().len());
    match fault {
        Fault::NotUtf8 { byte } => {
            let message = format!("byte {byte} of the file is not valid UTF-8");
            Problem::error(codes::ENCODING, message)
                .at(end)
                .hint("save the file as UTF-8; a file that is no text does not belong here")
        }
        Fault::OtherEncoding(encoding) => {
            let message = format!("the file is {encoding}, and kubectl reads UTF-8 only");
            Problem::error(codes::ENCODING, message).at(end).hint("save the file as UTF-8")
        }
        Fault::Binary { byte } => {
            let at = source.text().find('\0').map_or(end, |at| Span::new(at, at + 1));
            let message = format!("byte {byte} of the file is zero, so it is no text");
            Problem::error(codes::ENCODING, message).at(at).hint("leave binary files out")
        }
        Fault::TooLarge => too_large().at(Span::at(0)),
    }
}

#[cfg(test)]
mod tests;
