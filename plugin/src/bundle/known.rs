//! What is secret because a Secret of the cluster has it: it is taken out of everything else, whatever stands before it there.

use aho_corasick::{AhoCorasick, BuildError, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::redact::{REDACTED, is_secret_name};

/// A shorter value is a word as well. Of a name that says nothing it has to be this long, and to look like one of chance.
const LEAST: usize = 8;
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
            if is_secret(name, value.trim()) {
                values.push(value.trim().to_owned());
                values.push(written.to_owned());
            }
        }
        values.sort();
        values.dedup();
        // The longest: one password may begin another.
        AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(values).map(Self)
    }

    /// The text without them, where they are not a piece of a longer word.
    pub(super) fn without(&self, text: String) -> String {
        let is_of_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        let (mut clean, mut copied) = (String::new(), 0);
        for found in self.0.find_iter(&text) {
            let before = text.get(..found.start()).unwrap_or_default();
            let behind = text.get(found.end()..).unwrap_or_default();
            if is_of_word(before.chars().next_back()) || is_of_word(behind.chars().next()) {
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

fn is_secret(name: &str, value: &str) -> bool {
    let is_one_line = !value.contains(['\n', '\r']) && value.len() <= MOST;
    let has = |of: fn(&u8) -> bool| value.bytes().any(|byte| of(&byte));
    let is_of_chance = value.len() >= LEAST_OF_CHANCE
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && !value.contains(['.', ':', '/', ' ', ',']);
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
    fn users_hosts_short_words_and_pieces_of_longer_ones_stay() {
        let text = "opensdn-admin of rabbitmq-1.example.com:5672 at 1234: incorrect-horses a b";
        assert_eq!(known().without(text.to_owned()), text);
    }

    #[test]
    fn without_secrets_nothing_goes() {
        let none = Known::of(std::iter::empty()).unwrap();
        assert_eq!(none.without("a".to_owned()), "a");
    }
}
