//! What the name of a field, a variable, a setting or a flag says about its value.

/// What a value is, by its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Meaning {
    /// Nothing is known.
    Plain,
    /// Where a secret is: a path or the name of an object, if it looks like one.
    Place,
    /// A secret.
    Secret,
}

/// What a reference consists of.
pub(super) const OF_REFERENCE: [&str; 15] = [
    "name",
    "namespace",
    "secretName",
    "key",
    "path",
    "items",
    "mode",
    "defaultMode",
    "optional",
    "audience",
    "expirationSeconds",
    "kind",
    "apiVersion",
    "apiGroup",
    "type",
];

/// Parts of names whose values are secrets.
const PARTS: [&str; 34] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "cookie",
    "credential",
    "privatekey",
    "privkey",
    "apikey",
    "authkey",
    "accesskey",
    "sshkey",
    "keydata",
    "keytab",
    "dockerconfig",
    "connectionstring",
    "bearer",
    "requirepass",
    "masterauth",
    "storepass",
    "rocommunity",
    "rwcommunity",
    "lastappliedconfiguration",
    "encryptionkeys",
    "signingkeys",
    "pgpass",
    "passwort",
    "kennwort",
    "contraseña",
    "пароль",
    "密码",
    "パスワード",
];
/// Last words of names whose values are secrets.
const LAST: [&str; 22] = [
    "pass",
    "pwd",
    "pw",
    "auth",
    "auths",
    "community",
    "cred",
    "creds",
    "psk",
    "authorization",
    "passin",
    "passout",
    "netrc",
    "jwt",
    "otp",
    "salt",
    "unseal",
    "bindpw",
    "rsa",
    "ed25519",
    "ecdsa",
    "dsa",
];
/// Ends of names of several keys: others are those of labels, of hosts, of lists.
const KEYS: [&str; 4] = ["sessionkeys", "masterkeys", "secretkeys", "jwtkeys"];
/// Ends of names that say where a secret is.
const PLACES: [&str; 13] = [
    "name",
    "names",
    "ref",
    "refs",
    "reference",
    "file",
    "files",
    "path",
    "paths",
    "namespace",
    "volume",
    "dir",
    "directory",
];
/// Last words of names that say something about a secret, and not what it is.
const ABOUT: [&str; 31] = [
    "enabled",
    "second",
    "seconds",
    "minutes",
    "hours",
    "provider",
    "type",
    "method",
    "mode",
    "length",
    "size",
    "count",
    "version",
    "url",
    "uri",
    "endpoint",
    "proto",
    "protocol",
    "host",
    "port",
    "algorithm",
    "expiry",
    "expiration",
    "ttl",
    "timeout",
    "policy",
    "status",
    "required",
    "optional",
    "audience",
    "audiences",
];
/// Ends of names that end with `key` or `pass`, and whose values say nothing.
const HARMLESS: [&str; 16] = [
    "topologykey",
    "publickey",
    "pubkey",
    "labelkey",
    "optionalkey",
    "routingkey",
    "partitionkey",
    "primarykey",
    "foreignkey",
    "cachekey",
    "sortkey",
    "rowkey",
    "hotkey",
    "monkey",
    "bypass",
    "compass",
];
/// Last words of names that say which one of several it is.
const OF_SEVERAL: [&str; 12] = [
    "old",
    "new",
    "prev",
    "previous",
    "current",
    "next",
    "backup",
    "bak",
    "orig",
    "primary",
    "secondary",
    "alt",
];
/// Ends of names of files, behind which a name says nothing more.
const EXTENSIONS: [&str; 11] = [
    ".txt",
    ".yaml",
    ".yml",
    ".json",
    ".conf",
    ".cfg",
    ".ini",
    ".env",
    ".toml",
    ".properties",
    ".xml",
];
/// A longer word is no name.
const LONGEST: usize = 256;

/// Whether the value of something that is called so is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    meaning(name) == Meaning::Secret
}

