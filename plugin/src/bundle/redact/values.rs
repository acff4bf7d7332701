//! How far a value goes, by the form it stands in.

use super::REDACTED;
use super::blocks;
use super::names::{is_chosen, is_variable};
use super::quotes::{self, near};
use super::separators::{Kind, Separator};

/// Where a value stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The name is the first of its line: the value may have blanks, and go on below.
    pub(super) is_key: bool,
    /// The column of the name.
    pub(super) column: usize,
    /// The quote in which all this stands.
    pub(super) open: Option<char>,
    /// In `{a: b, c: d}`.
    pub(super) in_flow: bool,
    /// In the query of a URL.
    pub(super) in_query: bool,
    /// Behind `Cookie:` and `Authorization:` all is one value.
    pub(super) is_header: bool,
    /// How much of the line there is from the value on.
    pub(super) line: usize,
}

/// A value: from where to where in the text, and what is written before and behind its replacement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) around: &'static str,
}

/// Words that follow a name in a sentence and are no value.
const OF_SENTENCES: [&str; 36] = [
    "failed",
    "error",
    "not",
    "no",
    "invalid",
    "missing",
    "unable",
    "cannot",
    "could",
    "the",
    "a",
    "an",
    "is",
    "was",
    "unexpected",
    "expected",
    "required",
    "context",
    "timeout",
    "expired",
    "unauthorized",
    "forbidden",
    "rpc",
    "dial",
    "open",
    "stat",
    "lookup",
    "found",
    "unknown",
    "Get",
    "Post",
    "serviceaccounts",
    "secrets",
    "secret",
    "configmaps",
    "couldn't",
];
const NOTHING: [&str; 10] =
    ["true", "false", "null", "none", "None", "nil", "<nil>", "~", "<none>", "<set"];

/// The value at the start of the text (behind its separator); nothing, where there is none to hide.
pub(super) fn span(text: &str, separator: Separator, place: Place) -> Option<Span> {
    if separator.kind == Kind::Tag {
        return tagged(text);
    }
    let line = text.get(..place.line)?;
    if line.trim_start().is_empty() {
        return below(text, line.len(), separator, place);
    }
    if let Some((quote, start)) = quotes::opening(text)
        && !is_closing(text, place)
    {
        return quoted(text, quote, start, place);
    }
    if text.starts_with(['{', '[']) && !line.starts_with("[]") && !line.starts_with("{}") {
        return bracketed(text, separator, place);
    }
    if place.is_key && place.open.is_none() && separator.kind != Kind::Blank {
        return to_end_of_line(text, line, separator, place);
    }
    in_sentence(text, line, separator, place)
}

/// What looks like an opening quote is the end of that in which all this stands: `"password="`.
fn is_closing(text: &str, place: Place) -> bool {
    let letter = text.trim_start_matches('\\').chars().next();
    place.open.is_some() && letter == place.open
}

fn tagged(text: &str) -> Option<Span> {
    let far = near(text, 16 * 1024);
    let end = far.find("</").or_else(|| text.find('\n')).unwrap_or(text.len());
    let value = text.get(..end)?.trim();
    (!value.is_empty() && value != REDACTED).then_some(Span { end, ..Span::default() })
}

/// On the next lines: a string of JSON, or all that is further in.
fn below(text: &str, line: usize, separator: Separator, place: Place) -> Option<Span> {
    let next = text.len() - text.get(line..)?.trim_start().len();
    if separator.is_quoted {
        let value = text.get(next..)?;
        if let Some((quote, start)) = quotes::opening(value) {
            let span = quoted(value, quote, start, place)?;
            return Some(Span { start: span.start + next, end: span.end + next, around: "" });
        }
        if value.starts_with(['{', '[']) {
            return Some(Span { start: next, end: next + quotes::bracketed(value), around: "\"" });
        }
    }
    if !place.is_key {
        return None;
    }
    let length = blocks::deeper(text.get(line..)?, place.column, true);
    if length == 0 || blocks::is_reference(text.get(line..line + length)?) {
        return None;
    }
    Some(Span { start: 0, end: line + length, around: " " })
}

fn quoted(text: &str, quote: quotes::Quote, start: usize, place: Place) -> Option<Span> {
    let end = start + quotes::inside(text.get(start..)?, quote);
    let value = text.get(start..end)?;
    if value.is_empty() || value == REDACTED || is_variable(value) {
        return None;
    }
    // `'a'b'c'` of a shell is one value.
    let behind = text.get(end..)?.chars().nth(1);
    let goes_on = behind.is_some_and(|letter| {
        letter.is_alphanumeric()
            || (['"', '\'', '$'].contains(&letter) && Some(letter) != place.open)
    });
    if !goes_on || quote.is_triple || text.starts_with('\\') {
        return Some(Span { start, end, around: "" });
    }
    // The quotes go with it, since one of them would be left.
    let rest = text.get(end..)?;
    let more = if place.is_key && place.open.is_none() {
        let line = rest.get(..rest.find('\n').unwrap_or(rest.len()))?;
        match blocks::deeper(rest.get(line.len()..)?, place.column, false) {
            0 => line.trim_end().len(),
            deeper => line.len() + deeper,
        }
    } else {
        word(rest, place)
    };
    Some(Span { start: 0, end: end + more, around: "" })
}

