//! What is taken out of all that a bundle has: secrets, what matches a pattern of the user, and addresses, in whose places
//! stand pseudonyms. What a secret is is in `redact`.

use std::path::Path;
use std::sync::OnceLock;

use opensdn_manifests::read_limited_text;
use regex::Regex;
use serde_json::{Map, Value};

use super::addresses::Pseudonyms;
use super::known::Known;
use super::redact::{self, REDACTED, elements};

/// Why the patterns of the user cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PatternError {
    #[error("read {file}")]
    Read {
        file: String,
        #[source]
        source: std::io::Error,
    },
    #[error("line {line} of {file} is no regular expression")]
    Form {
        file: String,
        line: usize,
        #[source]
        source: Box<regex::Error>,
    },
    #[error("line {line} of {file} matches every text")]
    All { file: String, line: usize },
}

/// For one bundle.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    patterns: Vec<Regex>,
    addresses: Option<Pseudonyms>,
    /// What Secrets of this cluster have, once they are read.
    known: OnceLock<Known>,
}

impl Redactor {
    /// With patterns of the user, and pseudonyms where they are wanted.
    pub(crate) fn new(patterns: Vec<Regex>, addresses: Option<Pseudonyms>) -> Self {
        Self { patterns, addresses, known: OnceLock::new() }
    }

    /// From here on what these Secrets have is taken out, too.
    ///
    /// # Errors
    /// There are too many of them.
    pub(crate) fn learn<'a>(
        &self,
        secrets: impl Iterator<Item = &'a Value>,
    ) -> Result<(), aho_corasick::BuildError> {
        let known = Known::of(secrets)?;
        self.known.get_or_init(|| known);
        Ok(())
    }

    /// A text, such as a log.
    pub(crate) fn text(&self, text: &str) -> String {
        self.more(redact::text(text))
    }

    /// A page of XML. What is in an element that is called like a secret goes whole, as it has elements of its own.
    pub(crate) fn page(&self, page: &str) -> String {
        // Daemons write it in one line, of which neither people nor the search for secrets is fond.
        let lines = page.replace("><", ">\n<");
        self.text(&elements::without(&lines))
    }

    /// An object.
    pub(crate) fn object(&self, value: &mut Value) {
        redact::object(value);
        if !self.patterns.is_empty() || self.addresses.is_some() || self.known.get().is_some() {
            self.strings(value);
        }
    }

    /// The name of a file.
    pub(crate) fn name(&self, name: &str) -> String {
        self.more(name.to_owned())
    }

    fn more(&self, text: String) -> String {
        let text = match self.known.get() {
            Some(known) => known.without(text),
            None => text,
        };
        let replace = |text: String, one: &Regex| one.replace_all(&text, REDACTED).into_owned();
        let text = self.patterns.iter().fold(text, replace);
        match &self.addresses {
            Some(all) => all.text(&text),
            None => text,
        }
    }

    fn strings(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.more(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.strings(item)),
            Value::Object(fields) => {
                let mut clean = Map::with_capacity(fields.len());
                for (name, mut field) in std::mem::take(fields) {
                    self.strings(&mut field);
                    let name = self.more(name);
                    // Names that were different stay so.
                    let mut unlike = (1..).map(|count| match count {
                        1 => name.clone(),
                        _ => format!("{name} {count}"),
                    });
                    let name = unlike.find(|name| !clean.contains_key(name));
                    clean.insert(name.unwrap_or_default(), field);
                }
                *fields = clean;
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// The most of a file of patterns.
const MOST_PATTERNS: u64 = 1 << 20;

/// The patterns of a file, one a line; what begins with `#` is a comment.
///
/// # Errors
/// It cannot be read, or a line is no pattern.
pub(crate) fn patterns(path: &Path) -> Result<Vec<Regex>, PatternError> {
    let file = path.display().to_string();
    let text = read_limited_text(path, MOST_PATTERNS)
        .map_err(|source| PatternError::Read { file: file.clone(), source })?;
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim_end()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let one = |(line, text): (usize, &str)| {
        let pattern = Regex::new(text).map_err(|source| {
            let (file, source) = (file.clone(), Box::new(source));
            PatternError::Form { file, line, source }
        })?;
        match pattern.is_match("") {
            true => Err(PatternError::All { file: file.clone(), line }),
            false => Ok(pattern),
        }
    };
    lines.map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redactor() -> Redactor {
        let patterns = vec![Regex::new("acme-[a-z]+").unwrap(), Regex::new("(?i)bob").unwrap()];
        Redactor::new(patterns, Some(Pseudonyms::new().unwrap()))
    }

    #[test]
    fn patterns_and_addresses_go_from_texts_names_of_fields_and_files_as_secrets_do() {
        let redactor = redactor();
        let text = redactor.text("Bob of acme-berlin at 10.0.0.7 with password=hunter2");
        assert_eq!(text, "<redacted> of <redacted> at address-1 with password=<redacted>");
        assert_eq!(redactor.name("files/10.0.0.7/a.log"), "files/address-1/a.log");
        let mut object = json!({"status": {"nodes": {"10.0.0.7": {"host": "acme-x"}, "acme-x": 1, "acme-y": 2}},
            "password": "hunter2", "list": ["10.0.0.8", 5]});
        redactor.object(&mut object);
        let clean = json!({"status": {"nodes": {"address-1": {"host": "<redacted>"}, "<redacted>": 1, "<redacted> 2": 2}},
            "password": "<redacted>", "list": ["address-2", 5]});
        assert_eq!(object, clean);
    }

    #[test]
    fn patterns_without_an_end_are_an_error() {
        assert!(patterns(Path::new("/dev/zero")).is_err());
    }

    #[test]
    fn without_flags_nothing_but_secrets_goes() {
        let text = Redactor::default().text("10.0.0.7 of acme-x, token=hunter2");
        assert_eq!(text, "10.0.0.7 of acme-x, token=<redacted>");
    }

    #[test]
    fn a_line_that_is_no_pattern_or_matches_every_text_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let of = |text: &str| {
            let path = folder.path().join("patterns");
            std::fs::write(&path, text).unwrap();
            patterns(&path)
                .map(|all| all.len())
                .map_err(|error| error.to_string().replace(&path.display().to_string(), "FILE"))
        };
        assert_eq!(of("# ours\n\nacme-[a-z]+\nbob\n"), Ok(2));
        assert_eq!(of("a\n("), Err("line 2 of FILE is no regular expression".to_owned()));
        assert_eq!(of("x*"), Err("line 1 of FILE matches every text".to_owned()));
        let none = patterns(&folder.path().join("absent")).unwrap_err().to_string();
        assert!(none.starts_with("read "), "{none}");
    }
}
