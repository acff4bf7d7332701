//! How text looks: width, characters, colours. Nothing is written here.

use anstyle::{AnsiColor, Style};

/// The colours of the words that stand out; everything is readable without them.
pub mod style {
    use super::{AnsiColor, Style};

    /// Errors, refusals.
    pub const ERROR: Style = AnsiColor::BrightRed.on_default().bold();
    /// Warnings.
    pub const WARNING: Style = AnsiColor::BrightYellow.on_default().bold();
    /// Advice.
    pub const HINT: Style = AnsiColor::BrightCyan.on_default().bold();
    /// What has passed.
    pub const GOOD: Style = AnsiColor::BrightGreen.on_default().bold();
    /// Headings, names.
    pub const STRONG: Style = Style::new().bold();
    /// What matters less.
    pub const FAINT: Style = Style::new().dimmed();
}

/// Width of text where nobody sees a terminal.
const DEFAULT_WIDTH: usize = 80;
/// Wider than this, lines are hard to read.
const MAX_WIDTH: usize = 100;
const MIN_WIDTH: usize = 40;

/// How wide and with which characters text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Whether characters beyond ASCII may be used for drawing.
    pub unicode: bool,
}

impl Look {
    pub(super) fn of_terminal() -> Self {
        let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let columns = columns.unwrap_or(DEFAULT_WIDTH);
        Self { width: columns.clamp(MIN_WIDTH, MAX_WIDTH), unicode: says_utf8() }
    }
}

/// The first of the variables that is set decides, as for the C library.
fn says_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty())
        .unwrap_or_default()
        .to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
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
            if columns > 0 && columns + 1 + word.chars().count() > width {
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

/// The text cut so that a line of it cannot overflow.
pub(super) fn shortened(text: &str, width: usize) -> String {
    let room = width.saturating_sub(1);
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(room.saturating_sub(3)).collect();
    cut.push_str("...");
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_blanks_only() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a verylongcommand b", 5), ["a", "verylongcommand", "b"]);
        assert_eq!(wrap("two\n\nparagraphs", 20), ["two", "", "paragraphs"]);
    }

    #[test]
    fn shortens_to_less_than_the_width() {
        assert_eq!(shortened("short", 10), "short");
        assert_eq!(shortened("much too long", 10), "much t...");
    }
}