fn bracketed(text: &str, separator: Separator, place: Place) -> Option<Span> {
    let length = quotes::bracketed(text);
    if separator.is_quoted {
        let around = if text.starts_with("{\\") || text.starts_with("[\\") { "" } else { "\"" };
        return Some(Span { start: 0, end: with_rest(text, length, place), around });
    }
    if place.is_key && place.open.is_none() {
        let rest = text.get(length..)?;
        let line = length + rest.find('\n').unwrap_or(rest.len());
        let deeper = blocks::deeper(text.get(line..)?, place.column, false);
        return Some(Span { start: 0, end: line + deeper, around: "" });
    }
    Some(Span { start: 0, end: with_rest(text, length, place), around: "" })
}

/// With what hangs on the end of the value.
fn with_rest(text: &str, end: usize, place: Place) -> usize {
    let rest = text.get(end..).unwrap_or_default();
    if rest.chars().next().is_none_or(is_behind_marker) { end } else { end + word(rest, place) }
}

/// What may come behind a value that was taken out.
fn is_behind_marker(letter: char) -> bool {
    letter.is_whitespace() || "\"',;}])<\\&@`".contains(letter)
}

fn to_end_of_line(text: &str, line: &str, separator: Separator, place: Place) -> Option<Span> {
    let (first, rest) = line.split_at(line.find(char::is_whitespace).unwrap_or(line.len()));
    // `password=x user=y`
    let is_logfmt = separator.kind == Kind::Equals
        && rest
            .trim_start()
            .find(|letter: char| !letter.is_alphanumeric() && !"_-.".contains(letter))
            .is_some_and(|at| {
                at > 0 && rest.trim_start().get(at..).is_some_and(|x| x.starts_with('='))
            });
    let content = if is_logfmt { first } else { line.trim_end() };
    let deeper = if is_logfmt {
        0
    } else {
        blocks::deeper(text.get(line.len()..)?, place.column, content.starts_with(['|', '>']))
    };
    if deeper == 0 && is_nothing(content) {
        return None;
    }
    let end = if deeper == 0 { content.len() } else { line.len() + deeper };
    Some(Span { start: 0, end, around: "" })
}

fn in_sentence(text: &str, line: &str, separator: Separator, place: Place) -> Option<Span> {
    // Words of sentences are short; a line may be long, and have many names.
    let first = near(line, 64).split(char::is_whitespace).next()?;
    if separator.kind == Kind::Colon && OF_SENTENCES.contains(&first.trim_end_matches(',')) {
        return None;
    }
    let length = if place.is_header { header(line, place) } else { word(text, place) };
    let value = text.get(..length)?;
    (!is_nothing(value)).then_some(Span { start: 0, end: length, around: "" })
}

fn is_nothing(value: &str) -> bool {
    let value = value.trim();
    let bare = value.trim_end_matches([',', ';', '.', ')', ']', '}']);
    bare.is_empty() || NOTHING.contains(&bare) || bare == REDACTED || is_variable(value)
}

/// A scheme stays; behind one that is known the value is a word, otherwise all that comes.
fn header(line: &str, place: Place) -> usize {
    match place.open {
        Some(quote) => line.find(quote).unwrap_or(line.len()),
        None => line.trim_end().len(),
    }
}

/// Until a blank, or the end of that in which it stands.
pub(super) fn word(text: &str, place: Place) -> usize {
    let closed = near(text, 64).find(')').and_then(|at| text.get(..=at)).unwrap_or_default();
    if text.starts_with("$(") && !is_variable(closed) {
        let length = quotes::bracketed(text.get(1..).unwrap_or_default()) + 1;
        return with_rest(text, length, place);
    }
    if let Some(rest) = text.strip_prefix(REDACTED)
        && rest.chars().next().is_none_or(is_behind_marker)
    {
        return REDACTED.len();
    }
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        let is_end = letter.is_whitespace()
            || Some(letter) == place.open
            || (place.in_flow && [',', '}', ']'].contains(&letter))
            || (place.in_query && ['&', '#', '"', '\'', '<', '>'].contains(&letter));
        if is_end {
            let value = text.get(..at).unwrap_or_default();
            return if Some(letter) == place.open {
                value.trim_end_matches('\\').len()
            } else {
                at
            };
        }
        let is_escape = place.open.is_some() && before == '\\' && ['n', 'r'].contains(&letter);
        if is_escape && !text.get(..at - 1).is_some_and(|value| value.ends_with('\\')) {
            return at - 1;
        }
        before = letter;
    }
    text.len()
}

/// Behind a name and a blank, in a sentence: only what is no word of one.
pub(super) fn chosen(text: &str, place: Place) -> Option<Span> {
    let length = word(text, place);
    let value = text.get(..length)?;
    (is_chosen(value) && !value.starts_with(REDACTED))
        .then_some(Span { end: length, ..Span::default() })
}
