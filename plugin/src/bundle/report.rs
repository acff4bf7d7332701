//! What `support-bundle` answers.

use schemars::JsonSchema;
use serde::Serialize;

use crate::output::Answer;

/// What was collected, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SupportBundle {
    /// The archive; nothing where nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) archive: Option<String>,
    /// What is in it.
    pub(crate) files: Vec<File>,
    /// What could not be had, and why.
    pub(crate) failed: Vec<Failed>,
    /// What is not there to be had, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) absent: Vec<Failed>,
    /// What would be asked for, of a dry run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) planned: Vec<String>,
}

impl Answer for SupportBundle {
    const KIND: &'static str = "SupportBundle";
}

/// A file of the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct File {
    /// Its path in the archive.
    pub(crate) path: String,
    /// The SHA-256 of it, in hexadecimal digits.
    pub(crate) sha256: String,
    /// Its length.
    pub(crate) bytes: usize,
}

/// Something that could not be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Failed {
    /// What file it would have been.
    pub(crate) path: String,
    /// Why.
    pub(crate) why: String,
}
