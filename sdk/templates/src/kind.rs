//! The kinds of objects that a new policy is about, as written on a command line.

use std::{fmt, str::FromStr};

/// A kind of object: `apps/v1/Deployment`; `v1/ConfigMap` in the core group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// API group; `""` is the core group.
    pub group: String,
    /// API version, without the group.
    pub version: String,
    /// Kind.
    pub kind: String,
}

/// A text does not name a kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// Not of the form.
    #[error("{0:?} is not of the form group/version/Kind")]
    Form(String),
    /// A part has letters that it cannot have.
    #[error("{part} {found:?} of {text:?} cannot be; {rule}")]
    Part {
        /// Which part.
        part: &'static str,
        /// What is there.
        found: String,
        /// The whole.
        text: String,
        /// What it has to be.
        rule: &'static str,
    },
}

impl FromStr for Kind {
    type Err = KindError;

    fn from_str(text: &str) -> Result<Self, KindError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (group, version, kind) = match *parts {
            [version, kind] => ("", version, kind),
            [group, version, kind] if !group.is_empty() => (group, version, kind),
            _ => return Err(KindError::Form(text.to_owned())),
        };
        let refused = |part, found: &str, rule| {
            Err(KindError::Part { part, found: found.to_owned(), text: text.to_owned(), rule })
        };
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if !group.chars().all(|c| plain(c) || c == '.' || c == '-') {
            return refused("the group", group, "it is a domain name in lower case, such as apps");
        }
        if !version.starts_with('v') || !version.chars().all(plain) {
            return refused("the version", version, "it is v1, v1beta1 …");
        }
        if !kind.starts_with(|c: char| c.is_ascii_uppercase())
            || !kind.chars().all(|c| c.is_ascii_alphanumeric())
        {
            return refused("the kind", kind, "it is written as in a manifest: ConfigMap");
        }
        Ok(Self { group: group.into(), version: version.into(), kind: kind.into() })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.api_version(), self.kind)
    }
}

impl Kind {
    /// As in a manifest: `apps/v1`, `v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// In lower case, with a separator between the words: `config-map`, `http-route`.
    pub(crate) fn words(&self, separator: char) -> String {
        let letters: Vec<char> = self.kind.chars().collect();
        let mut words = String::new();
        for (at, letter) in letters.iter().enumerate() {
            let lower = |at: usize| letters.get(at).is_some_and(|c| !c.is_ascii_uppercase());
            let begins =
                letter.is_ascii_uppercase() && (lower(at.wrapping_sub(1)) || lower(at + 1));
            if begins && at > 0 {
                words.push(separator);
            }
            words.push(letter.to_ascii_lowercase());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, KindError};

    #[test]
    fn reads_what_it_writes() {
        for text in ["v1/ConfigMap", "apps/v1/Deployment", "tf.tungsten.io/v1alpha1/Manager"] {
            assert_eq!(text.parse::<Kind>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn refuses_what_is_no_kind() {
        for text in ["", "ConfigMap", "/v1/ConfigMap", "a/b/v1/ConfigMap"] {
            assert_eq!(text.parse::<Kind>(), Err(KindError::Form(text.to_owned())));
        }
        for text in ["v1/configMap", "v1/", "1/ConfigMap", "a\"b/v1/Kind", "Apps/v1/Kind"] {
            assert!(matches!(text.parse::<Kind>(), Err(KindError::Part { .. })), "{text}");
        }
    }

    #[test]
    fn a_kind_falls_into_words() {
        for (kind, words) in [
            ("ConfigMap", "config-map"),
            ("Manager", "manager"),
            ("HTTPRoute", "http-route"),
            ("APIService", "api-service"),
            ("Vrouter", "vrouter"),
        ] {
            assert_eq!(format!("v1/{kind}").parse::<Kind>().unwrap().words('-'), words);
        }
    }
}
