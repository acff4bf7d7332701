//! Private keys, whatever is around them: on many lines, on one with `\n`, behind a certificate, cut off.

use super::REDACTED;
use super::quotes::near;

/// How far behind BEGIN its kind may be.
const NEAR: usize = 48;
const KINDS: [&str; 3] = ["PRIVATE KEY", "OpenVPN Static key", "PGP SECRET KEY"];

/// The text without keys.
pub(super) fn without_keys(text: &str) -> String {
    let text = without_putty(text);
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((kind, at, behind)) = marker(rest) {
        let before = rest.get(..at).unwrap_or_default();
        match kind {
            Kind::Begin => {
                clean.push_str(before.trim_end_matches('-'));
                clean.push_str(REDACTED);
                clean.push_str(" private key");
                rest = rest.get(behind..).unwrap_or_default();
                rest = past_end(rest);
            }
            // A log that was cut: the key is what is before it.
            Kind::End => {
                clean.push_str(without_last_lines(before.trim_end_matches('-')));
                clean.push_str(REDACTED);
                clean.push_str(" private key");
                rest = rest.get(behind..).unwrap_or_default().trim_start_matches('-');
            }
        }
    }
    clean.push_str(rest);
    clean
}

#[derive(Clone, Copy)]
enum Kind {
    Begin,
    End,
}

/// The next BEGIN or END of a private key: where it is, and where what is behind its words.
fn marker(text: &str) -> Option<(Kind, usize, usize)> {
    let mut from = 0;
    // Every marker has dashes before it: `-----BEGIN RSA PRIVATE KEY-----`, `---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----`.
    while let Some(dash) = text.get(from..)?.find("--") {
        let dashes = from + dash;
        let behind = text.get(dashes..)?;
        let words = behind.trim_start_matches('-');
        let start = dashes + (behind.len() - words.len());
        from = start;
        let trimmed = words.trim_start_matches(' ');
        let kind = if trimmed.starts_with("BEGIN ") {
            Kind::Begin
        } else if trimmed.starts_with("END ") {
            Kind::End
        } else {
            continue;
        };
        if let Some(length) = kind_of_key(words) {
            return Some((kind, dashes, start + length));
        }
    }
    None
}

/// The length of the words of a marker, if they are those of a private key.
fn kind_of_key(words: &str) -> Option<usize> {
    let words = near(words, NEAR);
    let end = words.find("--").or_else(|| words.find('\n')).unwrap_or(words.len());
    let words = words.get(..end)?;
    KINDS.iter().any(|kind| words.contains(kind)).then_some(end)
}

/// What is behind the END of the key; nothing, where it has none.
fn past_end(text: &str) -> &str {
    let mut rest = text;
    while let Some((kind, _, behind)) = marker(rest) {
        rest = rest.get(behind..).unwrap_or_default();
        if matches!(kind, Kind::End) {
            return rest.trim_start_matches([' ', '-']);
        }
    }
    ""
}

/// Without what is at its end and looks like a key: whole lines, the ends of long ones, and what is before `\n`.
fn without_last_lines(text: &str) -> &str {
    let is_of_key = |letter: char| letter.is_ascii_alphanumeric() || "+/=\\".contains(letter);
    let mut rest = text;
    loop {
        let trimmed = rest.trim_end();
        let start = trimmed.rfind('\n').map_or(0, |at| at + 1);
        let before = trimmed.trim_end_matches(is_of_key);
        let key = trimmed.len() - before.len();
        if key < 4 {
            return rest;
        }
        if key < 40 && !trimmed.get(start..before.len()).unwrap_or_default().trim().is_empty() {
            return before;
        }
        rest = rest.get(..start).unwrap_or_default();
    }
}

/// A key of `PuTTY` is one until its MAC, or until the end.
fn without_putty(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, key)) = rest.split_once("PuTTY-User-Key-File") {
        clean.push_str(before);
        clean.push_str(REDACTED);
        clean.push_str(" private key");
        rest = key
            .split_once("Private-MAC:")
            .and_then(|(_, mac)| mac.get(mac.find('\n')?..))
            .unwrap_or_default();
    }
    clean.push_str(rest);
    clean
}
