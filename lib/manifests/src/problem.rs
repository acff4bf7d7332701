//! What is wrong with a manifest, and the stable ids of what has no OSDN code. How it is shown to
//! people is the caller's business.

use serde::Serialize;

use crate::source::Span;

/// How bad a [`Problem`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something could not be checked here; the API server will check it.
    Info,
    /// It is taken, but hardly what was meant.
    Warning,
    /// kubectl or the API server refuses it.
    Error,
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The OSDN code that the message of a rule begins with, else one of [`codes`].
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// JSON pointer to the field in the document's value; none where there is no value.
    pub pointer: Option<String>,
    /// Bytes of the source that it is about.
    pub span: Option<Span>,
    /// What is wrong: one sentence without a full stop.
    pub message: String,
    /// What to do; empty where the message says it.
    pub hint: String,
    /// The key or text that is right in the place of the one at the span, where there is no doubt.
    pub fix: Option<String>,
}

impl Problem {
    pub(crate) fn new(severity: Severity, code: &str, message: impl Into<String>) -> Self {
        let code = code.to_owned();
        let message = message.into();
        Self { code, severity, pointer: None, span: None, message, hint: String::new(), fix: None }
    }

    pub(crate) fn error(code: &str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    pub(crate) fn warning(code: &str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    pub(crate) fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    pub(crate) fn pointer(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    pub(crate) fn fix(mut self, right: Option<&str>) -> Self {
        self.fix = right.map(str::to_owned);
        self
    }
}

/// The ids of problems that have no OSDN code. An id never changes its meaning. [`ALL`](codes::ALL)
/// lists them with what they mean.
pub mod codes {
    macro_rules! codes {
        ($($(#[doc = $text:literal])+ $name:ident = $code:literal,)+) => {
            $($(#[doc = $text])+ pub const $name: &str = $code;)+
            /// Every id with what it means.
            pub const ALL: &[(&str, &str)] = &[$(($code, concat!($($text),+))),+];
        };
    }

    codes! {
        /// The text is neither YAML nor JSON.
        SYNTAX = "yaml-syntax",
        /// The bytes are no UTF-8 text.
        ENCODING = "not-utf-8",
        /// A document is too large, too deep, has too many values, or grows too much by its aliases.
        LIMIT = "too-large",
        /// A key is in one mapping twice.
        DUPLICATE_KEY = "duplicate-key",
        /// A key is no string and cannot become one.
        KEY = "key-no-string",
        /// An alias without its anchor, or within it.
        ALIAS = "alias",
        /// A merge key whose value is no mapping, or which overrides what is before it.
        MERGE = "merge-key",
        /// A value that JSON has not: not a number, infinite, or not of its tag.
        VALUE = "no-json-value",
        /// A separator of documents, or an end of a document, that kubectl reads otherwise.
        SEPARATOR = "document-separator",
        /// A document that is no mapping.
        NO_OBJECT = "not-an-object",
        /// No such kind in the API group, or not in this version.
        UNKNOWN_KIND = "unknown-kind",
        /// A field that the schema has not.
        UNKNOWN_FIELD = "unknown-field",
        /// A field that must be given.
        REQUIRED = "schema-required",
        /// A value of another type than the schema's.
        TYPE = "schema-type",
        /// A value that is none of those that the schema lists.
        ENUM = "schema-enum",
        /// A number out of range.
        RANGE = "schema-range",
        /// A text, list or mapping that is too short or too long.
        LENGTH = "schema-length",
        /// A text that does not match the pattern.
        PATTERN = "schema-pattern",
        /// A text that is not of the format.
        FORMAT = "schema-format",
        /// A list with two entries of one key, or one value twice.
        DUPLICATE_ENTRY = "schema-duplicate",
        /// A value that does not fit the schema's alternatives.
        ALTERNATIVES = "schema-alternatives",
        /// Metadata that the API server refuses.
        METADATA = "metadata",
        /// An API version, or a field, that will go.
        DEPRECATED = "deprecated",
        /// A rule of the schema, without a code of its own, is broken.
        RULE = "schema-rule",
        /// A rule that could not be checked here.
        NOT_CHECKED = "not-checked",
    }
}
