//! Characters that mean something to a shell or a template, and how to speak of them.

/// The characters of `value` that `forbidden` has, in words, each once. `None`: there is none.
#[must_use]
pub fn found(value: &str, forbidden: &[char]) -> Option<String> {
    let mut words = Vec::new();
    for character in value.chars().filter(|character| forbidden.contains(character)) {
        let word = in_words(character);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    (!words.is_empty()).then(|| words.join(" and "))
}

fn in_words(character: char) -> String {
    match character {
        '\n' | '\r' => "a line break".to_owned(),
        ' ' | '\t' => "white space".to_owned(),
        '`' => "a backtick".to_owned(),
        '"' => "a double quote".to_owned(),
        '\'' => "a single quote".to_owned(),
        '\\' => "a backslash".to_owned(),
        other => other.to_string(),
    }
}

/// The value as a message may show it: shortened, in quotes; nothing where it may be secret.
#[must_use]
pub fn shown(name: &str, value: &str) -> String {
    const LONGEST: usize = 40;
    const SECRET: [&str; 9] =
        ["password", "passwd", "pwd", "secret", "token", "cookie", "key", "credential", "dsn"];
    let name = name.to_ascii_lowercase();
    // As in scheme://user:password@host, and in user:password.
    if SECRET.iter().any(|word| name.contains(word)) || value.contains(['@', ':']) {
        return String::new();
    }
    let short: String = value.chars().take(LONGEST).collect();
    let more = if short.len() < value.len() { "…" } else { "" };
    format!(" ({short:?}{more})")
}

#[cfg(test)]
mod tests {
    use super::{found, shown};

    #[test]
    fn names_each_character_once() {
        assert_eq!(found("a$b`c$", &['$', '`']).as_deref(), Some("$ and a backtick"));
        assert_eq!(found("a\r\n", &['\n', '\r']).as_deref(), Some("a line break"));
        assert_eq!(found("plain", &['$']), None);
    }

    #[test]
    fn never_shows_what_may_be_secret() {
        assert_eq!(shown("adminPassword", "sesame"), "");
        assert_eq!(shown("METADATA_PROXY_SECRET", "sesame"), "");
        assert_eq!(shown("DB_PASSWD", "sesame"), "");
        assert_eq!(shown("DB", "mysql://u:sesame$@h"), "");
        assert_eq!(shown("hypervisorType", "k`v\nm"), " (\"k`v\\nm\")");
        assert!(shown("subcluster", &"é".repeat(60)).ends_with("é\"…)"));
    }
}
