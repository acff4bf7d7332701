//! Syntax errors in words that need no knowledge of the YAML specification.

use granit_parser::{ErrorKind, ScanError};
use serde_json::Value;

use crate::problem::{Problem, codes};
use crate::read::MAX_DEPTH;

/// The problem that an error of the parser is, without its place.
pub(crate) fn problem(error: &ScanError) -> Problem {
    if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
        return too_deep();
    }
    let (message, hint) = words(error.kind());
    let message = message.map_or_else(|| error.kind().to_string(), str::to_owned);
    Problem::error(codes::SYNTAX, message).hint(hint)
}

/// The document nests too deeply.
pub(crate) fn too_deep() -> Problem {
    Problem::error(
        codes::LIMIT,
        format!("the document is nested more than {MAX_DEPTH} levels deep"),
    )
    .hint("the webhook refuses such objects: flatten it")
}

/// A tab is where only blanks may be.
pub(crate) fn tab() -> Problem {
    let (message, hint) = words(&ErrorKind::TabInIndentation);
    Problem::error(codes::SYNTAX, message.unwrap_or_default()).hint(hint)
}

/// What a value is, with an article.
pub(crate) const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// A message, where the parser's own says too little, and what to do.
const fn words(kind: &ErrorKind) -> (Option<&'static str>, &'static str) {
    use ErrorKind as E;
    match kind {
        E::TabNotAllowed
        | E::TabInBlockIndentation
        | E::TabInIndentation
        | E::TabInPlainScalar
        | E::TabAtBlockScalarStart => {
            (Some("unexpected tab where YAML wants blanks"), "indent with blanks only")
        }
        E::UnexpectedEof
        | E::UnexpectedEofBlockMapping
        | E::UnexpectedEofBlockSequence
        | E::UnexpectedEofFlowMapping
        | E::UnexpectedEofFlowSequence
        | E::UnexpectedEofImplicitFlowMapping => (
            Some("the document ends in the middle of a value"),
            "see whether the file was cut off, or a bracket or quote is not closed",
        ),
        E::UnclosedFlowCollection { .. } => {
            (Some("a bracket is not closed"), "close it by `}` or `]`")
        }
        E::UnclosedQuotedScalar => (Some("a quote is not closed"), "close it"),
        E::MismatchedFlowCollectionEnd { .. } | E::MisplacedFlowCollectionEnd => {
            (None, "see that `{` is closed by `}` and `[` by `]`")
        }
        E::ExpectedFlowMappingSeparator | E::ExpectedFlowSequenceSeparator => {
            (Some("a comma or a closing bracket is missing"), "separate entries by commas")
        }
        E::ExpectedBlockMappingKey | E::ExpectedBlockSequenceEntry | E::InvalidIndentation => (
            Some("the indentation does not fit the lines above"),
            "align the fields of one mapping, and the `-` of one list",
        ),
        E::MappingValueNotAllowed => (
            Some("unexpected `: ` where no value may begin"),
            "quote a text that contains `: `, and see that the line above is complete",
        ),
        E::SimpleKeyExpected | E::InvalidSimpleKey => (
            Some("a key has no `:` behind it"),
            "write `key: value`, with a blank behind the colon; quote a text of several lines",
        ),
        E::UnexpectedCharacter { .. } => {
            (None, "quote a text that begins with one of @ ` % & * ! | > [ ] { } ,")
        }
        E::UnknownQuotedScalarEscape | E::InvalidQuotedScalarHexEscape => {
            (None, "double the backslash, or use single quotes")
        }
        E::BlockSequenceEntryNotAllowed | E::BlockEntryInFlowCollection => {
            (Some("unexpected `- ` where no list may begin"), "begin the list on a line of its own")
        }
        E::InvalidColonPlacement => (
            Some("unexpected `:` where a list expects a comma or `]`"),
            "close the bracket before it, or quote a text that contains `:`",
        ),
        E::CommentNotSeparated => (None, "put a blank before the `#`, or quote the text"),
        E::ExpectedDocumentStart | E::MissingDocumentEndBeforeDirective => {
            (None, "separate documents by a line `---`; kubectl takes no `%` directives")
        }
        E::UndeclaredTagHandle => (None, "quote a text that begins with `!`"),
        _ => (None, "see https://yaml.org/spec/1.2.2 for the syntax, or quote the text"),
    }
}
