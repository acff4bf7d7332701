//! Texts in base64 that have secrets: keys, manifests, settings.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::{REDACTED, once};

/// A shorter word has no text that is worth it.
const LEAST: usize = 20;
/// What gzip, bzip2, xz, zstd and zip begin with.
const COMPRESSED: [&str; 7] = ["H4sI", "QlpoM", "QlpoN", "QlpoO", "/Td6WFo", "KLUv/", "UEsDB"];
/// What zlib may begin with, and many a word as well.
const ZLIB: [&str; 4] = ["eA", "eF", "eJ", "eN"];
/// A line of base64 that is as long goes on in the next one.
const WRAPPED: usize = 60;

/// The text without what has secrets when it is decoded, and without what is compressed, which nobody can judge.
pub(super) fn without(given: &str) -> String {
    let mut clean = String::with_capacity(given.len());
    let mut rest = given;
    while let Some(start) = rest.find(is_of_base64) {
        let (before, behind) = rest.split_at(start);
        clean.push_str(before);
        let (word, length) = word(behind);
        let (taken, after) = behind.split_at(length);
        clean.push_str(if word.len() >= LEAST && has_secrets(&word) { REDACTED } else { taken });
        rest = after;
    }
    clean.push_str(rest);
    clean
}

fn is_of_base64(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "+/-_".contains(letter)
}

/// A word of base64, over all lines it goes, and how long it is with what is between its lines.
fn word(text: &str) -> (String, usize) {
    let mut word = String::new();
    let mut length = 0;
    loop {
        let rest = text.get(length..).unwrap_or_default();
        let line = rest.find(|letter| !is_of_base64(letter)).unwrap_or(rest.len());
        word.push_str(rest.get(..line).unwrap_or_default());
        length += line;
        let behind = text.get(length..).unwrap_or_default();
        if behind.starts_with('=') {
            return (word, length + behind.len() - behind.trim_start_matches('=').len());
        }
        let next = behind
            .strip_prefix("\r\n")
            .or_else(|| behind.strip_prefix('\n'))
            .or_else(|| behind.strip_prefix("\\n"))
            .map(|next| next.trim_start_matches([' ', '\t']));
        match next {
            Some(next) if line >= WRAPPED && is_line(next) => length = text.len() - next.len(),
            _ => return (word, length),
        }
    }
}

/// Whether the line is of base64 only.
fn is_line(text: &str) -> bool {
    let length = text.find(|letter| !is_of_base64(letter)).unwrap_or(text.len());
    let rest = text.get(length..).unwrap_or_default();
    let behind = rest.trim_start_matches('=');
    let is_whole = (length + rest.len() - behind.len()) % 4 == 0;
    length > 0 && is_whole && (behind.is_empty() || behind.starts_with(['\n', '\r', '\\', '"']))
}

fn has_secrets(word: &str) -> bool {
    if COMPRESSED.iter().any(|start| word.starts_with(start)) || is_zlib(word) {
        return true;
    }
    let whole = word.len() / 4 * 4;
    let word = word.get(..whole).unwrap_or_default();
    let bytes = if word.contains(['-', '_']) {
        URL_SAFE_NO_PAD.decode(word)
    } else {
        STANDARD_NO_PAD.decode(word)
    };
    // Words of the language that happen to be base64 are no text when they are decoded.
    bytes.ok().and_then(decoded).is_some_and(|decoded| {
        decoded.chars().all(|letter| !letter.is_control() || letter.is_whitespace())
            && once(&decoded) != decoded
    })
}

/// Whether it can be inflated: its first letters alone are those of words.
fn is_zlib(word: &str) -> bool {
    if !ZLIB.iter().any(|start| word.starts_with(start)) {
        return false;
    }
    let whole = word.get(..word.len() / 4 * 4).unwrap_or_default();
    let Ok(bytes) = STANDARD_NO_PAD.decode(whole) else { return false };
    let mut inflated = [0; 64];
    let mut stream = flate2::Decompress::new(true);
    let ended = stream.decompress(&bytes, &mut inflated, flate2::FlushDecompress::None);
    ended.is_ok() && stream.total_out() > 0
}

/// The text that the bytes are; a letter that was cut at the end does not count.
fn decoded(mut bytes: Vec<u8>) -> Option<String> {
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).ok()
}
