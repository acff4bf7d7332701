//! From the text of the configuration to settings. What is wrong is reported with file, line and column;
//! what is unknown is kept and reported, for it may be of a newer version. Where the file is, is not
//! known here.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Command;
use opensdn_manifests::{Document, Severity, Source, Span, join, open_named, read};
use serde_json::{Map, Value};

use super::keys::{self, KEYS, Key};
use super::{Config, Location, Setting, layers, place};
use crate::exit::{Exit, Failure};

/// The section of values that hold in general.
pub(crate) const DEFAULTS: &str = "defaults";
/// The section of values that hold for contexts of the kubeconfig, by the context's name.
pub(crate) const CONTEXTS: &str = "contexts";
/// A larger file was not written by hand.
const MOST: u64 = 1 << 20;

/// The bytes of the file; none where there is no file and none has to be.
pub(crate) fn bytes(location: &Location) -> Result<Option<Vec<u8>>, Failure> {
    let Location { path, named } = location;
    let mut bytes = Vec::new();
    match open_named(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes)) {
        Ok(_) if bytes.len() as u64 > MOST => {
            let message = format!("the configuration {} is larger than 1 MiB", path.display());
            Err(Failure::new(Exit::Usage, "broken-config", message, "is it the right file?"))
        }
        Ok(_) => Ok(Some(bytes)),
        Err(error) if !named && is_absent(path, &error) => Ok(None),
        Err(error) => {
            let message = format!("the configuration {} cannot be read", path.display());
            let hint = "correct its name or its permissions, or name another one with --config";
            Err(Failure::new(Exit::Usage, "unreadable-file", message, hint).because(&error))
        }
    }
}

/// Whether this user sees no file: in a pod the home may be another user's.
fn is_absent(path: &Path, error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory) || path.symlink_metadata().is_err()
}

/// The text of a configuration that can be read.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) source: Source,
    /// None where the text is empty.
    pub(crate) document: Option<Document>,
}

impl ConfigFile {
    /// Reads the text.
    ///
    /// # Errors
    /// It is no YAML, or not one mapping.
    pub(crate) fn parse(path: &Path, bytes: Vec<u8>) -> Result<Self, Failure> {
        let source = Source::from_bytes(path.display().to_string(), bytes);
        let parsed = read(&source);
        let mut file = Self { path: path.to_owned(), source, document: None };
        if let Some(wrong) = parsed.problems.into_iter().find(|one| one.severity == Severity::Error)
        {
            return Err(file.broken(wrong.span.unwrap_or_default(), &wrong.message, &wrong.hint));
        }
        let mut documents = parsed.documents.into_iter();
        file.document = documents.next();
        match documents.next() {
            Some(second) => {
                let span = second.nearest("").value;
                Err(file.broken(span, "a second document", "put all into the first one"))
            }
            None => Ok(file),
        }
    }

    /// Its settings, each checked by its flag.
    ///
    /// # Errors
    /// Something is not of its form, or a flag does not take the value.
    pub(crate) fn settings(&self, definition: &Command) -> Result<Config, Failure> {
        let mut config = Config::default();
        let Some(document) = &self.document else { return Ok(config) };
        for (name, value) in self.mapping(&document.value, "")?.into_iter().flatten() {
            let at = join("", name);
            match name.as_str() {
                DEFAULTS => self.section(value, &at, None, definition, &mut config)?,
                CONTEXTS => {
                    for (context, value) in self.mapping(value, &at)?.into_iter().flatten() {
                        let at = join(&at, context);
                        self.section(value, &at, Some(context), definition, &mut config)?;
                    }
                }
                _ => config.warnings.push(self.unknown(name, &at, &[DEFAULTS, CONTEXTS])),
            }
        }
        config.settings.sort_by_key(|one| (one.line, one.column));
        Ok(config)
    }

