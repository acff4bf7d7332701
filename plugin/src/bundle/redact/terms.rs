//! Forms that daemons of OpenSDN write: terms of Erlang, as RabbitMQ has them in its files and its crash reports, and
//! statements of Junos, as the device manager sends and logs them.

use super::REDACTED;
use super::names::is_secret;

/// The text without the secrets of such forms.
pub(super) fn without(text: &str) -> String {
    text.split_inclusive('\n').map(|line| of_junos(&of_erlang(line))).collect()
}

/// `{default_pass, <<"X">>}` and `{password,"X"}`.
fn of_erlang(line: &str) -> String {
    let mut clean = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(value) = next_value(rest) {
        let (before, text) = rest.split_at(value);
        clean.push_str(before);
        clean.push_str(REDACTED);
        rest = text.get(quoted(text)..).unwrap_or_default();
    }
    clean + rest
}

/// Where the text in quotes begins that is the secret of the next term.
fn next_value(line: &str) -> Option<usize> {
    line.match_indices('{').find_map(|(at, _)| {
        let term = line.get(at + 1..)?;
        let name = term.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')?;
        let (name, behind) = term.split_at(name);
        let value = behind.trim_start().strip_prefix(',')?.trim_start();
        let text = value.strip_prefix("<<").unwrap_or(value).strip_prefix('"')?;
        let is_hidden = text.starts_with(REDACTED) || text.starts_with('"');
        (is_secret(name) && !is_hidden).then(|| line.len() - text.len())
    })
}

/// How long the text is until its quote ends.
fn quoted(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().find(|(_, letter)| {
        let ends = *letter == '"' && !is_escaped;
        is_escaped = *letter == '\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// `authentication-key "X"; ## SECRET-DATA`, `authentication-key X;` and `set ... authentication-key X`.
fn of_junos(line: &str) -> String {
    let is_statement = |value: &str| {
        value.starts_with('"') || line.contains(';') || line.trim_start().starts_with("set ")
    };
    let mut from = 0;
    while let Some((at, _)) = line.get(from..).and_then(|rest| rest.match_indices("-key ").next()) {
        let behind = from + at + "-key ".len();
        from = behind;
        let before = line.get(..behind - 1).unwrap_or_default();
        let name = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let value = line.get(behind..).unwrap_or_default().trim_start();
        let start = line.len() - value.len();
        if !is_secret(name) || !is_statement(value) || value.contains(REDACTED) {
            continue;
        }
        let (open, text) = match value.strip_prefix('"') {
            Some(text) => (1, text),
            None => (0, value),
        };
        let length = match open {
            0 => text.find([';', ' ', '\n', '\r']).unwrap_or(text.len()),
            _ => quoted(text),
        };
        if length == 0 {
            continue;
        }
        let (before, after) = (line.get(..start + open), line.get(start + open + length..));
        return format!("{}{REDACTED}{}", before.unwrap_or_default(), after.unwrap_or_default());
    }
    line.to_owned()
}
