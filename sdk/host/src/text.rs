//! Texts of policies, cut to a length that a log line, a status and a terminal can take.

use std::borrow::Cow;

/// Bytes of one text of a policy in a finding, a log line or an error.
pub const MAX_TEXT_BYTES: usize = 500;

/// The beginning of the text, and how long it was; the text itself where it is short.
#[must_use]
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}… ({} bytes)", beginning(text, most), text.len()))
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

#[cfg(test)]
mod tests {
    use super::{beginning, cut};

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
