//! Names with a blank behind them: flags, directives, and words of sentences.

use super::REDACTED;
use super::flags;
use super::names::is_secret;
use super::quotes::near;
use super::scan::{Name, Scanner, shifted};
use super::separators::{self, Kind, Separator};
use super::values::{self, Place, Span};

/// Names behind which a blank is enough, where the line says no more: `password X`, `requirepass X`.
const DIRECTIVES: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "requirepass",
    "masterauth",
    "rocommunity",
    "rwcommunity",
    "rocommunity6",
    "rwcommunity6",
    "community",
    "pwd",
];
/// Names behind which in a sentence a blank is enough, if what follows is no word of one.
const SPOKEN: [&str; 4] = ["bearer", "basic", "token", "cookie"];
impl<'a> Scanner<'a> {
    /// `--password X`, `-pX` of a program that is known, `-p X`; nothing within, if it is one and hidden already.
    pub(super) fn flag(&self, name: Name<'a>) -> Option<Option<Span>> {
        let bare = name.word.trim_start_matches('-');
        let behind = self.rest(name.end);
        let is_long = name.word.starts_with("--");
        let is_first = self
            .text
            .get(..name.begin)
            .and_then(|before| before.chars().next_back())
            .is_none_or(|before| before.is_whitespace() || "\"'[(,`".contains(before));
        if !is_first || bare.is_empty() {
            return None;
        }
        let place = self.place(name, 0);
        let one_dash = name.word.strip_prefix('-').unwrap_or(name.word);
        let is_short = flags::is_short(one_dash, self.program);
        if is_short || (is_secret(bare) && (is_long || !behind.starts_with(':'))) {
            let separator = if is_short && behind.starts_with(['"', '\'']) {
                Separator { kind: Kind::Blank, length: 0, is_quoted: false }
            } else {
                separators::behind_flag(behind)?
            };
            let start = name.end + separator.length;
            let place = Place { is_key: false, is_header: false, ..place };
            let open = self.open_at(name.end, start);
            let span = values::span(
                self.rest(start),
                separator,
                Place { open, line: self.line_behind(start), ..place },
            );
            return Some(span.map(|span| shifted(span, start)));
        }
        if is_long || (bare.len() == 1 && self.program.is_none()) {
            return None;
        }
        let length = values::word(near(self.rest(name.begin), 512), place);
        let argument = self.text.get(name.begin..name.begin + length)?;
        let flag = flags::attached(argument, self.program)?;
        let value = argument.get(flag.len()..)?;
        let start = name.begin + flag.len();
        let is_hidden = value.trim_matches(['"', '\'']) == REDACTED || value.is_empty();
        Some((!is_hidden).then_some(Span { start, end: start + value.len(), around: "" }))
    }

    /// A name with a blank behind it.
    pub(super) fn spoken(&self, name: Name<'a>, word: &str) -> Option<Span> {
        let behind = self.rest(name.end);
        let value = behind.trim_start_matches([' ', '\t']);
        let start = name.end + behind.len() - value.len();
        if start == name.end || value.is_empty() {
            return None;
        }
        if let Some(span) = self.statement(name, word, start) {
            return Some(span);
        }
        let lower = word.to_lowercase();
        if !["d", "ase", "ode", "pass", "auth", "y", "y6", "secret", "token", "cookie", "er", "ic"]
            .iter()
            .any(|end| lower.ends_with(end))
        {
            return None;
        }
        let line = near(value, 512);
        let line = line.get(..line.find('\n').unwrap_or(line.len()))?;
        let place = self.place(name, start);
        if lower.ends_with("secret") && line.trim_end().ends_with(';') {
            return Some(shifted(before_semicolon(line)?, start));
        }
        let is_directive = DIRECTIVES.contains(&lower.as_str());
        if is_directive
            && (self.is_directive(name) || line.contains(';'))
            && !line.trim().contains(' ')
        {
            let separator = Separator { kind: Kind::Blank, length: 0, is_quoted: false };
            let place = Place { is_key: false, ..place };
            return values::span(
                value,
                separator,
                Place { line: self.line_behind(start), ..place },
            )
            .map(|span| shifted(span, start));
        }
        if is_directive
            || SPOKEN.contains(&lower.as_str())
            || ["password", "token", "cookie"].iter().any(|end| lower.ends_with(end))
        {
            let said = ["is ", "was ", "to "]
                .iter()
                .find_map(|word| value.strip_prefix(word))
                .unwrap_or(value);
            let start = start + value.len() - said.len();
            return values::chosen(said, place).map(|span| shifted(span, start));
        }
        None
    }

    /// The first word of its line, or behind a login, as in .netrc.
    fn is_directive(&self, name: Name<'a>) -> bool {
        let before = self.before(name).unwrap_or("x").trim();
        before.is_empty()
            || ["enable", "set"].contains(&before)
            || ["login ", "machine ", "neighbor ", "username "]
                .iter()
                .any(|word| before.contains(word))
    }
}

/// `secret X;` and `secret "X";`
fn before_semicolon(line: &str) -> Option<Span> {
    let end = line.find(';')?;
    let value = line.get(..end)?;
    let bare = value.trim_matches(['"', '\'', ' ']);
    let start = value.find(bare)?;
    (!bare.is_empty() && bare != REDACTED).then_some(Span {
        start,
        end: start + bare.len(),
        around: "",
    })
}
