//! A component's configuration: files of one format, the later over the earlier, as sections, keys
//! and values. What is asked of it and is not there, or makes no sense, is a [`Problem`] that says
//! where. No message has a value in it but addresses and ports: the others may be passwords.

mod environment;
mod ini;
mod javascript;
mod named;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::component::{Format, Key};

/// Why a configuration could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There is no such file, or it is not text.
    #[error("read {}; mount it there, or name another with --config", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not of the format that it should have.
    #[error("{}, line {line}: {what}; see to it in the template", path.display())]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What was found there.
        what: String,
    },
    /// It says something that makes no sense, or not enough.
    #[error(transparent)]
    Problem(#[from] Problem),
}

/// What is wrong with one key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}; {remedy}")]
pub(crate) struct Problem {
    /// The file and the key.
    pub(crate) place: Place,
    /// What is wrong.
    pub(crate) what: String,
    /// What would help.
    pub(crate) remedy: String,
}

/// Where a value stands, or should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file; of a missing key, all of them.
    pub(crate) files: Vec<PathBuf>,
    /// Empty if there is none.
    pub(crate) section: String,
    /// The key.
    pub(crate) key: String,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<_> = self.files.iter().map(|path| path.display().to_string()).collect();
        write!(out, "{}: ", files.join(", "))?;
        if !self.section.is_empty() {
            write!(out, "[{}] ", self.section)?;
        }
        out.write_str(&self.key)
    }
}

/// What a parser found: a value of a key of a section.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    section: String,
    key: String,
    value: String,
}

impl Setting {
    fn new(section: &str, key: &str, value: &str) -> Self {
        Self { section: section.into(), key: key.into(), value: value.into() }
    }
}

/// Where a parser stopped, and why.
#[derive(Debug, PartialEq, Eq)]
struct Stopped {
    line: usize,
    what: String,
}

impl Stopped {
    fn at(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// All that is configured.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    files: Vec<PathBuf>,
    values: BTreeMap<(String, String), Value>,
}

#[derive(Debug)]
struct Value {
    file: PathBuf,
    text: String,
}

impl Configuration {
    /// Reads files, the later over the earlier.
    ///
    /// # Errors
    /// One cannot be read, is not of the format, or has a placeholder that was never filled, or a
    /// port that is none.
    pub(crate) fn read(format: Format, files: &[PathBuf]) -> Result<Self, Error> {
        let mut configuration = Self { files: files.to_vec(), values: BTreeMap::new() };
        for path in files {
            let text = fs::read_to_string(path)
                .map_err(|source| Error::Read { path: path.clone(), source })?;
            configuration.add(format, path, &text)?;
        }
        configuration.check_values(format)?;
        Ok(configuration)
    }

    fn add(&mut self, format: Format, path: &Path, text: &str) -> Result<(), Error> {
        let settings = match format {
            Format::Ini => ini::settings(text),
            Format::Named => named::settings(text),
            Format::JavaScript => javascript::settings(text),
            Format::Environment => environment::settings(text, |name| std::env::var(name).ok()),
        };
        let settings = settings.map_err(|Stopped { line, what }| Error::Syntax {
            path: path.to_owned(),
            line,
            what,
        })?;
        for Setting { section, key, value } in settings {
            let value = Value { file: path.to_owned(), text: value };
            self.values.insert((section, key), value);
        }
        Ok(())
    }

    fn check_values(&self, format: Format) -> Result<(), Problem> {
        for ((section, key), value) in &self.values {
            let problem = |what: String, remedy: &str| Problem {
                place: Place {
                    files: vec![value.file.clone()],
                    section: section.clone(),
                    key: key.clone(),
                },
                what,
                remedy: remedy.into(),
            };
            if let Some(placeholder) = placeholder(&value.text) {
                return Err(problem(
                    format!("a placeholder was left as it was: {placeholder}"),
                    "fill it when the template is rendered",
                ));
            }
            let is_port = key == "port" || key.ends_with("_port");
            if is_port && format == Format::Ini && number(&value.text).is_none() {
                return Err(problem(no_port(&value.text), "give a number from 1 to 65535"));
            }
        }
        Ok(())
    }

    /// The value, if there is one that is not empty.
    pub(crate) fn get(&self, key: Key) -> Option<&str> {
        let value = self.values.get(&(key.section.to_owned(), key.name.to_owned()))?;
        Some(value.text.as_str()).filter(|text| !text.is_empty())
    }

    /// The value.
    ///
    /// # Errors
    /// There is none, or it is empty.
    pub(crate) fn require(&self, key: Key) -> Result<&str, Problem> {
        self.get(key).ok_or_else(|| {
            let is_empty = self.values.contains_key(&(key.section.into(), key.name.into()));
            let has_section = self.values.keys().any(|(section, _)| section == key.section);
            let (what, remedy) = match (is_empty, has_section || key.section.is_empty()) {
                (true, _) => ("there is no value", "give it one in the template"),
                (false, true) => ("there is no such key", "add it to the template"),
                (false, false) => ("there is no such section", "add it to the template"),
            };
            self.problem(key, what, remedy)
        })
    }

    /// Whether it is switched on, if it is there at all; `https` counts as yes.
    pub(crate) fn is_on(&self, key: Key) -> bool {
        let on = ["true", "yes", "on", "1", "https"];
        self.get(key).is_some_and(|text| on.contains(&text.to_lowercase().as_str()))
    }

    /// The port there, if there is one.
    ///
    /// # Errors
    /// It is no number of a port.
    pub(crate) fn port(&self, key: Key) -> Result<Option<u16>, Problem> {
        let Some(text) = self.get(key) else { return Ok(None) };
        let port = number(text);
        port.map(Some)
            .ok_or_else(|| self.problem(key, no_port(text), "give a number from 1 to 65535"))
    }

    /// What is wrong with a key, with its place.
    pub(crate) fn problem(
        &self,
        key: Key,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Problem {
        let value = self.values.get(&(key.section.to_owned(), key.name.to_owned()));
        let files = value.map_or_else(|| self.files.clone(), |value| vec![value.file.clone()]);
        let (section, key) = (key.section.into(), key.name.into());
        let place = Place { files, section, key };
        Problem { place, what: what.into(), remedy: remedy.into() }
    }
}

/// A port in text.
pub(crate) fn number(text: &str) -> Option<u16> {
    text.trim().parse().ok().filter(|port| *port != 0)
}

fn no_port(text: &str) -> String {
    format!("{text:?} is no port")
}

/// The mark of a template's placeholder that was never filled, without what it names: who knows
/// what that is when it is a part of a password.
fn placeholder(value: &str) -> Option<&'static str> {
    let marks = [("{{", "{{ … }}"), ("<no value>", "<no value>"), ("<nil>", "<nil>")];
    let found = marks.into_iter().find(|(mark, _)| value.contains(mark));
    let named = || {
        let (_, after) = value.split_once("${")?;
        let (name, _) = after.split_once('}')?;
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        (is_name && !name.is_empty()).then_some("${ … }")
    };
    found.map(|(_, shown)| shown).or_else(named)
}
