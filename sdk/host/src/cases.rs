//! Declarative cases of a policy: a request in a YAML file, and what the policy must say to it.
//! Deliberately not here: reading the files, and which codes have a case.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    contract::{Operation, Severity, Step},
    engine::Limits,
    lookup::{Documents, Lookup},
    metering::{Cost, Meter},
    policy::Policy,
    scan::ScanError,
    set::Seen,
    verdict::{Mutation, Verdict},
};

mod compare;
mod judge;

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// Why this case matters.
    #[serde(default)]
    pub description: String,
    /// Settings of the policy.
    #[serde(default = "empty")]
    pub settings: Value,
    /// Who asks for what; by default a user creates, updates or deletes, as the objects imply.
    #[serde(default)]
    pub request: CaseRequest,
    /// The object as it will be.
    #[serde(default)]
    pub object: Option<Value>,
    /// The object as it is stored.
    #[serde(default)]
    pub old_object: Option<Value>,
    /// Other objects, which answer lookups.
    #[serde(default)]
    pub cluster: Vec<Value>,
    /// What the policy must say.
    pub expect: Expected,
    /// What its hints say to do: done, the policy must have nothing to say.
    #[serde(default)]
    pub remedy: Option<Remedy>,
}

/// What is done about the findings of a case.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Remedy {
    /// Changes of the object, as a JSON merge patch.
    pub object: Value,
    /// Changes of the object that is stored, as a JSON merge patch.
    pub old_object: Value,
    /// Objects that are created, or take the place of those of the same kind and name.
    pub cluster: Vec<Value>,
}

/// Who asks for what.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CaseRequest {
    /// Operation.
    pub operation: Option<Operation>,
    /// Name, by default the object's.
    pub name: Option<String>,
    /// Namespace, by default the object's.
    pub namespace: Option<String>,
    /// Subresource.
    pub subresource: String,
    /// Name of the user.
    pub user: String,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
}

/// What the policy must say: all of it, in this order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Expected {
    /// Findings.
    pub findings: Vec<ExpectedFinding>,
    /// Claims, sorted by scope and key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ExpectedClaim>,
    /// The patch of the mutating step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
    /// The object after the mutating step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
    /// A part of the reason why the policy is inconclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A finding; message and hint are parts of the texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExpectedFinding {
    /// Code.
    pub code: String,
    /// Severity.
    pub severity: Severity,
    /// JSON Pointer.
    pub pointer: String,
    /// Part of the message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Part of the hint.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

/// A claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExpectedClaim {
    /// Scope.
    pub scope: String,
    /// Key.
    pub key: String,
    /// What objects that share the key agree on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// JSON Pointer.
    pub pointer: String,
}

/// How a case is run.
#[derive(Clone)]
pub struct Conditions {
    /// Answers lookups; by default the case's own objects do.
    pub lookup: Option<Arc<dyn Lookup>>,
    /// Limits of each evaluation.
    pub limits: Limits,
    /// Where the policy's engine counts.
    pub meter: Meter,
}

/// What became of a case.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is not as expected; empty when the case passes.
    pub problems: Vec<String>,
    /// What the policy said.
    pub verdict: Verdict,
    /// What the policy patched.
    pub mutation: Mutation,
    /// Whether the policy saw the request at all.
    pub reached: bool,
    /// What the policy saw, step by step.
    pub seen: Vec<Seen>,
    /// The object after the mutating step.
    pub object: Option<Value>,
    /// What the mutating and the validating step cost, where the engine counts.
    pub costs: Vec<(Step, Cost)>,
}

fn empty() -> Value {
    json!({})
}

impl Default for Case {
    /// It has neither a request nor an expectation.
    fn default() -> Self {
        Self {
            description: String::new(),
            settings: empty(),
            request: CaseRequest::default(),
            object: None,
            old_object: None,
            cluster: Vec::new(),
            expect: Expected::default(),
            remedy: None,
        }
    }
}

impl Case {
    /// The case after its remedy; none without one.
    #[must_use]
    pub fn remedied(&self) -> Option<Self> {
        let remedy = self.remedy.as_ref()?;
        let patched = |object: &Option<Value>, patch: &Value| {
            let mut object = object.clone()?;
            if !patch.is_null() {
                json_patch::merge(&mut object, patch);
            }
            Some(object)
        };
        let identity = |object: &Value| {
            ["/kind", "/metadata/namespace", "/metadata/name"]
                .map(|pointer| object.pointer(pointer).cloned())
        };
        let mut cluster = self.cluster.clone();
        cluster.retain(|object| remedy.cluster.iter().all(|new| identity(new) != identity(object)));
        cluster.extend(remedy.cluster.iter().cloned());
        Some(Self {
            object: patched(&self.object, &remedy.object),
            old_object: patched(&self.old_object, &remedy.old_object),
            cluster,
            remedy: None,
            ..self.clone()
        })
    }
}

impl Default for Conditions {
    /// A case tests what the policy says; how fast it says so is measured elsewhere. So there is
    /// much more time than in a webhook.
    fn default() -> Self {
        let limits = Limits { time: 20 * Limits::default().time, ..Limits::default() };
        Self { lookup: None, limits, meter: Meter::default() }
    }
}

/// Runs the case against the policy, the mutating step twice.
///
/// # Errors
/// The objects of the case cannot be scanned.
pub async fn run(policy: &Policy, case: &Case) -> Result<Report, ScanError> {
    run_under(policy, case, &Conditions::default()).await
}

/// The same under other conditions.
///
/// # Errors
/// The objects of the case cannot be scanned.
pub async fn run_under(
    policy: &Policy,
    case: &Case,
    conditions: &Conditions,
) -> Result<Report, ScanError> {
    let mut report = judge(policy, case, conditions).await?;
    compare::compare(case, &mut report);
    if let Some(remedied) = case.remedied() {
        let after = judge(policy, &remedied, conditions).await?;
        let left = after.verdict.findings.iter();
        report.problems.extend(left.map(|finding| {
            format!(
                "after its remedy it still says {} at {}: {}",
                finding.code, finding.pointer, finding.message
            )
        }));
    }
    Ok(report)
}

/// Asks the policy without comparing its answer with what the case expects: first the patch, as
/// the API server does, then the verdict on the result. The mutating step is run twice, since a
/// patch of its own result is a problem whatever was expected.
///
/// # Errors
/// The objects of the case cannot be scanned.
pub async fn judge(
    policy: &Policy,
    case: &Case,
    conditions: &Conditions,
) -> Result<Report, ScanError> {
    let lookup = conditions.lookup.clone();
    let lookup = lookup.unwrap_or_else(|| Arc::new(Documents::new(case.cluster.clone())));
    judge::Judge::new(policy, case, conditions, lookup).report().await
}

impl Expected {
    /// What the policy said, as an expectation. Where an expected finding still fits, it stays as
    /// it was written: its texts are parts that the author chose.
    #[must_use]
    pub fn accepting(&self, report: &Report) -> Self {
        compare::accept(self, report)
    }
}
