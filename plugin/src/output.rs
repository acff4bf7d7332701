//! What a command answers, as a document: its kind, its JSON Schema, and `-o`. Which streams it goes
//! to is in `ui.rs`.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
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
        match self {
            Self::Json => {
                serde_json::to_writer_pretty(&mut *out, &document)?;
                out.write_all(b"\n")
            }
            Self::Yaml => {
                // As text first: an error of the stream must stay one.
                let text = serde_saphyr::to_string(&document).map_err(io::Error::other)?;
                out.write_all(text.as_bytes())
            }
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a, A> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    answer: &'a A,
}