    fn section(
        &self,
        value: &Value,
        at: &str,
        context: Option<&String>,
        definition: &Command,
        config: &mut Config,
    ) -> Result<(), Failure> {
        for (name, value) in self.mapping(value, at)?.into_iter().flatten() {
            let at = join(at, name);
            let Some(key) = KEYS.iter().find(|key| key.name == name) else {
                let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
                config.warnings.push(self.unknown(name, &at, &names));
                continue;
            };
            let Some(value) = self.text_of(value, &at)? else { continue };
            let span = self.span(&at);
            layers::check(key, definition, &value).map_err(|wrong| {
                self.broken(span, &format!("{}: {}", key.name, wrong.message), &wrong.hint)
            })?;
            let opensdn_manifests::Position { line, column } = self.source.position(span.start);
            config.settings.push(Setting { key, context: context.cloned(), value, line, column });
        }
        Ok(())
    }

    /// The value of a key as its flag would get it; none where there is none.
    pub(crate) fn value(&self, path: &[&str]) -> Option<String> {
        let at = path.iter().fold(String::new(), |at, name| join(&at, name));
        let value = self.document.as_ref()?.value.pointer(&at)?;
        self.text_of(value, &at).ok().flatten()
    }

    fn text_of(&self, value: &Value, at: &str) -> Result<Option<String>, Failure> {
        match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            // As it is written: the number 1.30 would be 1.3.
            Value::Bool(_) | Value::Number(_) => {
                let Span { start, end } = self.span(at);
                Ok(self.source.text().get(start..end).map(|text| text.trim().to_owned()))
            }
            Value::Array(_) | Value::Object(_) => {
                Err(self.broken(self.span(at), "this must be one value", "write `key: value`"))
            }
        }
    }

    /// The fields of a mapping; none where there is no value.
    fn mapping<'a>(
        &self,
        value: &'a Value,
        at: &str,
    ) -> Result<Option<&'a Map<String, Value>>, Failure> {
        match value {
            Value::Object(fields) => Ok(Some(fields)),
            Value::Null => Ok(None),
            _ => {
                let hint = "see the page on configuration, or `kubectl opensdn config set --help`";
                Err(self.broken(self.span(at), "this must be a mapping", hint))
            }
        }
    }

    fn span(&self, at: &str) -> Span {
        self.document.as_ref().map(|document| document.nearest(at).value).unwrap_or_default()
    }

    fn unknown(&self, name: &str, at: &str, known: &[&str]) -> String {
        let document = self.document.as_ref();
        let span = document.and_then(|document| document.span(at)).and_then(|place| place.key);
        let hint = match keys::nearest(name, known.iter().copied()) {
            Some(meant) => format!("did you mean {meant}?"),
            None => "kubectl opensdn config view shows all keys".to_owned(),
        };
        format!("{}: {name} is unknown and has no effect; {hint}", self.place(span))
    }

    fn place(&self, span: Option<Span>) -> String {
        let position = self.source.position(span.unwrap_or_default().start);
        place(&self.path, position.line, position.column)
    }

    fn broken(&self, span: Span, message: &str, hint: &str) -> Failure {
        let message = format!("{}: {message}", self.place(Some(span)));
        let hint = match hint {
            "" => "correct the file, or do without it: --config /dev/null".to_owned(),
            hint if hint.ends_with('?') => {
                format!("{hint} To do without the file: --config /dev/null")
            }
            hint => format!("{hint}; to do without the file: --config /dev/null"),
        };
        Failure::new(Exit::Usage, "broken-config", message, hint)
    }
}

/// What `config set` needs to know of a key: that it is one, with a value that its flag takes.
pub(crate) fn checked(
    name: &str,
    value: &str,
    definition: &Command,
) -> Result<&'static Key, Failure> {
    let key = Key::named(name)?;
    layers::check(key, definition, value).map_err(|mut wrong| {
        wrong.message = format!("{name}: {}", wrong.message);
        wrong
    })?;
    Ok(key)
}
