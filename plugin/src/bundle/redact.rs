//! Takes secrets out of what is collected (pure): out of objects by the names of their fields, out of every text by what
//! a secret looks like there. What is taken out is named, so that a reader sees that there was something. Where it is
//! not clear how far a secret goes, more is taken out than less.

mod blocks;
pub(crate) mod elements;
mod encoded;
mod flags;
mod json;
mod names;
mod objects;
mod pem;
mod quotes;
mod scan;
mod separators;
mod settings;
mod shapes;
mod spoken;
mod statements;
mod terms;
#[cfg(test)]
mod tests;
mod urls;
mod values;

pub(crate) use names::is_secret as is_secret_name;
use serde_json::Value;

/// What is written in the place of a secret.
pub(crate) const REDACTED: &str = "<redacted>";

/// How often at most something is gone through.
const ROUNDS: usize = 8;

/// The object without its secrets, and without what nobody reads.
pub(crate) fn object(value: &mut Value) {
    for _ in 0..ROUNDS {
        let before = value.clone();
        objects::clean(value);
        if *value == before {
            break;
        }
    }
}

/// The text without what looks like a secret. What has been taken out may change how far another value goes: it is gone
/// through until nothing changes, so that a second time takes no more.
pub(crate) fn text(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..ROUNDS {
        let clean = once(&text);
        if clean == text {
            break;
        }
        text = clean;
    }
    text
}

/// The text without the passwords of its URLs, and else as it is.
pub(crate) fn logins(text: &str) -> String {
    urls::without_logins(text)
}

/// What has a form of its own goes first: a key, whose lines look like nothing, then JSON, whose values have an end that
/// is sure.
fn once(text: &str) -> String {
    let text = pem::without_keys(text);
    let text = json::lines(&text);
    let text = scan::settings(&text);
    let text = terms::without(&text);
    let text = urls::without_logins(&text);
    let text = shapes::without(&text);
    encoded::without(&text)
}
