//! Findings about manifests, and the forms in which they are written. A finding owns the lines that
//! it shows, so that documents need not be kept. Who finds something is not known here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod codes;
mod github;
mod human;
mod junit;
mod layout;
mod location;
mod mistakes;
mod sarif;

#[cfg(test)]
mod tests;

pub use github::write as write_github;
pub use human::{fixed, in_line, one_line, printable, summary, write as write_human};
pub use junit::write as write_junit;
pub use layout::{Layout, wrap};
pub use location::{Location, Origin};
pub use sarif::write as write_sarif;

/// What `validate` answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValidationReport {
    /// How much was looked at, and how much was found.
    pub summary: Summary,
    /// What is wrong, in the order of files and lines.
    pub findings: Vec<Finding>,
    /// What is wrong and was suppressed with a reason.
    pub suppressed: Vec<Finding>,
    /// What was not checked, and why.
    pub not_checked: Vec<NotChecked>,
    /// The policies that were run.
    pub policies: Vec<PolicyId>,
    /// What --fix has put right; findings are those that remain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<Fixed>,
}

/// How much was looked at, and how much was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Findings that the API server or the webhook would refuse.
    pub errors: usize,
    /// Findings that pass with a warning.
    pub warnings: usize,
    /// Findings that are good to know.
    pub infos: usize,
    /// Findings that were suppressed.
    pub suppressed: usize,
    /// Files that were read.
    pub files: usize,
    /// Objects that were checked.
    pub objects: usize,
    /// Objects of kinds that are neither OpenSDN's nor known to a policy.
    pub ignored: usize,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// It passes with a warning.
    Warning,
    /// It is refused.
    Error,
}

/// Which step found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Reading the text.
    Syntax,
    /// The schema of the kind, and the rules in it.
    Schema,
    /// A policy.
    Policy,
    /// The documents as a set: something that must be unique is there twice.
    Set,
    /// What is known to be wrong with manifests of nested mode.
    Nested,
    /// A suppression that cannot be granted.
    Suppression,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Stable code: OSDN and a number, or a word such as unknown-field.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// Which step found it.
    pub step: Step,
    /// What is wrong in general, where the code has such a text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What is wrong here.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// The object, as far as it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectId>,
    /// JSON Pointer of the field in the object; the empty text is the object itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Where it is.
    pub place: Location,
    /// Other places that have to do with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
    /// The policy that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyId>,
    /// Why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppression: Option<Granted>,
    /// What --fix would write at the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
}

/// What is written in the place of what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fix {
    /// What is there.
    pub before: String,
    /// What is right.
    pub after: String,
}

/// What --fix wrote into a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fixed {
    /// The code of the finding.
    pub code: String,
    /// Where it stood.
    pub place: Location,
    /// What was written.
    pub fix: Fix,
}

/// Another place that has to do with a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Related {
    /// What is there.
    pub message: String,
    /// The object there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectId>,
    /// Where it is.
    pub place: Location,
}

/// A policy that was run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyId {
    /// Name of the AdmissionPolicy.
    pub name: String,
    /// Version that the module says it has.
    pub version: String,
    /// Digest of the module.
    pub digest: String,
}

/// Why a finding does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Granted {
    /// The reason that was given.
    pub reason: String,
    /// How it was asked for.
    pub by: By,
}

/// How a suppression is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The annotation `opensdn.io/ignore` of the object.
    Annotation,
    /// A comment at the field.
    Comment,
    /// The file of `--baseline`.
    Baseline,
}

/// Something that was not checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotChecked {
    /// What.
    pub what: String,
    /// Why not, and how it can be.
    pub why: String,
}

/// An object, as its user knows it.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ObjectId {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for an object of the cluster, or where none is given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl std::fmt::Display for ObjectId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, namespace, name, .. } = self;
        match namespace.as_str() {
            "" => write!(formatter, "{kind} {name}"),
            namespace => write!(formatter, "{kind} {namespace}/{name}"),
        }
    }
}

impl ValidationReport {
    /// Puts everything in its order and counts it.
    pub(crate) fn settle(&mut self) {
        for findings in [&mut self.findings, &mut self.suppressed] {
            findings.sort_by(|one, other| one.order().cmp(&other.order()));
            findings.dedup();
        }
        self.not_checked.sort();
        self.not_checked.dedup();
        let count = |severity| self.findings.iter().filter(|one| one.severity == severity).count();
        self.summary.errors = count(Severity::Error);
        self.summary.warnings = count(Severity::Warning);
        self.summary.infos = count(Severity::Info);
        self.summary.suppressed = self.suppressed.len();
    }
}

impl Finding {
    /// Files as they were given, then lines; within one place the worst first.
    fn order(&self) -> impl Ord + '_ {
        let severity = std::cmp::Reverse(self.severity);
        (self.place.order(), severity, &self.code, &self.pointer, &self.message)
    }

    /// The line under the code: what is wrong in general, or here.
    pub fn headline(&self) -> &str {
        if self.title.is_empty() { &self.message } else { &self.title }
    }
}
