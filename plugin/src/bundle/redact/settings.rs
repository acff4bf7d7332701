//! Names with `=` or `:` behind them.

use super::REDACTED;
use super::names::{self, Meaning, is_place};
use super::quotes::near;
use super::scan::{Name, Scanner, shifted};
use super::separators::{self, Kind, Separator};
use super::values::{self, Place, Span};

const SCHEMES: [&str; 7] = ["bearer", "basic", "token", "digest", "negotiate", "apikey", "key"];
/// How far from `name: DB_PASSWORD` its `value:` may be.
const BESIDE: usize = 256;

impl<'a> Scanner<'a> {
    /// A name with `=` or `:` behind it.
    pub(super) fn setting(
        &mut self,
        name: Name<'a>,
        word: &str,
        separator: Separator,
    ) -> Option<Span> {
        let start = name.end + separator.length;
        let value = self.rest(start);
        // The end of an element has no value behind it.
        if separator.kind == Kind::Tag && self.text.get(..name.begin)?.ends_with('/') {
            return None;
        }
        if ["name", "Name", "key", "Key"].contains(&word) {
            self.named = named(value);
            self.named_until = start + BESIDE;
        }
        let mut place = self.place(name, start);
        let meaning = self.meaning(name, word, value, place);
        if meaning == Meaning::Plain {
            return None;
        }
        let (start, value) = match separators::said(value.trim_start_matches('"')) {
            Some((length, true)) if !value.starts_with('"') => {
                place.is_key = false;
                (start + length, self.rest(start + length))
            }
            Some(_) => return None,
            None => (start, value),
        };
        let lower = word.to_lowercase();
        place.is_header = lower.ends_with("cookie") || lower.ends_with("authorization");
        if lower.ends_with("authorization")
            && let Some(span) = after_scheme(value, place)
        {
            return span.map(|span| shifted(span, start));
        }
        if meaning == Meaning::Place {
            return self.place_of_secret(start, value, separator, place);
        }
        values::span(value, separator, Place { line: self.line_behind(start), ..place })
            .map(|span| shifted(span, start))
    }

    fn meaning(&self, name: Name<'_>, word: &str, value: &str, place: Place) -> Meaning {
        let lower = word.to_lowercase();
        let is_signature = ["sig", "signature", "code"].iter().any(|end| lower.ends_with(end));
        if self.is_content(name, word, value) || (place.in_query && is_signature) {
            return Meaning::Secret;
        }
        if lower != "value" {
            return names::meaning(word);
        }
        if name.begin < self.named_until && self.named != Meaning::Plain {
            return self.named;
        }
        if is_named_behind(value) { Meaning::Secret } else { Meaning::Plain }
    }

    /// A value that should be a path or a name.
    fn place_of_secret(
        &self,
        start: usize,
        value: &str,
        separator: Separator,
        place: Place,
    ) -> Option<Span> {
        let line = near(value.get(..self.line_behind(start))?, 1024);
        if line.trim().is_empty() || value.starts_with(['{', '[']) {
            return None;
        }
        let is_end = |letter: char| letter.is_whitespace() || "\"'\\,;)]}<>&".contains(letter);
        let bare = line.trim_start_matches(['"', '\'', '\\']);
        let first = bare.get(..bare.find(is_end).unwrap_or(bare.len()))?;
        let behind = bare.get(first.len()..)?.trim_start();
        let is_alone = !place.is_key
            || behind.is_empty()
            || !behind.starts_with(char::is_alphanumeric)
            || separator.kind == Kind::Equals;
        if is_place(first) && is_alone {
            return None;
        }
        values::span(value, separator, Place { line: self.line_behind(start), ..place })
            .map(|span| shifted(span, start))
    }

    /// `data:` of a manifest of a Secret, keys of BGP, and copies of whole objects.
    fn is_content(&self, name: Name<'_>, word: &str, value: &str) -> bool {
        let is_block = value.starts_with(['{', '[', '\n', '\r', '|', '>']);
        if self.has_secret && is_block && ["data", "stringData", "annotations"].contains(&word) {
            return true;
        }
        if is_block && ["auth_data", "key_items"].contains(&word) {
            return true;
        }
        let before = self.text.get(..name.begin).unwrap_or_default();
        word.starts_with("original") && before.ends_with("kapp.k14s.io/")
    }
}

/// `name: DB_PASSWORD`: what the name that is the value says about a value beside it.
fn named(value: &str) -> Meaning {
    let value = near(value, 200).trim_start_matches(['"', '\'', '\\']);
    let is_end = |letter: char| letter.is_whitespace() || "\"'\\,}<>".contains(letter);
    let name = value.get(..value.find(is_end).unwrap_or(value.len())).unwrap_or_default();
    names::meaning(name.rsplit('/').next().unwrap_or(name))
}

/// The name may also come behind the value, in the same element.
fn is_named_behind(value: &str) -> bool {
    let near = near(value, BESIDE / 2);
    let end = near.find('}').into_iter().chain(near.find("- ")).min().unwrap_or(near.len());
    let element = near.get(..end).unwrap_or_default();
    let Some(at) = element.find("name") else { return false };
    let is_word = element.get(..at).is_some_and(|before| before.ends_with([' ', '"', '\'', ',']));
    let behind = element.get(at + 4..).unwrap_or_default();
    is_word
        && separators::behind_name(behind)
            .and_then(|separator| behind.get(separator.length..))
            .is_some_and(|name| named(name) == Meaning::Secret)
}

/// `Bearer X`: the scheme stays, and the value is a word. Nothing, where the header has no scheme that is known.
fn after_scheme(value: &str, place: Place) -> Option<Option<Span>> {
    let (scheme, _) = near(value, 24).split_once([' ', '\t'])?;
    if !SCHEMES.contains(&scheme.trim_start_matches(['"', '\'', '\\']).to_lowercase().as_str()) {
        return None;
    }
    let rest = value.get(scheme.len()..)?;
    let start = value.len() - rest.trim_start_matches([' ', '\t']).len();
    let value = value.get(start..)?;
    let quote = scheme.chars().find(|letter| ['"', '\''].contains(letter)).or(place.open);
    let length = values::word(value, Place { open: quote, ..place });
    let word = value.get(..length)?;
    Some((length > 0 && word != REDACTED).then_some(Span {
        start,
        end: start + length,
        around: "",
    }))
}
