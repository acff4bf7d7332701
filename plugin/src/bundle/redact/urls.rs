//! Logins in URLs: `https://user:password@host`, and without a scheme.

use super::REDACTED;

/// The text without the passwords of its URLs.
pub(super) fn without_logins(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        clean.push_str(before);
        clean.push_str("://");
        let (url, behind) = after.split_at(end(after));
        match login(url) {
            Some((Some(user), host)) => clean.push_str(&format!("{user}:{REDACTED}@{host}")),
            Some((None, host)) => clean.push_str(&format!("{REDACTED}@{host}")),
            None => clean.push_str(url),
        }
        rest = behind;
    }
    clean.push_str(rest);
    clean
}

/// Where the URL ends. What stands for a secret is no end.
fn end(text: &str) -> usize {
    let is_end = |letter: char| letter.is_whitespace() || "\"'`<>\\".contains(letter);
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(is_end)) {
        let at = from + found;
        if !text.get(at..).is_some_and(|rest| rest.starts_with(REDACTED)) {
            return at;
        }
        from = at + REDACTED.len();
    }
    text.len()
}

/// The user, if there is one with a password, and the host with the rest. A password may have a slash.
fn login(url: &str) -> Option<(Option<&str>, &str)> {
    let authority = url.get(..url.find(['/', '?', '#']).unwrap_or(url.len()))?;
    let at = match authority.rfind('@') {
        Some(at) => at,
        None => {
            // `u:pa/ss@host`, and not `host:8080/a@b`.
            let (_, port) = authority.split_once(':')?;
            let is_port = port.chars().all(|letter| letter.is_ascii_digit());
            let at = url.rfind('@').filter(|_| !is_port)?;
            let is_digest = url.get(at..)?.starts_with("@sha256:");
            (!is_digest).then_some(at)?
        }
    };
    let (login, host) = (url.get(..at)?, url.get(at + 1..)?);
    Some((login.split_once(':').map(|(user, _)| user), host))
}
