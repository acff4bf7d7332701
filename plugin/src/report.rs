//! Findings about manifests, and the forms in which they are written. A finding owns the lines that
//! it shows, so that documents need not be kept. Who finds something is not known here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::output::Answer;

pub(crate) mod codes;
mod github;
mod human;
mod junit;
mod place;
mod sarif;

#[cfg(test)]
mod tests;

pub(crate) use github::write as write_github;
pub(crate) use human::{fixed, summary, write as write_human};
pub(crate) use junit::write as write_junit;
pub(crate) use place::{Origin, Place};
pub(crate) use sarif::write as write_sarif;

/// What `validate` answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ValidationReport {
    /// How much was looked at, and how much was found.
    pub(crate) summary: Summary,
    /// What is wrong, in the order of files and lines.
    pub(crate) findings: Vec<Finding>,
    /// What is wrong and was suppressed with a reason.
    pub(crate) suppressed: Vec<Finding>,
    /// What was not checked, and why.
    pub(crate) not_checked: Vec<NotChecked>,
    /// The policies that were run.
    pub(crate) policies: Vec<PolicyId>,
    /// What --fix has put right; findings are those that remain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) fixed: Vec<Fixed>,
}

impl Answer for ValidationReport {
    const KIND: &'static str = "ValidationReport";
}

/// How much was looked at, and how much was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    /// Findings that the API server or the webhook would refuse.
    pub(crate) errors: usize,
    /// Findings that pass with a warning.
    pub(crate) warnings: usize,
    /// Findings that are good to know.
    pub(crate) infos: usize,
    /// Findings that were suppressed.
    pub(crate) suppressed: usize,
    /// Files that were read.
    pub(crate) files: usize,
    /// Objects that were checked.
    pub(crate) objects: usize,
    /// Objects of kinds that are neither OpenSDN's nor known to a policy.
    pub(crate) ignored: usize,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
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
pub(crate) enum Step {
    /// Reading the text.
    Syntax,
    /// The schema of the kind, and the rules in it.
    Schema,
    /// A policy.
    Policy,
    /// The documents as a set: something that must be unique stands twice.
    Set,
    /// A suppression that cannot be granted.
    Suppression,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    /// Stable code: OSDN and a number, or a word such as unknown-field.
    pub(crate) code: String,
    /// How bad it is.
    pub(crate) severity: Severity,
    /// Which step found it.
    pub(crate) step: Step,
    /// What is wrong in general, where the code has such a text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) title: String,
    /// What is wrong here.
    pub(crate) message: String,
    /// What to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) hint: String,
    /// The object, as far as it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<ObjectId>,
    /// JSON Pointer of the field in the object; the empty text is the object itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pointer: Option<String>,
    /// Where it stands.
    pub(crate) place: Place,
    /// Other places that have to do with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) related: Vec<Related>,
    /// The policy that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<PolicyId>,
    /// Why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suppression: Option<Granted>,
    /// What --fix would write at the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<Fix>,
}

/// What is written in the place of what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fix {
    /// What is there.
    pub(crate) before: String,
    /// What is right.
    pub(crate) after: String,
}

/// What --fix wrote into a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fixed {
    /// The code of the finding.
    pub(crate) code: String,
    /// Where it stood.
    pub(crate) place: Place,
    /// What was written.
    pub(crate) fix: Fix,
}

/// Another place that has to do with a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Related {
    /// What is there.
    pub(crate) message: String,
    /// The object there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<ObjectId>,
    /// Where it stands.
    pub(crate) place: Place,
}

/// A policy that was run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyId {
    /// Name of the AdmissionPolicy.
    pub(crate) name: String,
    /// Version that the module says it has.
    pub(crate) version: String,
    /// Digest of the module.
    pub(crate) digest: String,
}

/// Why a finding does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Granted {
    /// The reason that was given.
    pub(crate) reason: String,
    /// How it was asked for.
    pub(crate) by: By,
}

/// How a suppression is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
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
pub(crate) struct NotChecked {
    /// What.
    pub(crate) what: String,
    /// Why not, and how it can be.
    pub(crate) why: String,
}

/// An object, as its user knows it.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectId {
    /// Group and version.
    pub(crate) api_version: String,
    /// Kind.
    pub(crate) kind: String,
    /// Namespace; empty for an object of the cluster, or where none is given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    /// Name.
    pub(crate) name: String,
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
    pub(crate) fn headline(&self) -> &str {
        if self.title.is_empty() { &self.message } else { &self.title }
    }
}
