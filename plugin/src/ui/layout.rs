//! How text looks: width, characters, colours. Nothing is written here.

use anstyle::{AnsiColor, Style};
use opensdn_validate::report::Layout;

/// The colours of the words that are highlighted; everything is readable without them.
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

/// Width of text without a terminal.
const DEFAULT_WIDTH: usize = 80;
/// Wider than this, lines are hard to read.
const MAX_WIDTH: usize = 100;
const MIN_WIDTH: usize = 40;

/// The terminal's; defaults where there is none.
pub(super) fn of_terminal() -> Layout {
    let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let columns = columns.unwrap_or(DEFAULT_WIDTH);
    Layout { width: columns.clamp(MIN_WIDTH, MAX_WIDTH), unicode: says_utf8() }
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
    fn shortens_to_less_than_the_width() {
        assert_eq!(shortened("short", 10), "short");
        assert_eq!(shortened("much too long", 10), "much t...");
    }
}
