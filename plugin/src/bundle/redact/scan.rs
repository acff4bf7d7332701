//! Settings in texts: names that say that a secret follows, however it is tied to them.

use std::cell::Cell;

use super::REDACTED;
use super::flags::{self, Program};
use super::names::Meaning;
use super::quotes::near;
use super::separators;
use super::values::{Place, Span};

/// What may be before a key in its line: signs of lists, comments and differences, and words.
const LEAD: [char; 10] = [' ', '\t', '-', '"', '\'', '#', ';', '+', '*', '\u{feff}'];
const BEFORE_KEYS: [&str; 7] = ["", "export", "set", "ENV", "ARG", "declare", "env"];
/// The text without the values of its secret settings.
pub(super) fn settings(text: &str) -> String {
    let scanner = Scanner {
        text,
        clean: String::with_capacity(text.len()),
        copied: 0,
        line: 0,
        line_end: Cell::new(None),
        open: None,
        program: None,
        named: Meaning::Plain,
        named_until: 0,
        has_secret: has_manifest_of_secret(text),
    };
    scanner.run()
}

fn has_manifest_of_secret(text: &str) -> bool {
    text.match_indices("kind").any(|(at, _)| {
        let behind = near(text.get(at + 4..).unwrap_or_default(), 24);
        let kind = behind.trim_start_matches(['"', '\'', '\\', ':', ' ']);
        kind.strip_prefix("Secret").is_some_and(|rest| {
            rest.starts_with("List") || !rest.starts_with(|next: char| next.is_alphanumeric())
        }) && behind.contains(':')
    })
}

pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    clean: String,
    /// Until where the text is in `clean`.
    copied: usize,
    /// Where the line begins.
    line: usize,
    /// Where the line ends that was asked for last.
    line_end: Cell<Option<usize>>,
    /// The quote that is open here.
    open: Option<char>,
    /// The program that the line runs.
    pub(super) program: Option<Program>,
    /// What the last `name: X` says about a `value:`, and until where.
    pub(super) named: Meaning,
    pub(super) named_until: usize,
    /// There is a manifest of a Secret in the text.
    pub(super) has_secret: bool,
}

/// A name: where it begins and ends.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) word: &'a str,
}

impl<'a> Scanner<'a> {
    fn run(mut self) -> String {
        let is_of_name = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
        let mut at = 0;
        while let Some(found) = self.rest(at).find(is_of_name) {
            let begin = at + found;
            self.pass(at, begin);
            let behind = self.rest(begin);
            let end = begin + behind.find(|letter| !is_of_name(letter)).unwrap_or(behind.len());
            let word = self.text.get(begin..end).unwrap_or_default();
            at = match self.secret(Name { begin, end, word }) {
                Some(span) if span.end > begin => {
                    self.pass(end, span.start);
                    self.hide(span)
                }
                _ => end,
            };
        }
        self.clean.push_str(self.rest(self.copied));
        self.clean
    }

    pub(super) fn rest(&self, from: usize) -> &'a str {
        self.text.get(from..).unwrap_or_default()
    }

    /// How much of the line there is behind this: looked for once a line, which may be long.
    pub(super) fn line_behind(&self, start: usize) -> usize {
        let end = self.line_end.get().filter(|end| *end >= start && start >= self.line);
        let end = end.unwrap_or_else(|| {
            let rest = self.rest(start);
            start + rest.find('\n').unwrap_or(rest.len())
        });
        self.line_end.set(Some(end));
        end - start
    }

    /// What is between two names: quotes open and close, and lines end.
    fn pass(&mut self, from: usize, to: usize) {
        let mut before = self.text.get(..from).and_then(|text| text.chars().next_back());
        for (at, letter) in self.text.get(from..to).unwrap_or_default().char_indices() {
            match letter {
                '\n' => {
                    self.line = from + at + 1;
                    (self.open, self.program) = (None, None);
                }
                '|' | ';' => self.program = None,
                letter => self.open = quote_behind(self.open, before, letter),
            }
            before = Some(letter);
        }
    }

    fn hide(&mut self, span: Span) -> usize {
        self.clean.push_str(self.text.get(self.copied..span.start).unwrap_or_default());
        let value = self.text.get(span.start..span.end).unwrap_or_default();
        self.clean.push_str(span.around);
        self.clean.push_str(REDACTED);
        self.clean.push_str(span.around.trim());
        if span.around == " " && value.ends_with('\r') {
            self.clean.push('\r');
        }
        self.copied = span.end;
        span.end
    }

    fn secret(&mut self, name: Name<'a>) -> Option<Span> {
        if name.word.starts_with('-')
            && let Some(span) = self.flag(name)
        {
            return span;
        }
        if let Some(program) = flags::program(name.word) {
            self.program = Some(program);
        }
        let word = name.word.trim_matches(['-', '.', '_']);
        match separators::behind_name(self.rest(name.end)) {
            Some(separator) => self.setting(name, word, separator),
            None => self.spoken(name, word),
        }
    }

    /// What is before the name in its line, if that is not too much to be looked at.
    pub(super) fn before(&self, name: Name<'a>) -> Option<&'a str> {
        let before = self.text.get(self.line..name.begin)?;
        (before.len() <= 256).then_some(before)
    }

    pub(super) fn place(&self, name: Name<'a>, start: usize) -> Place {
        let before = self.before(name);
        let lead = before.map(|before| before.trim_matches(LEAD));
        // `kubectl.kubernetes.io/last-applied-configuration: |`
        let is_prefixed =
            lead.is_some_and(|lead| lead.ends_with('/') && !lead.contains([' ', ':', '=']));
        let is_key = (is_prefixed || lead.is_some_and(|lead| BEFORE_KEYS.contains(&lead)))
            && !name.word.starts_with("--");
        let before = before.unwrap_or("x");
        let unquoted = before.trim_end_matches(['"', '\'', '\\']);
        let last = unquoted.trim_end().chars().next_back();
        Place {
            is_key,
            column: unquoted.len() - if is_prefixed { lead.map_or(0, str::len) } else { 0 },
            open: if start > name.end { self.open_at(name.end, start) } else { self.open },
            in_flow: !is_key && last.is_some_and(|last| ['{', '[', ','].contains(&last)),
            in_query: before.ends_with(['?', '&']),
            is_header: false,
            line: 0,
        }
    }

    /// The quote that is open where the value begins.
    pub(super) fn open_at(&self, from: usize, to: usize) -> Option<char> {
        let mut before = self.text.get(..from).and_then(|text| text.chars().next_back());
        let mut open = self.open;
        for letter in self.text.get(from..to).unwrap_or_default().chars() {
            open = if letter == '\n' { None } else { quote_behind(open, before, letter) };
            before = Some(letter);
        }
        open
    }
}

pub(super) fn shifted(span: Span, by: usize) -> Span {
    Span { start: span.start + by, end: span.end + by, ..span }
}

/// What is open behind the letter: an apostrophe within a word opens nothing.
fn quote_behind(open: Option<char>, before: Option<char>, letter: char) -> Option<char> {
    match (open, letter) {
        (Some(open), letter) if open == letter => None,
        (None, '"') => Some('"'),
        (None, '\'') if before.is_none_or(|before| !before.is_alphanumeric()) => Some('\''),
        (open, _) => open,
    }
}
