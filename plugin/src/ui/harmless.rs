//! What is shown to people, without anything that a terminal would obey but our own styles: an answer quotes
//! modules, manifests and objects of the cluster, which anybody may have written.

use std::io::{self, Write};

use opensdn_validate::report::printable;

/// The longest sequence that sets a style of ours, such as `ESC [ 38 ; 5 ; 2 5 5 m`.
const LONGEST_STYLE: usize = 20;
/// Text that is set so is not seen.
const CONCEALED: &str = "8";

/// Writes whole lines, each as [`safe`] leaves it.
pub(super) struct HarmlessWriter<W: Write> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> HarmlessWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }

    fn write_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        self.out.write_all(safe(&String::from_utf8_lossy(&line)).as_bytes())
    }
}

impl<W: Write> Write for HarmlessWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.write_line()?;
            }
        }
        Ok(bytes.len())
    }

    /// Writes the last line even if it does not end.
    fn flush(&mut self) -> io::Result<()> {
        self.write_line()?;
        self.out.flush()
    }
}

/// The text with the sequences that set a style, and [`printable`] between them.
fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        let (before, sequence) = rest.split_at(at);
        out.push_str(&printable(before));
        let length = style_length(sequence);
        let (sequence, after) = sequence.split_at(length.unwrap_or(1));
        match length {
            Some(_) => out.push_str(sequence),
            None => out.push_str(&printable(sequence)),
        }
        rest = after;
    }
    out.push_str(&printable(rest));
    out
}

/// The bytes of the sequence at the beginning, if it sets a style and conceals nothing.
fn style_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
    let is_style = parameters.get(end..)?.starts_with('m');
    let is_shown = |parameter: &str| parameter.trim_start_matches('0') != CONCEALED;
    let shows = parameters.get(..end)?.split(';').all(is_shown);
    let length = end + "\u{1b}[m".len();
    (is_style && shows && length <= LONGEST_STYLE).then_some(length)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::{HarmlessWriter, safe};
    use crate::ui::style;

    #[test]
    fn styles_stay_and_what_moves_conceals_or_renames_does_not() {
        let (error, end) = (style::ERROR, format!("{:#}", style::ERROR));
        let ours = format!("{error}error{end}: x\n");
        assert_eq!(safe(&ours), ours);
        for text in [
            "\u{1b}[2J",
            "\u{1b}]0;title\u{7}",
            "\u{1b}[8mhidden",
            "\u{1b}[1;8mhidden",
            "\u{1b}[08mhidden",
            "\u{9b}2J",
            "a\rb",
            "\u{202e}txt",
            "\u{1b}",
            "\u{1b}[",
            "\u{1b}[31",
        ] {
            let shown = safe(text);
            assert!(
                shown.chars().all(|letter| !letter.is_control() && letter != '\u{202e}'),
                "{text:?} is shown as {shown:?}"
            );
        }
    }

    #[test]
    fn a_sequence_in_two_writes_is_one_and_the_last_line_needs_no_end() {
        let mut out = Vec::new();
        let mut writer = HarmlessWriter::new(&mut out);
        for part in ["\u{1b}", "[2", "Jone\ntw", "o"] {
            writer.write_all(part.as_bytes()).unwrap();
        }
        writer.flush().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\u{241b}[2Jone\ntwo");
    }
}
