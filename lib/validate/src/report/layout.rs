//! How wide and with which characters text for people is written. Whether there is a terminal is
//! the program's business.

/// How wide and with which characters text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Columns.
    pub width: usize,
    /// Whether characters beyond ASCII may be used for drawing.
    pub unicode: bool,
}

/// The text in lines of at most `width` columns, broken at blanks; what has none stays whole, so
/// that a command can be copied.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let columns = line.chars().count();
            let fits = columns + 1 + word.chars().count() <= width;
            if columns > 0 && !fits && !is_command(word) {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

/// Whether a line that begins so is a command to a runner of CI, indented or not: no line is broken before it, as the
/// text may be a document's.
fn is_command(word: &str) -> bool {
    word.starts_with("::") || word.starts_with("##")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_blanks_only() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a verylongcommand b", 5), ["a", "verylongcommand", "b"]);
        assert_eq!(wrap("two\n\nparagraphs", 20), ["two", "", "paragraphs"]);
        assert_eq!(wrap("one two ::error::x", 8), ["one two ::error::x"]);
    }
}
