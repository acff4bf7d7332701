//! Secrets behind a name and a blank, as databases, routers and tables write them: `PASSWORD 'X'`, `password 7 X`,
//! `| password | X |`.

use super::REDACTED;
use super::names::{is_secret, is_variable};
use super::quotes::{self, near};
use super::scan::{Name, Scanner, shifted};
use super::values::{self, Place, Span};

/// How routers say in which form a password is written.
const FORMS: [&str; 5] = ["0 ", "5 ", "7 ", "8 ", "9 "];
/// More is no value of one of these.
const MOST: usize = 512;

impl<'a> Scanner<'a> {
    /// The secret in what is behind a name and a blank, which begins at `start`.
    pub(super) fn statement(&self, name: Name<'a>, word: &str, start: usize) -> Option<Span> {
        // Most words are none of these, and a log has many.
        let is_named = is_secret(word);
        if !is_named && !["IDENTIFIED", "identified", "digest"].contains(&word) {
            return None;
        }
        let value = near(self.rest(start), MOST);
        let value = value.get(..value.find('\n').unwrap_or(value.len()))?;
        let place = Place { is_key: false, ..self.place(name, start) };
        let span = match word {
            "IDENTIFIED" | "identified" => {
                let behind = value.strip_prefix("BY ").or_else(|| value.strip_prefix("by "))?;
                let span = in_quotes(behind, place)?;
                Some(shifted(span, value.len() - behind.len()))
            }
            // Of ZooKeeper's shell: a user and a password.
            "digest" if self.before(name)?.trim_end().ends_with("addauth") => {
                let length = values::word(value, place);
                (length > 0).then_some(Span { end: length, ..Span::default() })
            }
            _ if !is_named => None,
            _ if value.starts_with('|') => self.in_table(name, value),
            // `secret "redis-tls" not found` says which one.
            _ if ["secret", "secrets"].iter().any(|end| word.to_lowercase().ends_with(end)) => None,
            _ => in_quotes(value, place)
                .or_else(|| of_router(value, place))
                .or_else(|| self.alone(name, word, value)),
        };
        span.map(|span| shifted(span, start))
    }

    /// `| password | X |`
    fn in_table(&self, name: Name<'a>, value: &str) -> Option<Span> {
        let is_cell = self.before(name)?.trim_end().ends_with('|');
        let cell = value.get(1..)?;
        let cell = cell.get(..cell.find('|')?)?;
        let text = cell.trim();
        let start = 1 + cell.len() - cell.trim_start().len();
        let is_value = is_cell && !text.is_empty() && text != REDACTED;
        is_value.then_some(Span { start, end: start + text.len(), around: "" })
    }

    /// `DB_PASSWORD X` and `rocommunity X 10.0.0.0/8`, where they begin a line.
    fn alone(&self, name: Name<'a>, word: &str, value: &str) -> Option<Span> {
        let is_first = self.before(name)?.trim().is_empty();
        let mut words = value.split_whitespace();
        let (first, more) = (words.next()?, words.next().is_some());
        let is_setting = word.contains('_') && !word.contains(char::is_lowercase) && !more;
        let is_community =
            ["rocommunity", "rwcommunity", "rocommunity6", "rwcommunity6"].contains(&word);
        let is_value = first != REDACTED && !is_variable(first);
        let meant = is_first && (is_setting || is_community) && is_value;
        meant.then_some(Span { end: first.len(), ..Span::default() })
    }
}

/// A word in quotes; what has blanks is a sentence.
fn in_quotes(value: &str, place: Place) -> Option<Span> {
    let (quote, start) = quotes::opening(value)?;
    let letter = value.get(..start)?.chars().next_back();
    let inner = value.get(start..)?;
    let inner = inner.get(..quotes::inside(inner, quote))?;
    let is_value = letter != place.open
        && !inner.is_empty()
        && !inner.contains(char::is_whitespace)
        && inner != REDACTED
        && !is_variable(inner);
    is_value.then_some(Span { start, end: start + inner.len(), around: "" })
}

/// `password 7 X`
fn of_router(value: &str, place: Place) -> Option<Span> {
    let form = FORMS.iter().find(|form| value.starts_with(**form))?;
    let behind = value.get(form.len()..)?;
    let length = values::word(behind, place);
    let is_value = length > 0 && behind.get(..length) != Some(REDACTED);
    is_value.then_some(Span { start: form.len(), end: form.len() + length, around: "" })
}