pub(super) fn meaning(name: &str) -> Meaning {
    if name.len() < 2 || name.len() > LONGEST {
        return Meaning::Plain;
    }
    let name = EXTENSIONS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let mut words = words(name);
    // Of several, or of one that is replaced: it is the same by what is before.
    while words.len() > 1 && words.last().is_some_and(|word| is_of_several(word)) {
        words.pop();
    }
    let joined = words.concat();
    let last = words.last().map_or("", String::as_str);
    // `secretname`, `keyfile`: the end that says where it is need not be a word of its own.
    if let Some(rest) = PLACES.iter().find_map(|end| joined.strip_suffix(end)) {
        let rest_last = match words.iter().rev().nth(1) {
            Some(word) if PLACES.contains(&last) => word.as_str(),
            _ => last.strip_suffix(last_place(last)).unwrap_or(last),
        };
        return if holds(rest, rest_last) { Meaning::Place } else { Meaning::Plain };
    }
    if ABOUT.contains(&last)
        || ["urltokens", "policytype"].iter().any(|end| joined.ends_with(end))
        || HARMLESS.iter().any(|end| joined.ends_with(end))
    {
        return Meaning::Plain;
    }
    if holds(&joined, last) && joined != "key" { Meaning::Secret } else { Meaning::Plain }
}

/// `DB_PASS_2`, `DB_PASS_OLD`: which one of them.
fn is_of_several(word: &str) -> bool {
    OF_SEVERAL.contains(&word) || word.chars().all(|letter| letter.is_ascii_digit())
}

fn last_place(word: &str) -> &str {
    PLACES.iter().copied().find(|end| word.ends_with(end)).unwrap_or_default()
}

fn holds(joined: &str, last: &str) -> bool {
    PARTS.iter().any(|part| joined.contains(part))
        || (LAST.contains(&numberless(last)) || LAST.contains(&last))
            && !["rsa", "ecdsa", "dsa", "ed25519"].contains(&joined)
        || joined.ends_with("key")
        || KEYS.iter().any(|keys| joined.ends_with(keys))
        || (last.len() > 4 && (last.ends_with("pass") || last.ends_with("pwd")))
}

/// `pass1` is one of several.
fn numberless(word: &str) -> &str {
    word.trim_end_matches(|letter: char| letter.is_ascii_digit())
}

/// `RABBITMQ_PASS`, `dbPass` and `db.pass` are two words each.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for letter in name.chars() {
        let starts = letter.is_uppercase() && was_lower;
        if (starts || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase() || letter.is_ascii_digit();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Whether the value is a path or the name of an object (`/run/x`, `tf/redis-tls`, `tls.key`), or a variable.
pub(super) fn is_place(value: &str) -> bool {
    let value = value.trim();
    if is_variable(value) || value.is_empty() {
        return true;
    }
    let is_absolute = ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start));
    let is_of_place = |letter: char| {
        letter.is_ascii_lowercase()
            || letter.is_ascii_digit()
            || "._-/:~".contains(letter)
            || (is_absolute && letter.is_ascii_uppercase())
    };
    value.len() <= 512
        && value.chars().all(is_of_place)
        && !value.split(['/', '.', '-', ':', '_']).any(is_random)
}

/// A piece of a path that no one would choose for a name.
fn is_random(piece: &str) -> bool {
    let has = |of: fn(&char) -> bool| piece.chars().any(|letter| of(&letter));
    let digits = has(char::is_ascii_digit);
    piece.len() >= 20 && digits || piece.len() >= 16 && digits && has(char::is_ascii_uppercase)
}

/// `$(NAME)` and `${NAME}`: who reads it learns nothing.
pub(super) fn is_variable(value: &str) -> bool {
    let inner = value
        .strip_prefix("$(")
        .and_then(|rest| rest.strip_suffix(')'))
        .or_else(|| value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')));
    inner.is_some_and(|name| {
        !name.is_empty()
            && name.chars().all(|letter| {
                letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_'
            })
    })
}

/// A word that is chosen by chance or with care, and not one of a sentence: a digit, a capital within, a sign.
pub(super) fn is_chosen(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ',', ';', ':', ')']);
    word.len() >= 4
        && (word.chars().any(|letter| letter.is_ascii_digit() || "!@#$%^&*+=~".contains(letter))
            || word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase))
}
