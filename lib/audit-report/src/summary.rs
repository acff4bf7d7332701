//! The summary: counts, the first findings of each policy, and what was not checked and why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one audit found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// When it began (RFC 3339).
    pub began: String,
    /// When it ended (RFC 3339).
    pub ended: String,
    /// The next audit starts so many seconds later; 0 where it is not known.
    pub interval_seconds: u64,
    /// Objects that were evaluated, by group/kind.
    pub objects: BTreeMap<String, i64>,
    /// By the name of the AdmissionPolicy.
    pub policies: BTreeMap<String, PolicySummary>,
    /// Kinds, policies and objects that could not be checked.
    pub not_checked_total: i64,
    /// The first of them.
    pub not_checked: Vec<NotChecked>,
    /// What became of the reports in the API for them; nothing where it is not installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_reports: Option<PolicyReports>,
}

/// What one policy said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicySummary {
    /// Digest of its module.
    pub digest: String,
    /// `enforce`, `warn` or `audit`.
    pub mode: String,
    /// Findings that refuse where the policy enforces.
    pub denials: i64,
    /// Findings that never refuse.
    pub warnings: i64,
    /// Evaluations without an answer.
    pub failures: i64,
    /// The first findings and failures.
    pub examples: Vec<Example>,
    /// Whether more was found than is written out.
    pub more: bool,
}

/// A finding, or an evaluation without an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Example {
    /// `Kind namespace/name`.
    pub object: String,
    /// `deny`, `warn` or `failure`.
    pub severity: String,
    /// Stable code; empty for a failure.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// JSON Pointer of the field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

/// What could not be checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotChecked {
    /// A kind, a policy or an object.
    pub what: String,
    /// Why.
    pub why: String,
}

/// What became of the reports per object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyReports {
    /// Group and version in which they are written: `openreports.io/v1alpha1`.
    pub api_version: String,
    /// Reports that were created or changed by this audit.
    pub written: i64,
    /// Reports that say already what is so.
    pub unchanged: i64,
    /// Reports of objects without a finding any more.
    pub deleted: i64,
    /// Reports that could not be written or deleted.
    pub failed: i64,
    /// Why the first of them could not, or why none can.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failure: String,
}
