//! Texts of policies and of requests, cut to a length that a log line, a status and a terminal can take.

use std::borrow::Cow;

use crate::description::MAX_NAME_BYTES;

/// Bytes of one text of a policy in a finding, a log line or an error.
pub const MAX_TEXT_BYTES: usize = 500;

/// Bytes of one text of a request in an error or a log line: who may send a request is not to write into
/// them what he likes. Names, which an API server bounds, have more ([`quoted_name`]).
pub const MAX_QUOTED_BYTES: usize = 100;

/// The beginning of the text, and how long it was; the text itself where it is short.
#[must_use]
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}… ({} bytes)", beginning(text, most), text.len()))
}

/// So much of a request's text as an error or a log line may have.
#[must_use]
pub fn quoted(text: &str) -> Cow<'_, str> {
    cut(text, MAX_QUOTED_BYTES)
}

/// So much of a name in a request; an API server takes no longer one.
#[must_use]
pub fn quoted_name(name: &str) -> Cow<'_, str> {
    cut(name, MAX_NAME_BYTES)
}

/// As much of the text as these bytes hold, in whole characters.
#[must_use]
pub fn beginning(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

/// The same, of a text that is owned and mostly short.
pub(crate) fn shorten(text: String) -> String {
    if text.len() <= MAX_TEXT_BYTES { text } else { cut(&text, MAX_TEXT_BYTES).into_owned() }
}

/// A policy's text as others may show it: its beginning, and what a reader would not see in it written out. A
/// policy may repeat what a user has written.
pub(crate) fn shown(text: String) -> String {
    let is_hidden = |letter: char| letter != '\n' && is_unseen(letter);
    let text = shorten(text);
    if !text.contains(is_hidden) {
        return text;
    }
    let mut shown = String::with_capacity(2 * text.len());
    for letter in text.chars() {
        if is_hidden(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Whether a reader does not see the character: controls, which a terminal obeys, and what has no width or
/// turns the direction of a line.
#[must_use]
pub fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{E0000}'..='\u{E007F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::{MAX_TEXT_BYTES, beginning, cut, shown};

    #[test]
    fn what_nobody_sees_in_a_policys_text_is_written_out() {
        let text = "label a=\u{202e}b\u{1b}[2J\tä\nnext".to_owned();
        assert_eq!(shown(text), "label a=\\u{202e}b\\u{1b}[2J\\tä\nnext");
        assert!(shown("\u{202e}".repeat(MAX_TEXT_BYTES)).len() < 10 * MAX_TEXT_BYTES);
        assert_eq!(shown("plain ü".to_owned()), "plain ü");
    }

    #[test]
    fn the_beginning_of_a_text_ends_between_two_characters() {
        assert_eq!(beginning("short", 500), "short");
        assert_eq!(beginning("ééé", 3), "é");
        assert_eq!(beginning("é", 1), "");
    }

    #[test]
    fn a_long_text_is_cut_between_two_characters_and_a_short_one_is_left_alone() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "longe… (6 bytes)");
        assert_eq!(cut("ééé", 3), "é… (6 bytes)");
    }
}
