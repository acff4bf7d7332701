//! What is secret because a Secret of the cluster has it: it is taken out of everything else, whatever stands before it there.

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::redact::{REDACTED, is_secret_name};

/// A shorter value is a word as well.
const LEAST: usize = 8;
/// Of a name that says nothing it has to be this long, and to look like one of chance. One that is as long is no piece of a
/// longer word by chance.
const LEAST_OF_CHANCE: usize = 16;
/// A longer one is a file, which has secrets of its own forms.
const MOST: usize = 4096;

/// Values of Secrets.
#[derive(Debug)]
pub(super) struct Known(AhoCorasick);

impl Known {
    /// Those of the Secrets that could be read, as they are and as Secrets write them.
    pub(super) fn of<'a>(secrets: impl Iterator<Item = &'a Value>) -> Result<Self, BuildError> {
        let mut values: Vec<String> = Vec::new();
        for (name, written) in secrets.filter_map(|one| one.get("data")?.as_object()).flatten() {
            let Some(written) = written.as_str() else { continue };
            let bytes = STANDARD.decode(written).ok();
            let Some(value) = bytes.and_then(|bytes| String::from_utf8(bytes).ok()) else {
                continue;
            };
            let value = value.trim();
            if is_secret(name, value) {
                let unpadded = written.trim_end_matches('=');
                values.extend([value, written, unpadded].map(str::to_owned));
                values.extend(escaped(value));
            }
        }
        values.sort();
        values.dedup();
        // The longest: one password may begin another.
        let mut builder = AhoCorasick::builder();
        // The other kind takes hundreds of megabytes for a hundred long values.
        builder.match_kind(MatchKind::LeftmostLongest).kind(Some(AhoCorasickKind::ContiguousNFA));
        builder.build(values).map(Self)
    }

    /// The text without them; of short ones where they are not a piece of a longer word.
    pub(super) fn without(&self, text: String) -> String {
        let is_of_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        let (mut clean, mut copied) = (String::new(), 0);
        for found in self.0.find_iter(&text) {
            let before = text.get(..found.start()).unwrap_or_default();
            let behind = text.get(found.end()..).unwrap_or_default();
            let is_piece = is_of_word(behind.chars().next())
                || (is_of_word(before.chars().next_back()) && !ends_with_escape(before));
            if found.len() < LEAST_OF_CHANCE && is_piece {
                continue;
            }
            clean.push_str(text.get(copied..found.start()).unwrap_or_default());
            clean.push_str(REDACTED);
            copied = found.end();
        }
        if copied == 0 {
            return text;
        }
        clean.push_str(text.get(copied..).unwrap_or_default());
        clean
    }
}

/// The value as URLs, JSON and XML have it. What encoders leave as it is differs (RFC 3986 2.3; forms take `+` for a blank).
fn escaped(value: &str) -> Vec<String> {
    const UNRESERVED: AsciiSet =
        NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    let url = utf8_percent_encode(value, &UNRESERVED).to_string();
    let path = url.replace("%2F", "/");
    let all = utf8_percent_encode(value, NON_ALPHANUMERIC).to_string();
    let mut urls = vec![url.replace("%20", "+"), path.replace("%20", "+"), url, path, all];
    urls.extend(urls.clone().iter().map(|url| lower_hex(url)));
    let json = value.replace('\\', "\\\\").replace('"', "\\\"");
    let xml = value.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    urls.extend([json, xml]);
    urls
}

/// `%2f` for `%2F`.
fn lower_hex(url: &str) -> String {
    let mut digits = 0;
    let lower = url.chars().map(|letter| match (letter, digits) {
        ('%', _) => {
            digits = 2;
            letter
        }
        (letter, 1 | 2) => {
            digits -= 1;
            letter.to_ascii_lowercase()
        }
        (letter, _) => letter,
    });
    lower.collect()
}

/// `%3D`, `\n` and the end of a colour: what is behind it begins a word.
fn ends_with_escape(before: &str) -> bool {
    let mut last = before.bytes().rev();
    match [last.next(), last.next(), last.next()] {
        [Some(one), Some(two), Some(b'%')] => one.is_ascii_hexdigit() && two.is_ascii_hexdigit(),
        [Some(b'n' | b'r' | b't'), Some(b'\\'), _] => true,
        [Some(b'm'), Some(b'0'..=b'9' | b'['), _] => true,
        _ => false,
    }
}

fn is_secret(name: &str, value: &str) -> bool {
    let is_one_line = !value.contains(['\n', '\r']) && value.len() <= MOST;
    let has = |of: fn(&u8) -> bool| value.bytes().any(|byte| of(&byte));
    let is_hex = value.bytes().all(|byte| byte.is_ascii_hexdigit()) && has(u8::is_ascii_alphabetic);
    let is_base64 =
        value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte))
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase);
    let is_of_chance =
        value.len() >= LEAST_OF_CHANCE && has(u8::is_ascii_digit) && (is_hex || is_base64);
    is_one_line && value.len() >= LEAST && (is_secret_name(name) || is_of_chance)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn known() -> Known {
        let data = |data: Value| json!({"kind": "Secret", "data": data});
        let encoded = |value: &str| STANDARD.encode(value);
        let secrets = [
            data(json!({"current": encoded("5a9bd09a6415aa77\n"), "ca.crt": encoded("a\nb")})),
            data(json!({
                "password": encoded("correct-horse"), "user": encoded("opensdn-admin"),
                "pin_password": encoded("1234"), "host": encoded("rabbitmq-1.example.com:5672"),
                "region": encoded("eu-central-datacenter-2024"), "key2": encoded("q/Zx81+PvBn20aLs=="),
                "db_password": encoded("a\"b/c d9"),
            })),
            json!({"kind": "Secret"}),
        ];
        Known::of(secrets.iter()).unwrap()
    }

    #[test]
    fn what_a_secret_has_goes_wherever_it_is() {
        let text = "url https://h/x/5a9bd09a6415aa77?t=1 said correct-horse, Y29ycmVjdC1ob3JzZQ==";
        let clean = known().without(text.to_owned());
        assert_eq!(clean, "url https://h/x/<redacted>?t=1 said <redacted>, <redacted>");
    }

    #[test]
    fn it_goes_also_where_it_is_escaped_or_behind_an_escape() {
        let text = "a=1%3Dcorrect-horse \\ncorrect-horse \u{1b}[31mcorrect-horse x5a9bd09a6415aa77x a%22b%2Fc%20d9 a%22b/c+d9 a%22b%2fc%20d9 a\\\"b/c d9 a&quot;b/c d9 \
                    q/Zx81+PvBn20aLs==";
        let clean = known().without(text.to_owned());
        assert_eq!(
            clean,
            "a=1%3D<redacted> \\n<redacted> \u{1b}[31m<redacted> x<redacted>x <redacted> <redacted> <redacted> <redacted> <redacted> <redacted>"
        );
    }

    #[test]
    fn users_hosts_short_words_and_pieces_of_longer_ones_stay() {
        let text = "opensdn-admin of rabbitmq-1.example.com:5672 at 1234: incorrect-horses a b in eu-central-datacenter-2024";
        assert_eq!(known().without(text.to_owned()), text);
    }

    #[test]
    fn without_secrets_nothing_goes() {
        let none = Known::of(std::iter::empty()).unwrap();
        assert_eq!(none.without("a".to_owned()), "a");
    }
}
