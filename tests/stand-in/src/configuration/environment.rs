//! Assignments of a shell, as run scripts source them: `export NAME=value`, with quotes, and with
//! `$NAME` where the environment has it. Anything that a shell would run is refused.

use super::{Setting, Stopped};

pub(super) fn settings(
    text: &str,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Vec<Setting>, Stopped> {
    let mut settings: Vec<Setting> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        let assigned = line.split_once('=').filter(|(name, _)| is_name(name));
        let Some((name, value)) = assigned else {
            return Err(Stopped::at(number, "not an assignment"));
        };
        let known = |name: &str| {
            let earlier = settings.iter().rev().find(|setting| setting.key == name);
            earlier.map(|setting| setting.value.clone()).or_else(|| environment(name))
        };
        let value = word(value, known).map_err(|what| Stopped::at(number, what))?;
        settings.push(Setting::new("", name, &value));
    }
    Ok(settings)
}

fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// One word with its quotes removed and its variables expanded.
fn word(text: &str, known: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut value, mut quote) = (String::new(), None);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, quote) {
            ('\'', Some('\'')) | ('"', Some('"')) => quote = None,
            (c, Some('\'')) => value.push(c),
            ('$', _) => {
                let name = variable(&mut rest).ok_or("a command, or a $ without a name")?;
                let filled = known(&name).ok_or(format!("${{{name}}} is not set"))?;
                value.push_str(&filled);
            }
            ('\\', _) => value.push(rest.next().ok_or("a \\ at the end")?),
            ('`', _) => return Err("a command".into()),
            (c, Some(_)) => value.push(c),
            ('\'' | '"', None) => quote = Some(c),
            (' ' | '\t', None) => {
                let comment = rest.find(|c| !c.is_whitespace());
                return match comment {
                    None | Some('#') => Ok(value),
                    Some(_) => Err("more than one word; quote it".into()),
                };
            }
            (';' | '&' | '|' | '<' | '>' | '(' | ')', None) => {
                return Err(format!("{c} outside of quotes"));
            }
            (c, None) => value.push(c),
        }
    }
    match quote {
        None => Ok(value),
        Some(_) => Err("a quote has no end".into()),
    }
}

/// The name after a `$`, with or without braces.
fn variable(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let braced = rest.next_if_eq(&'{').is_some();
    let mut name = String::new();
    while let Some(c) = rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
        name.push(c);
    }
    let closed = !braced || rest.next_if_eq(&'}').is_some();
    (closed && is_name(&name)).then_some(name)
}
