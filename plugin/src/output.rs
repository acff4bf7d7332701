//! What a command answers, as a document: its kind, its JSON Schema, and `-o`. Which streams it goes
//! to is in `ui.rs`.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use opensdn_policy_host::is_unseen;
use schemars::JsonSchema;
use serde::Serialize;

/// The `apiVersion` of every answer.
pub const API_VERSION: &str = "cli.opensdn.io/v1";

/// An answer that can be written as a document. Its schema is published by
/// `kubectl opensdn explain --schema KIND`, so a new kind also gets a line in `schemas.rs`.
pub trait Answer: Serialize + JsonSchema {
    /// The document's `kind`.
    const KIND: &'static str;
}

/// `-o` of a command that answers with one document. A command that knows other formats has its own
/// enum and its own `-o`; the names `json` and `yaml` mean the same everywhere.
#[derive(Clone, Copy, Debug, Args)]
pub struct Output {
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// `-o` of a command that lists or writes objects of a cluster: their names, too.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ObjectsOutput {
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: ObjectsFormat,
}

/// How an answer about objects is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectsFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// The names of the objects alone, one a line, as kubectl writes them: `deployment.apps/opensdn-webhook`.
    Name,
}

/// `-o` of a command that tells what it has checked: to CI, too.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CheckedOutput {
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: CheckedFormat,
}

/// How an answer about what was checked is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckedFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// JUnit's XML, for CI.
    Junit,
}

/// The first line of a report for people: which cluster it is about.
pub(crate) fn cluster_line(cluster: Option<&str>, server: Option<&str>) -> String {
    let cluster = cluster.unwrap_or("cluster");
    format!("cluster  {cluster}  {}", server.unwrap_or_default()).trim_end().to_owned()
}

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentFormat {
    /// JSON, indented.
    Json,
    /// YAML.
    Yaml,
}

impl DocumentFormat {
    /// The format that a value of `-o` asks for, if it asks for a document at all.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "json" => Some(Self::Json),
            "yaml" => Some(Self::Yaml),
            _ => None,
        }
    }

    /// Writes the answer in its envelope.
    pub(crate) fn write<A: Answer>(self, answer: &A, out: &mut dyn Write) -> io::Result<()> {
        let document = Envelope { api_version: API_VERSION, kind: A::KIND, answer };
        self.write_value(&document, out)
    }

    /// Writes what has a form of its own, such as a Kubernetes object.
    pub(crate) fn write_value(self, value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
        let json = || serde_json::to_string_pretty(value).map_err(io::Error::other);
        // As text first: an error of the stream must stay one.
        let mut text = match self {
            Self::Json => json()? + "\n",
            Self::Yaml => serde_saphyr::to_string(value).map_err(io::Error::other)?,
        };
        if text.contains(is_obeyed) {
            // What is quoted of a cluster may be anything, and a terminal obeys it. JSON is YAML, too, and
            // has an escape for each of them.
            text = escaped(&(json()? + "\n"));
        }
        out.write_all(text.as_bytes())
    }
}

/// A value as JSON in one line, without what a terminal obeys.
///
/// # Errors
/// It is none of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> io::Result<String> {
    serde_json::to_string(value).map(|json| escaped(&json)).map_err(io::Error::other)
}

/// What a terminal obeys, or its reader does not see; of these only line breaks belong to a document. Beyond
/// U+FFFF JSON and YAML have no escape in common.
fn is_obeyed(letter: char) -> bool {
    is_unseen(letter) && letter != '\n' && letter <= '\u{FFFF}'
}

/// JSON in which each of them is escaped: the serialiser leaves DEL and those from U+0080 on.
fn escaped(json: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if is_obeyed(letter) {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\u{:04x}", u32::from(letter));
        } else {
            text.push(letter);
        }
    }
    text
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a, A> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    answer: &'a A,
}

#[cfg(test)]
mod tests {
    use super::{Answer, DocumentFormat};

    #[derive(serde::Serialize, schemars::JsonSchema)]
    struct Said {
        text: String,
    }

    impl Answer for Said {
        const KIND: &'static str = "Said";
    }

    #[test]
    fn no_document_has_a_character_that_a_terminal_obeys_and_each_says_the_same() {
        let said = "\u{1b}[2Jgone\u{9b}31m \u{7f} \t two\nlines \u{202e}back\u{feff}";
        for format in [DocumentFormat::Json, DocumentFormat::Yaml] {
            let mut out = Vec::new();
            format.write(&Said { text: said.to_owned() }, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(!text.contains(super::is_obeyed), "{text:?}");
            let read: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
            assert_eq!(read["text"], said, "{format:?}");
        }
    }
}
