//! Manifests as people write them: YAML and JSON with places, checked against schemas and CEL rules.
//!
//! - [`Sources`] cuts a stream into the texts of single documents, [`read`] makes [`Document`]s of
//!   a text: the value as the API server will get it, and where each field is.
//! - [`Schemas`] checks them as the API server would.
//! - Everything that is wrong is a [`Problem`], and all of it is reported, never only the first.
//! - [`Limited`] bounds what is read of a file.
//!
//! Deliberately not here: which files are read, printing, policies, and anything about a live cluster.

#![warn(missing_docs)]

mod build;
mod comment;
mod document;
mod limited;
mod problem;
mod read;
mod scalar;
mod schema;
mod source;
mod source_map;
mod split;
mod stream;
mod syntax;
mod version;

pub use comment::{Comment, Suppression};
pub use document::Document;
pub use limited::{Limited, open_named, read_limited, read_limited_text};
pub use problem::{Problem, Severity, codes};
pub use read::{MAX_DEPTH, MAX_DOCUMENT_BYTES, MAX_VALUES, Parsed, read};
pub use schema::Schemas;
pub use source::{Position, Source, Span};
pub use source_map::{FieldSpan, join};
pub use stream::Sources;
pub use version::{KubernetesVersion, VersionError};
